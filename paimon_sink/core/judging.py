"""Tells bad rows from good ones, a batch at a time. Batches without a bad row cost a few kernels and no more.

A row breaks a value rule (a null where none may be, a value that its column cannot hold), a partition (no directory can
be named by its value), a check, or it came with an error that somebody noted upstream. Each bad row counts under one
rule, the first that it breaks in that order, with the noted error before all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_sink.core.checks import Check
from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.nested import nested_nulls
from paimon_sink.core.schema import Alignment, sql_type, type_name

__all__ = ["ERROR_COLUMN", "LOSSY", "NOT_NULL", "PARTITION", "Fault", "Judge", "Judged", "offenders"]

NOT_NULL, LOSSY, PARTITION, ERROR_COLUMN = "not null", "lossy", "partition", "errorColumn"


@dataclass(frozen=True)
class Fault:
    """Why a row is bad. It repeats no value."""

    rule: str
    column: str
    message: str


@dataclass(frozen=True)
class Judged:
    """A batch in two: what is good, as the table has it, and the positions of what is not."""

    good: pa.RecordBatch
    faults: dict[int, Fault] = field(default_factory=dict)
    """By the position of the row in the batch that came."""

    @property
    def rules(self) -> Counter[str]:
        return Counter(fault.rule for fault in self.faults.values())


@dataclass(frozen=True)
class Judge:
    """What the rows of one task are judged by."""

    alignment: Alignment
    """Of the columns that came without the error column."""
    checks: tuple[Check, ...] = ()
    error_column: str | None = None
    takes_misfits: bool = False
    """Whether a value that the table cannot hold makes its row bad. Else it raises, and ends the task."""
    unnamed_partitions: Callable[[pa.RecordBatch], Sequence[int]] = lambda batch: ()
    """Positions of the rows, as the table has them, that no partition can be named by."""

    def judge(self, batch: pa.RecordBatch) -> Judged:
        noted = None if self.error_column is None else batch.column(self.error_column)
        rows = batch if noted is None else batch.drop_columns([str(self.error_column)])
        if noted is None or noted.null_count == len(noted):
            aligned = self._aligned(rows)
            if aligned is not None and all(check.all_pass(aligned) for check in self.checks):
                unnamed = self.unnamed_partitions(aligned) if self.takes_misfits else ()
                if not unnamed:
                    return Judged(aligned)
        return self._sorted_out(rows, noted)

    def _aligned(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        try:
            return self.alignment.apply(rows)
        except SchemaMismatchError:
            if not self.takes_misfits:
                raise
            return None

    # ------------------------------------------------------------ where some rows are bad

    def _sorted_out(self, rows: pa.RecordBatch, noted: pa.Array | None) -> Judged:
        left = _Left(rows, _count(rows.num_rows))
        if noted is not None:
            fault = Fault(ERROR_COLUMN, str(self.error_column), f"column {self.error_column} is not null")
            left.reject(noted.is_valid(), fault)
        aligned = self._aligned(left.rows)
        if aligned is None:
            self._reject_misfits(left)
            aligned = self.alignment.apply(left.rows)
        left.rows = aligned
        if self.takes_misfits and (unnamed := self.unnamed_partitions(left.rows)):
            fault = Fault(PARTITION, "", "no partition can be named by the row's value")
            left.reject(left.at(unnamed), fault)
        for check in self.checks:
            left.reject(check.failing(left.rows), Fault(check.rule, check.columns, f"{check.rule} is false"))
        return Judged(left.rows, dict(sorted(left.faults.items())))

    def _reject_misfits(self, left: _Left) -> None:
        for column in self.alignment.columns:
            if column.source is None:
                continue
            name = column.target.name
            if not column.target.nullable and left.rows.column(column.source).null_count:
                fault = Fault(NOT_NULL, name, f"column {name} has a null, the table's column is not null")
                left.reject(left.rows.column(column.source).is_null(), fault)
            values = left.rows.column(column.source)
            found = offenders(values, self._fits(column))
            faults = [self._misfit(values.slice(position, 1), column.target) for position in found]
            if found:
                left.reject(left.at(found), *faults)

    def _fits(self, column: Any) -> Callable[[pa.Array], bool]:
        def fits(part: pa.Array) -> bool:
            try:
                self.alignment.converted(part, column)
            except SchemaMismatchError:
                return False
            return True

        return fits

    def _misfit(self, value: pa.Array, target: pa.Field) -> Fault:
        for path in nested_nulls(value, target.type, target.name):
            return Fault(NOT_NULL, path, f"{path} has a null, the table's field is not null")
        kind = sql_type(target) or type_name(target.type)
        return Fault(LOSSY, target.name, f"column {target.name} has a value that does not fit {kind}")


@dataclass
class _Left:
    """What is left of a batch when some of its rows are out."""

    rows: pa.RecordBatch
    positions: pa.Array
    """Of each row in the batch that came."""
    faults: dict[int, Fault] = field(default_factory=dict)

    def at(self, rows: Sequence[int]) -> pa.Array:
        """True for these rows of those that are left."""
        return pc.is_in(self.positions, value_set=self.positions.take(pa.array(rows, pa.int64())))

    def reject(self, mask: pa.Array, *faults: Fault) -> None:
        """Take these rows out: all for one fault, or each for its own."""
        bad = self.positions.filter(mask)
        if len(bad):
            each = faults if len(faults) > 1 else faults * len(bad)
            self.faults |= dict(zip(bad.to_pylist(), each, strict=True))
            good = pc.invert(mask)
            self.rows, self.positions = self.rows.filter(good), self.positions.filter(good)


def _count(rows: int) -> pa.Array:
    """0, 1, 2, … without a Python object for each."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), rows)), 1)


def offenders(values: pa.Array | pa.RecordBatch, fits: Callable[[pa.Array], bool]) -> list[int]:
    """Positions of those that do not fit, found by halves: many that fit are asked about at once."""
    found: list[int] = []
    open_ends = [(0, len(values))]
    while open_ends:
        start, length = open_ends.pop()
        if length and not fits(values.slice(start, length)):
            if length == 1:
                found.append(start)
            else:
                half = length // 2
                open_ends += [(start + half, length - half), (start, half)]
    return found
