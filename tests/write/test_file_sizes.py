"""Files near their target size, whatever the rows look like. The last file of a partition is as small as it must be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from tests.support.lake import Lake
from tests.write.support import commit, sizes_on_disk, task

Shape = Callable[[int, np.random.Generator], pa.Table]

TARGETS = {"256kb": 1 << 18, "1mb": 1 << 20, "4mb": 1 << 22}


def random_doubles(size_bytes: int, random: np.random.Generator) -> pa.Table:
    return pa.table({"value": random.random(size_bytes // 8)})


def highly_compressible(size_bytes: int, random: np.random.Generator) -> pa.Table:
    rows = size_bytes // 3
    words = pa.array(["order delivered to the customer", "order shipped from the warehouse", "order returned"])
    return pa.table({"event": words.take(pa.array(random.integers(0, 3, rows))), "at": np.arange(rows) // 2})


def wide_strings(size_bytes: int, random: np.random.Generator) -> pa.Table:
    return pa.table({"text": [random.bytes(1_500).hex() for _ in range(size_bytes // 1_550)]})


def mixed_columns(size_bytes: int, random: np.random.Generator) -> pa.Table:
    rows = size_bytes // 12
    names = pa.array([f"customer {i}" for i in range(5_000)])
    return pa.table(
        {
            "id": np.arange(rows),
            "price": random.random(rows),
            "name": names.take(pa.array(random.integers(0, 5_000, rows))),
            "paid": random.random(rows) > 0.5,
            "note": pa.array(np.where(random.random(rows) > 0.9, "urgent", "later"), mask=random.random(rows) > 0.5),
        }
    )


def compressible_then_random(size_bytes: int, random: np.random.Generator) -> pa.Table:
    rows = size_bytes // 8
    return pa.table({"value": np.concatenate([np.zeros(rows), random.random(rows)])})


def random_then_compressible(size_bytes: int, random: np.random.Generator) -> pa.Table:
    rows = size_bytes // 8
    return pa.table({"value": np.concatenate([random.random(rows), np.zeros(rows)])})


def long_then_short_strings(size_bytes: int, random: np.random.Generator) -> pa.Table:
    long = [random.bytes(500).hex() for _ in range(size_bytes // 640)]
    return pa.table({"text": [*long, *(f"{i:x}" for i in range(len(long) * 30))]})


SHAPES: list[Shape] = [
    random_doubles,
    highly_compressible,
    wide_strings,
    mixed_columns,
    compressible_then_random,
    random_then_compressible,
    long_then_short_strings,
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_files_roll_within_a_fifth_of_the_target(shape: Shape, target: str, local_lake: Lake) -> None:
    lake = local_lake.with_options(targetFileSize=target)
    rows = shape(3 * TARGETS[target], np.random.default_rng(seed=7))

    message = task(lake, rows.schema, rows.to_batches(max_chunksize=10_000))

    sizes = sizes_on_disk(lake, message)
    shares = [size / TARGETS[target] for size in sizes]
    assert len(shares) >= 3
    assert all(0.8 <= share <= 1.2 for share in shares[:-1]), shares
    assert shares[-1] <= 1.2, shares
    assert sizes == [file.size_bytes for file in message.files]
    assert sum(file.rows for file in message.files) == rows.num_rows


def test_a_partition_that_compresses_well_does_not_swell_the_files_of_another(local_lake: Lake) -> None:
    lake = local_lake.with_options(targetFileSize="256kb", partitionBy="kind")
    random, count = np.random.default_rng(seed=7), 100_000
    calm = pa.table({"kind": pa.array(["calm"] * count), "value": np.zeros(count)})
    wild = pa.table({"kind": pa.array(["wild"] * count), "value": random.random(count)})
    both = pa.concat_tables([calm, wild])

    message = task(lake, both.schema, both.to_batches(max_chunksize=10_000))

    wild_sizes = [file.size_bytes for file in message.files if file.partition == ("wild",)]
    assert len(wild_sizes) >= 3
    assert all(0.8 <= size / TARGETS["256kb"] <= 1.2 for size in wild_sizes[:-1]), wild_sizes


@pytest.mark.witness
def test_files_roll_on_every_store_and_hold_all_rows_in_order(lake: Lake) -> None:
    lake = lake.with_options(targetFileSize="64kb")
    rows = pa.table({"id": np.arange(60_000), "value": np.random.default_rng(seed=7).random(60_000)})

    message = task(lake, rows.schema, rows.to_batches(max_chunksize=1_000))
    commit(lake, rows.schema, message)

    assert len(message.files) >= 5
    assert sizes_on_disk(lake, message) == [file.size_bytes for file in message.files]
    assert lake.ids() == list(range(60_000))


def test_one_row_larger_than_the_target_is_one_file(local_lake: Lake) -> None:
    lake = local_lake.with_options(targetFileSize="1kb")
    random = np.random.default_rng(seed=7)
    rows = pa.table({"id": [0, 1, 2], "blob": [random.bytes(10_000) for _ in range(3)]})

    message = task(lake, rows.schema, rows.to_batches())

    assert [file.rows for file in message.files] == [1, 1, 1]
