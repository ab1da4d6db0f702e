"""A read from the first to the last step: what is asked for, the tasks it takes, and the rows of one.

A :class:`Scan` says which snapshot or range, which columns and which rows. It is planned once, against one snapshot:
its columns and its files come from there, and travel in the tasks together with the conditions on rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from paimon_sink.core.condition_names import ConditionError, matching_column
from paimon_sink.core.condition_rows import apply_filters
from paimon_sink.core.conditions import ConditionTree, columns_of
from paimon_sink.core.errors import OptionError, TableChangedError
from paimon_sink.core.names import nearest_name
from paimon_sink.core.option_groups import ReadOptions
from paimon_sink.formats.contract import SnapshotScan, Table
from paimon_sink.formats.values import AsOf, FilterTree, SnapshotRange, Split
from paimon_sink.read.balance import balanced
from paimon_sink.read.partition import partition_conditions
from paimon_sink.read.pruning import pruning_filters
from paimon_sink.read.where import where_conditions

__all__ = ["METADATA", "ReadTask", "Scan", "rows"]

METADATA = {
    "_snapshot_id": pa.int64(),
    "_commit_time": pa.timestamp("us", tz="UTC"),
    "_file": pa.string(),
}
"""Columns that are not in the table, by name."""


@dataclass(frozen=True)
class ReadTask:
    """What one task reads. It travels: nothing in it has to be found again."""

    splits: tuple[Split, ...]
    schema: pa.Schema
    """The columns of the snapshot, and the metadata columns that were asked for."""
    metadata: tuple[str, ...]
    """Which of them are not in the table."""
    conditions: tuple[ConditionTree, ...]


@dataclass(frozen=True)
class Scan:
    """One snapshot of a table, or the appends of a range, opened to be read."""

    table: Table
    """With the columns that the snapshot has."""
    snapshot: SnapshotScan
    options: ReadOptions

    @classmethod
    def open(cls, table: Table, options: ReadOptions) -> Scan:
        """Finds the snapshot that the options ask for."""
        span = _span(options)
        as_of = AsOf(options.version_as_of, options.as_of_ms)
        snapshot = table.scans.at(as_of) if span is None else table.scans.appended(span)
        return cls(replace(table, schema=snapshot.schema), snapshot, options)

    @property
    def schema(self) -> pa.Schema:
        """The columns that a read gets."""
        chosen = [self._column(name) for name in self.options.columns] or list(self.snapshot.schema)
        return pa.schema([*chosen, *self._metadata])

    @property
    def everything(self) -> pa.Schema:
        """All columns there are to choose from."""
        return pa.schema([*self.snapshot.schema, *self._metadata])

    @cached_property
    def conditions(self) -> tuple[ConditionTree, ...]:
        """What every row has to meet, by the options ``partition.*`` and ``where``."""
        return (
            *partition_conditions(self.table, self.options.partition),
            *where_conditions(self.table, self.options.where),
        )

    def check_unchanged(self, field_ids: Mapping[str, int]) -> None:
        """Refuse where a column is another one than when the DataFrame was made: a name alone does not tell."""
        for name, field_id in field_ids.items():
            if self.snapshot.field_ids.get(name) != field_id:
                raise TableChangedError(
                    f"Cannot read {self.table.label}: its column {name} was dropped, renamed or replaced after this "
                    "DataFrame was made. Load the table again."
                )

    def splits(self) -> list[Split]:
        """The files to read, without those that can hold no row that is asked for."""
        return self._with_filters(self.snapshot.splits(self.filters()))

    def filters(self) -> list[FilterTree]:
        """What rules files out."""
        return pruning_filters(self.conditions, self.table.schema)

    def _with_filters(self, splits: list[Split]) -> list[Split]:
        """Each carries the filters: only who opens a file knows its row groups."""
        filters = tuple(self.filters())
        return [replace(split, filters=filters) for split in splits] if filters else splits

    def tasks(self, *, parallelism: int) -> list[ReadTask]:
        """Shared out evenly, the largest first. One at least: only tasks know what the session makes of `where`."""
        return self.tasks_of(self.splits(), parallelism=parallelism) or [self._task(())]

    def tasks_of(self, splits: Sequence[Split], *, parallelism: int) -> list[ReadTask]:
        """Some splits shared out in the same way."""
        shares = balanced(
            self._with_filters(list(splits)),
            cut=self.table.scans.cut,
            split_bytes=self.options.split_bytes,
            at_least=self.options.min_partitions or parallelism,
        )
        return [self._task(share) for share in shares]

    def _task(self, splits: Iterable[Split]) -> ReadTask:
        return ReadTask(tuple(splits), self.everything, self.options.metadata_columns, self.conditions)

    def _column(self, name: str) -> pa.Field:
        try:
            column = matching_column(name, self.snapshot.schema.names)
        except ConditionError as error:
            raise OptionError(f"Cannot read {self.table.label}: columns {error}.") from None
        if column is None:
            nearest = nearest_name(name, self.snapshot.schema.names)
            hint = f"Did you mean {nearest}? " if nearest is not None else ""
            raise OptionError(
                f"Cannot read {self.table.label}: columns names {name}, which it does not have. {hint}It has "
                f"{', '.join(self.snapshot.schema.names)}."
            )
        return self.snapshot.schema.field(column)

    @property
    def _metadata(self) -> list[pa.Field]:
        taken = [name for name in self.options.metadata_columns if name in self.snapshot.schema.names]
        if taken:
            raise OptionError(
                f"Cannot read {self.table.label}: metadataColumns asks for {taken[0]}, and the table has a column of "
                "that name. Leave it out."
            )
        return [pa.field(name, METADATA[name]) for name in self.options.metadata_columns]


def _span(options: ReadOptions) -> SnapshotRange | None:
    if options.starting_version is None and options.starting_ms is None:
        return None
    assert not isinstance(options.starting_version, str), "that is where a stream begins"
    return SnapshotRange(
        first=options.starting_version,
        last=options.ending_version,
        from_ms=options.starting_ms,
        to_ms=options.ending_ms,
        skip_changes=options.skip_change_commits,
    )


def rows(table: Table, task: ReadTask, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a task that meet its conditions, with the columns, and maybe more that the conditions need."""
    of_table = [name for name in columns if name not in task.metadata]
    needed = list(dict.fromkeys([*of_table, *columns_of(task.conditions)]))
    extra = [name for name in columns if name in task.metadata]
    for split in task.splits:
        for batch in table.scans.read_split(split, needed):
            kept = apply_filters(task.conditions, batch)
            yield kept if not extra else _with_metadata(kept, split, extra, table)


def _with_metadata(batch: pa.RecordBatch, split: Split, names: Sequence[str], table: Table) -> pa.RecordBatch:
    micros = None if split.committed_ms is None else split.committed_ms * 1000
    path = None if split.path is None else table.full_path(split.path)
    values = {"_snapshot_id": split.snapshot_id, "_commit_time": micros, "_file": path}
    for name in names:
        value = pa.scalar(values[name], METADATA[name])
        batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
    return batch
