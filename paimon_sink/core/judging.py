"""Tells bad rows from good ones, a batch at a time. Batches without a bad row cost a few kernels and no more.

A row breaks a value rule (a null where none may be, a value that its column cannot hold), a partition (no directory can
be named by its value), a check, or it came with an error that somebody noted upstream. Each bad row counts under one
rule, the first that it breaks in that order, with the noted error before all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

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
        faults: dict[int, Fault] = {}
        if noted is not None:
            fault = Fault(ERROR_COLUMN, str(self.error_column), f"column {self.error_column} is not null")
            faults |= dict.fromkeys(_positions(noted.is_valid()), fault)
        if self.takes_misfits:
            faults |= self._misfits(rows, faults)
        good = [position for position in range(rows.num_rows) if position not in faults]
        aligned = self.alignment.apply(rows.take(pa.array(good, pa.int64())))
        for found in self._of_aligned():
            bad = {good[position]: fault for position, fault in found(aligned)}
            if bad:
                faults |= bad
                kept = [at for at, position in enumerate(good) if position not in bad]
                aligned, good = aligned.take(pa.array(kept, pa.int64())), [good[at] for at in kept]
        return Judged(aligned, dict(sorted(faults.items())))

    def _misfits(self, rows: pa.RecordBatch, before: dict[int, Fault]) -> dict[int, Fault]:
        faults: dict[int, Fault] = {}
        for column in self.alignment.columns:
            if column.source is None:
                continue
            values, name = rows.column(column.source), column.target.name
            if not column.target.nullable and values.null_count:
                fault = Fault(NOT_NULL, name, f"column {name} has a null, the table's column is not null")
                nulls = (position for position in _positions(values.is_null()) if position not in before)
                faults |= {position: fault for position in nulls if position not in faults}
            left = [at for at in range(len(values)) if at not in before and at not in faults]
            some = values.take(pa.array(left, pa.int64()))

            def fits(part: pa.Array, column: object = column) -> bool:
                try:
                    self.alignment.converted(part, column)  # type: ignore[arg-type]
                except SchemaMismatchError:
                    return False
                return True

            for at in offenders(some, fits):
                faults[left[at]] = self._misfit(some.slice(at, 1), column.target)
        return faults

    def _misfit(self, value: pa.Array, target: pa.Field) -> Fault:
        for path in nested_nulls(value, target.type, target.name):
            return Fault(NOT_NULL, path, f"{path} has a null, the table's field is not null")
        kind = sql_type(target) or type_name(target.type)
        return Fault(LOSSY, target.name, f"column {target.name} has a value that does not fit {kind}")

    def _of_aligned(self) -> Iterator[Callable[[pa.RecordBatch], Iterable[tuple[int, Fault]]]]:
        if self.takes_misfits:
            yield self._without_partition
        for check in self.checks:
            yield lambda batch, check=check: _failing(check, batch)  # type: ignore[misc]

    def _without_partition(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Fault]]:
        for position in self.unnamed_partitions(batch):
            yield position, Fault(PARTITION, "", "no partition can be named by the row's value")


def _failing(check: Check, batch: pa.RecordBatch) -> Iterator[tuple[int, Fault]]:
    fault = Fault(check.rule, check.columns, f"{check.rule} is false")
    return ((position, fault) for position in _positions(check.failing(batch)))


def _positions(mask: pa.Array) -> list[int]:
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found


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
