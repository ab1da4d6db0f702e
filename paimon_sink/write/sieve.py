"""In a task: good rows go on to the data files, bad ones into a file beside the table, with their reasons.

That file is nobody's until the batch is in. The driver makes one of those of all tasks, which the put of the batch
names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from paimon_sink.core.checks import Check
from paimon_sink.core.clock import Clock
from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.judging import Fault, Judge, Judged, offenders
from paimon_sink.core.quarantine import ATTEMPT, OURS, ROW, TASK, as_kept, kept_schema
from paimon_sink.core.rejected import REJECTED, RejectedRows
from paimon_sink.core.schema import Alignment
from paimon_sink.formats.contract import Table
from paimon_sink.write.files import TaskAttempt
from paimon_sink.write.kept_rows import KeptRows

__all__ = ["Rules", "Sieve"]


@dataclass(frozen=True)
class Rules:
    """What the rows of a write are judged by, and how many bad ones are worth keeping."""

    checks: tuple[Check, ...] = ()
    error_column: str | None = None
    """As the rows spell it."""
    most_kept: int | None = None
    """Beyond it the batch fails anyway. None: there is no quarantine, and nothing is kept."""
    attempt: int = 1
    """Which try at writing these rows this is."""

    def written(self, incoming: pa.Schema) -> pa.Schema:
        """The columns that are written."""
        return pa.schema([field for field in incoming if field.name != self.error_column])


@dataclass
class Sieve:
    """Of one task."""

    judge: Judge
    rules: Rules
    kept: KeptRows | None
    attempt_id: str
    clock: Clock
    counts: Counter[str] = field(default_factory=Counter)
    seen: int = 0

    @classmethod
    def of(cls, rules: Rules, attempt: TaskAttempt, incoming: pa.Schema, alignment: Alignment, clock: Clock) -> Sieve:
        keeps = rules.most_kept is not None
        judge = Judge(
            alignment,
            rules.checks,
            rules.error_column,
            takes_misfits=keeps,
            unnamed_partitions=_Partitions(attempt.table).unnamed,
        )
        kept = KeptRows(attempt.table, kept_schema(incoming), REJECTED) if keeps else None
        return cls(judge, rules, kept, attempt.attempt_id, clock)

    def good_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """As the table has them. What is left out is kept."""
        judged = self.judge.judge(batch)
        if judged.faults:
            self._reject(batch, judged)
        self.seen += batch.num_rows
        return judged.good

    def _reject(self, batch: pa.RecordBatch, judged: Judged) -> None:
        self.counts += judged.rules
        if self.kept is None:
            return
        if self.rules.most_kept is not None and self.counts.total() > self.rules.most_kept:
            # May go: the batch fails. If it is in already, what was found bad then is kept elsewhere.
            self.kept.discard()
            self.kept = None
            return
        rows = batch.take(pa.array(list(judged.faults), pa.int64()))
        self.kept.add(as_kept(rows, self._reasons(judged.faults), self.kept.schema))

    def _reasons(self, faults: Mapping[int, Fault]) -> dict[str, pa.Array]:
        now = pa.scalar(self.clock.now_ms() * 1000, pa.timestamp("us", tz="UTC"))
        return {
            TASK: pa.repeat(self.attempt_id, len(faults)),
            ROW: pa.array([self.seen + position for position in faults], pa.int64()),
            f"{OURS}rule": pa.array([fault.rule for fault in faults.values()], pa.string()),
            f"{OURS}column": pa.array([fault.column for fault in faults.values()], pa.string()),
            f"{OURS}message": pa.array([fault.message for fault in faults.values()], pa.string()),
            f"{OURS}at": pa.repeat(now, len(faults)),
            ATTEMPT: pa.repeat(pa.scalar(self.rules.attempt, pa.int32()), len(faults)),
        }

    def close(self) -> RejectedRows | None:
        if not self.counts:
            return None
        rows = 0 if self.kept is None else self.kept.rows
        return RejectedRows(dict(self.counts), None if self.kept is None else self.kept.close(), rows)

    def discard(self) -> None:
        if self.kept is not None:
            self.kept.discard()


class _Partitions:
    """Asks once for each partition whether a directory can be named by it."""

    def __init__(self, table: Table) -> None:
        self._files = table.files
        self._known: dict[tuple[object, ...], bool] = {}

    def unnamed(self, batch: pa.RecordBatch) -> Sequence[int]:
        if not self._files.partition_source_columns or not batch.num_rows:
            return ()
        return () if self._all_named(batch) else offenders(batch, self._all_named)

    def _all_named(self, batch: pa.RecordBatch) -> bool:
        try:
            columns = self._files.partition_values(batch)
            names = [str(position) for position in range(len(columns))]
            distinct = pa.Table.from_arrays(columns, names).group_by(names).aggregate([])
            found = zip(*(distinct[name].to_pylist() for name in names), strict=True)
            return all(self._is_named(values) for values in found)
        except (SchemaMismatchError, UnicodeDecodeError, OverflowError, ValueError):
            return False

    def _is_named(self, values: tuple[object, ...]) -> bool:
        if values not in self._known:
            try:
                self._files.new_path(values, attempt="0" * 36, number=0)
                self._known[values] = True
            except SchemaMismatchError:
                self._known[values] = False
        return self._known[values]
