"""Random histories of a table: appends of small files, overwrites, compactions, tags, and columns that change.

Each file has values from a narrow part of each column's range, and each of its row groups from a narrower one, so that
statistics rule most of them out; the values are those of ``where_cases.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa
from pyiceberg.types import DecimalType, DoubleType, LongType
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from paimon_sink.write.fanout import Limits
from tests.spark.where_cases import (
    FIELDS,
    KINDS,
    LATE,
    METRICS,
    PLAIN_PARTITIONS,
    TRANSFORMS,
    Case,
    Kind,
    arrow_column,
    count_of,
    field_of,
)
from tests.support import foreign, tasks
from tests.support.batches import sealed
from tests.support.compaction import compact
from tests.support.engines import other_engine
from tests.support.iceberg_engine import native
from tests.support.lake import Lake

__all__ = ["History", "Version", "play"]

STEPS = 14
GROUP_ROWS = 3
EVENTS = ["append"] * 7 + ["overwrite", "compact", "tag", "tag", "add", "drop", "rename", "rename", "widen", "widen"]
TEXT = KINDS[LATE]
WIDER: dict[str, tuple[pa.DataType, str, Any]] = {
    "i": (pa.int64(), "BIGINT", LongType()),
    "f": (pa.float64(), "DOUBLE", DoubleType()),
    "p": (pa.decimal128(12, 2), "DECIMAL(12, 2)", DecimalType(12, 2)),
}
"""Columns that may become wider: the type in Arrow, and in each format's words."""


@dataclass(frozen=True)
class Version:
    """One way to ask for a snapshot or a range, and what conditions may say of it."""

    options: Mapping[str, str]
    columns: Mapping[str, Kind]

    def case(self, history: History, schema: pa.Schema) -> Case:
        kinds = {**self.columns, **(FIELDS if self.columns.get("st") is KINDS["st"] else {})}
        pools = {name: [*kind.tame, *kind.wild] for name, kind in kinds.items()}
        return Case(history.lake, history.described, pools, schema, kinds)


@dataclass
class History:
    """A table with a past."""

    lake: Lake
    described: str
    fixed: frozenset[str]
    """Columns that the table is partitioned by."""
    columns: dict[str, Kind]
    dropped: list[str] = field(default_factory=list)
    snapshots: dict[int, dict[str, Kind]] = field(default_factory=dict)
    """The columns of each, oldest first."""
    tags: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    batches: int = 0

    def version(self, rng: Random) -> Version:
        """A snapshot by its id, its tag or its time; the newest; or a range."""
        ids = list(self.snapshots)
        way = rng.choice(["id", "id", "tag", "time", "newest", "range", "range"])
        if way == "newest":
            return Version({}, self.columns)
        if way == "tag" and self.tags:
            name = rng.choice(list(self.tags))
            return Version({"versionAsOf": name}, self.snapshots[self.tags[name]])
        if way == "time":
            times = {info.at_ms: info.snapshot_id for info in self.lake.history()}
            at_ms = rng.choice(list(times))
            return Version({"timestampAsOf": str(at_ms)}, self.snapshots[times[at_ms]])
        if way == "range":
            first, last = sorted(rng.choices(range(len(ids)), k=2))
            ends = {"startingVersion": str(ids[first]), "endingVersion": str(ids[last]), "skipChangeCommits": "true"}
            return Version(ends, self.snapshots[ids[last]])
        chosen = rng.choice(ids)
        return Version({"versionAsOf": str(chosen)}, self.snapshots[chosen])


def play(rng: Random, warehouse: str, table_format: str, *, is_partitioned: bool) -> History:
    """Partitions make small files: of those with several row groups, most are in tables without."""
    iceberg = table_format == "iceberg"
    partition_by = rng.choice([*PLAIN_PARTITIONS, *(TRANSFORMS if iceberg else [])]) if is_partitioned else ""
    extra = {"partitionBy": partition_by} if partition_by else {}
    if iceberg:
        extra["table.write.metadata.metrics.default"] = rng.choice(METRICS)
    words = partition_by.replace("(", " ").replace(")", " ").replace(",", " ").split()
    fixed = frozenset(name for name in KINDS if name in words or name == partition_by)
    lake = Lake({"warehouse": warehouse, "tableFormat": table_format}, extra=extra)
    columns = {name: kind for name, kind in KINDS.items() if name != LATE}
    history = History(lake, f"{table_format} {extra}", fixed, columns)
    for step in range(STEPS):
        _event(rng, history, "append" if step < 2 else rng.choice(EVENTS), step)
    return history


def _event(rng: Random, history: History, event: str, step: int) -> None:
    lake, engine = history.lake, other_engine(history.lake)
    free = [name for name in history.columns if name not in history.fixed and "." not in name]
    if event in ("append", "overwrite"):
        _write(rng, history, overwrite=event == "overwrite")
    elif event == "compact":
        compact(lake)
    elif event == "tag":
        history.tags[f"tag-{step}"] = rng.choice(list(history.snapshots))
        lake.open().refs.tag(f"tag-{step}", history.tags[f"tag-{step}"])
    elif event == "add":
        # Sometimes under the name of one that is gone, which is another column.
        name = history.dropped.pop() if history.dropped else f"late{step}"
        engine.add_column(name)
        history.columns[name] = TEXT
    elif event in ("drop", "rename"):
        name = rng.choice(free)
        kind = history.columns.pop(name)
        history.dropped.append(name)
        if event == "drop":
            engine.drop_column(name)
        else:
            engine.rename_column(name, f"{name}{step}")
            history.columns[f"{name}{step}"] = kind
    elif event == "widen":
        _widen(rng, history)
    for snapshot_id in lake.snapshot_ids():
        history.snapshots.setdefault(snapshot_id, dict(history.columns))


def _widen(rng: Random, history: History) -> None:
    narrow = [name for name in WIDER if history.columns.get(name) is KINDS[name] and name not in history.fixed]
    if not narrow:
        return
    name = rng.choice(narrow)
    arrow_type, sql_type, iceberg_type = WIDER[name]
    if history.lake.format == "iceberg":
        with native(history.lake).update_schema() as update:
            update.update_column(name, iceberg_type)
    else:
        change = SchemaChange.update_column_type(name, AtomicType(sql_type))
        foreign.catalog(history.lake).alter_table(history.lake.table, [change], False)
    more = KINDS["l"].wild if name == "i" else []
    history.columns[name] = replace(KINDS[name], type=arrow_type, wild=[*KINDS[name].wild, *more])


# ---------------------------------------------------------------- rows


def _write(rng: Random, history: History, *, overwrite: bool) -> None:
    schema = pa.schema([*(field_of(name, kind) for name, kind in history.columns.items()), pa.field("id", pa.int64())])
    messages = []
    for _ in range(rng.choice([1, 2, 3])):
        counts = [GROUP_ROWS] * rng.choice([1, 2, 3])
        columns = [_column(rng, kind, counts, is_fixed=name in history.fixed) for name, kind in history.columns.items()]
        ids = pa.array(range(history.rows, history.rows + sum(counts)), pa.int64())
        history.rows += sum(counts)
        batch = pa.RecordBatch.from_arrays([*columns, ids], schema=schema)
        groups = [batch.slice(start, GROUP_ROWS) for start in range(0, batch.num_rows, GROUP_ROWS)]
        messages.append(sealed(tasks.write(history.lake, groups, schema, limits=Limits(row_group_rows=GROUP_ROWS))))
    history.lake.commit(history.batches, *messages, overwrite=overwrite)
    history.batches += 1


def _column(rng: Random, kind: Kind, counts: Sequence[int], *, is_fixed: bool) -> pa.Array:
    """A few neighbouring values for each row group. Partitions are few, and have names that any engine can write."""
    pool = list(kind.tame) if is_fixed else _in_order(kind)
    if is_fixed:
        pool = pool[:3]
    values: list[Any] = []
    for count in counts:
        nulls = rng.choice([0.0, 0.0, 0.0, 0.3, 1.0])
        first = rng.randrange(len(pool))
        near = pool[first : first + rng.choice([1, 1, 2, 3])]
        values += [None if rng.random() < nulls else rng.choice(near) for _ in range(count)]
    return arrow_column(kind, values)


def _in_order(kind: Kind) -> list[Any]:
    pool = [*kind.tame, *kind.wild]
    if pa.types.is_nested(kind.type):
        return pool
    if pa.types.is_temporal(kind.type):
        return sorted(pool, key=lambda value: count_of(value, kind.type) or 0)
    if pa.types.is_floating(kind.type):
        return sorted(pool, key=lambda value: (math.isnan(value), value))
    return sorted(pool)
