"""In a task: good rows go on to the data files, bad ones into a file beside the table, with their reasons.

That file is nobody's until the batch is in. The driver makes one of those of all tasks, which the put of the batch
names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from paimon_sink.core.checks import Check
from paimon_sink.core.clock import Clock
from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.judging import Fault, Judge, offenders
from paimon_sink.core.quarantine import ATTEMPT, OURS, ROW, TABLE, TASK, as_kept, kept_schema
from paimon_sink.core.rejected import REJECTED, RejectedRows
from paimon_sink.core.schema import Alignment
from paimon_sink.formats.contract import Table
from paimon_sink.write.files import TaskAttempt
from paimon_sink.write.kept_rows import KeptRows

__all__ = ["Keeper", "Rejections", "Rules", "Sieve"]


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
class Keeper:
    """The bad rows of one task, in one file, unless they are more than a batch may have."""

    open_file: Callable[[], KeptRows]
    most: int | None
    """None: none are kept."""
    rows: int = 0
    _kept: KeptRows | None = None

    def add(self, count: int, rows: Callable[[pa.Schema], pa.RecordBatch]) -> None:
        """So many more. ``rows`` gives them as they are kept."""
        self.rows += count
        if self.most is None:
            return
        if self.rows > self.most:
            # May go: the batch fails. If it is in already, what was found bad then is kept elsewhere.
            self.discard()
            return
        if self._kept is None:
            self._kept = self.open_file()
        self._kept.add(rows(self._kept.schema))

    def close(self, counts: Mapping[str, int]) -> RejectedRows | None:
        if not counts:
            return None
        if self._kept is None or (self.most is not None and self.rows > self.most):
            return RejectedRows(dict(counts))
        return RejectedRows(dict(counts), self._kept.close(), self._kept.rows)

    def discard(self) -> None:
        if self._kept is not None:
            self._kept.discard()
            self._kept = None


@dataclass
class Rejections:
    """The bad rows of one task that were to go into one table: counted, and kept with their reasons."""

    keeper: Keeper
    label: str
    attempt_id: str
    clock: Clock
    attempt: int = 1
    """Which try at writing the rows this is."""
    counts: Counter[str] = field(default_factory=Counter)
    seen: int = 0
    """Rows of batches before."""

    def take(self, batch: pa.RecordBatch, faults: Mapping[int, Fault]) -> None:
        """Of a batch, those at these positions."""
        if faults:
            self.counts.update(fault.rule for fault in faults.values())
            self.keeper.add(len(faults), lambda schema: self._as_kept(batch, faults, schema))
        self.seen += batch.num_rows

    def _as_kept(self, batch: pa.RecordBatch, faults: Mapping[int, Fault], schema: pa.Schema) -> pa.RecordBatch:
        now = pa.scalar(self.clock.now_ms() * 1000, pa.timestamp("us", tz="UTC"))
        reasons = {
            TABLE: pa.repeat(self.label, len(faults)),
            TASK: pa.repeat(self.attempt_id, len(faults)),
            ROW: pa.array([self.seen + position for position in faults], pa.int64()),
            f"{OURS}rule": pa.array([fault.rule for fault in faults.values()], pa.string()),
            f"{OURS}column": pa.array([fault.column for fault in faults.values()], pa.string()),
            f"{OURS}message": pa.array([fault.message for fault in faults.values()], pa.string()),
            f"{OURS}at": pa.repeat(now, len(faults)),
            ATTEMPT: pa.repeat(pa.scalar(self.attempt, pa.int32()), len(faults)),
        }
        return as_kept(batch.take(pa.array(list(faults), pa.int64())), reasons, schema)

    def close(self) -> RejectedRows | None:
        return self.keeper.close(self.counts)


@dataclass(frozen=True)
class Sieve:
    """Of one task, for one table."""

    judge: Judge
    rejections: Rejections
    left_out: tuple[str, ...] = ()
    """Columns that come and are kept, and of which the table has none."""

    @classmethod
    def of(
        cls,
        rules: Rules,
        attempt: TaskAttempt,
        incoming: pa.Schema,
        alignment: Alignment,
        clock: Clock,
        *,
        keeper: Keeper | None = None,
        left_out: tuple[str, ...] = (),
    ) -> Sieve:
        judge = Judge(
            alignment,
            rules.checks,
            rules.error_column,
            takes_misfits=rules.most_kept is not None,
            unnamed_partitions=_Partitions(attempt.table).unnamed,
        )
        own = Keeper(lambda: KeptRows(attempt.table, kept_schema(incoming), REJECTED), rules.most_kept)
        rejections = Rejections(keeper or own, attempt.table.label, attempt.attempt_id, clock, rules.attempt)
        return cls(judge, rejections, left_out)

    def good_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """As the table has them. What is left out is kept."""
        judged = self.judge.judge(batch.drop_columns(list(self.left_out)) if self.left_out else batch)
        self.rejections.take(batch, judged.faults)
        return judged.good

    def close(self) -> RejectedRows | None:
        return self.rejections.close()

    def discard(self) -> None:
        self.rejections.keeper.discard()


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
