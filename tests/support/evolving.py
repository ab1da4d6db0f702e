"""Writers that may change the columns of their table, below Spark and planned as Spark plans them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from paimon_sink.core.evolve import dotted
from paimon_sink.formats.evolution import ColumnInfo
from paimon_sink.sink import Sink
from tests.support.lake import Lake

__all__ = ["WIDEN", "append", "columns", "field_ids", "job", "planned", "schema_ids", "sink", "with_note"]

MERGE = {"mergeSchema": "true"}
WIDEN = {**MERGE, "mergeSchema.typeWidening": "true"}


def sink(lake: Lake, **options: str) -> Sink:
    return Sink.of({**lake.all_options(), **_spelled(options)})


def job(lake: Lake, *, overwrite: bool, **options: str) -> Sink:
    return Sink.of({**lake.all_options(), **_spelled(options)}, overwrite=overwrite, is_stream=False)


def _spelled(options: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("__", "."): value for key, value in options.items()}


def planned(lake: Lake, schema: pa.Schema, *, widen: bool = False) -> None:
    """Plan a write with these columns, which changes the table."""
    Sink.of({**lake.all_options(), **(WIDEN if widen else MERGE)}).check(schema)


def append(lake: Lake, batch_id: int, rows: pa.Table, *, merge: bool = True, widen: bool = False) -> None:
    """One batch of a stream whose write is planned before it."""
    writer = Sink.of({**lake.all_options(), **(WIDEN if widen else MERGE if merge else {})})
    writer.check(rows.schema)
    writer.commit([writer.write(iter(rows.to_batches()), schema=rows.schema)], batch_id)


def with_note(*ids: int, day: str = "monday") -> pa.Table:
    """Rows of the schema ``ID_AND_DAY`` with one column more."""
    return pa.table({"id": list(ids), "day": [day] * len(ids), "note": [f"of {number}" for number in ids]})


def columns(lake: Lake) -> Sequence[ColumnInfo]:
    """Those of today, with all that is inside them."""
    evolution = lake.open().evolution
    assert evolution is not None
    return evolution.versions()[-1].columns


def field_ids(lake: Lake) -> dict[str, int | None]:
    return {dotted(column.path): column.field_id for column in columns(lake)}


def schema_ids(lake: Lake) -> list[int]:
    evolution = lake.open().evolution
    assert evolution is not None
    return [version.schema_id for version in evolution.versions()]
