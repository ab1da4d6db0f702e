"""Another engine on the same table: pypaimon as it comes, with its own files, its own commit and its own reader."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pypaimon

from tests.support.lake import Lake

__all__ = ["append", "catalog", "create", "overwrite", "read", "table"]

_STORAGE = {
    "s3.endpoint": "fs.s3.endpoint",
    "s3.access-key-id": "fs.s3.accessKeyId",
    "s3.secret-access-key": "fs.s3.accessKeySecret",
    "s3.region": "fs.s3.region",
}


def catalog(lake: Lake) -> Any:
    options = {theirs: lake.options[ours] for ours, theirs in _STORAGE.items() if ours in lake.options}
    if lake.options.get("catalog.type") == "rest":
        named = {
            key: value for key, value in lake.options.items() if key.startswith("catalog.") and key != "catalog.type"
        }
        options |= {"metastore": "rest", **{key.removeprefix("catalog."): value for key, value in named.items()}}
    return pypaimon.CatalogFactory.create({"warehouse": lake.options["warehouse"], **options})


def table(lake: Lake) -> Any:
    return catalog(lake).get_table(lake.table)


def create(lake: Lake, schema: pa.Schema, **arguments: Any) -> Any:
    """Create the lake's table with pypaimon; ``options``, ``partition_keys`` and ``primary_keys`` as it names them."""
    found = catalog(lake)
    found.create_database(lake.table.split(".")[0], True)
    found.create_table(lake.table, pypaimon.Schema.from_pyarrow_schema(schema, **arguments), False)
    return found.get_table(lake.table)


def append(lake: Lake, rows: pa.RecordBatch, *, commit_user: str | None = None, identifier: int | None = None) -> None:
    """A batch write, or with an identifier a stream commit."""
    native = table(lake)
    builder = native.new_batch_write_builder() if identifier is None else native.new_stream_write_builder()
    if commit_user is not None:
        builder._with_commit_user(commit_user)
    _commit(builder, rows, identifier)


def overwrite(lake: Lake, rows: pa.RecordBatch) -> None:
    _commit(table(lake).new_batch_write_builder().overwrite(), rows, None)


def read(lake: Lake, predicate: Any = None) -> pa.Table:
    builder = table(lake).new_read_builder()
    if predicate is not None:
        builder = builder.with_filter(predicate)
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def _commit(builder: Any, rows: pa.RecordBatch, identifier: int | None) -> None:
    writer, commit = builder.new_write(), builder.new_commit()
    try:
        writer.write_arrow_batch(rows)
        if identifier is None:
            commit.commit(writer.prepare_commit())
        else:
            commit.commit(writer.prepare_commit(identifier), identifier)
    finally:
        writer.close()
        commit.close()
