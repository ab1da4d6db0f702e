"""Lists that are all empty arrive from Spark 4.1 without offsets of their items: they are written like any other."""

from __future__ import annotations

import multiprocessing

import pyarrow as pa
import pytest

from tests.support.lake import Lake
from tests.write.support import commit, task

NO_BYTES = pa.foreign_buffer(0, 0)
TEXTS = pa.Array.from_buffers(pa.string(), 0, [None, NO_BYTES, pa.py_buffer(b"")])
LISTS = pa.Array.from_buffers(pa.list_(pa.int32()), 0, [None, NO_BYTES], children=[pa.array([], pa.int32())])
ITEMS = {"texts": TEXTS, "lists": LISTS, "structs of lists": pa.StructArray.from_arrays([LISTS], ["inner"])}


def write_empty_lists(warehouse: str, kind: str, partition: str) -> None:
    items = ITEMS[kind]
    empty = pa.Array.from_buffers(pa.list_(items.type), 2, [None, pa.py_buffer(bytes(12))], children=[items])
    rows = pa.record_batch({"id": pa.array([1, 2], pa.int64()), "day": pa.array(["a", "b"]), "found": empty})
    lake = Lake({"warehouse": warehouse}).with_options(**({"partitionBy": partition} if partition else {}))
    commit(lake, rows.schema, task(lake, rows.schema, [rows]))


@pytest.mark.parametrize("partition", ["", "day"], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("kind", ITEMS)
def test_empty_lists_without_offsets_are_written(local_lake: Lake, kind: str, partition: str) -> None:
    # In a process of its own: what goes wrong here ends the process.
    writer = multiprocessing.get_context("fork").Process(
        target=write_empty_lists, args=(local_lake.options["warehouse"], kind, partition)
    )
    writer.start()
    writer.join()

    assert writer.exitcode == 0
    assert [(row["id"], row["found"]) for row in sorted(local_lake.read(), key=str)] == [(1, []), (2, [])]
