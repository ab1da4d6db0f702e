"""The rows that benchmarks write: five columns, the same in every run, in Arrow batches or in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["BATCH", "SCHEMA", "SPARK_SCHEMA", "Source", "batches"]

BATCH = 10_000
"""Rows of an Arrow batch, as Spark sends them."""
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("quantity", pa.int32()),
        ("price", pa.float64()),
        ("item", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
SPARK_SCHEMA = "id BIGINT, quantity INT, price DOUBLE, item STRING, at TIMESTAMP"
_ITEMS = 50_000
_EPOCH_US = 1_700_000_000_000_000


def batches(rows: int, *, first: int = 0, quantities: int = 100, batch: int = BATCH) -> Iterator[pa.RecordBatch]:
    """Ids and times go up, a quantity is one of so many, prices are random, and items come from a list."""
    random = np.random.default_rng(seed=first + 7)
    items = pa.array([f"item-{number}" for number in range(_ITEMS)])
    for start in range(first, first + rows, batch):
        count = min(batch, first + rows - start)
        ids = np.arange(start, start + count)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(ids),
                pa.array(random.integers(0, quantities, count, dtype=np.int32)),
                pa.array(random.random(count) * 1000),
                items.take(pa.array(random.integers(0, _ITEMS, count))),
                pa.array(ids + _EPOCH_US, SCHEMA.field("at").type),
            ],
            schema=SCHEMA,
        )


@dataclass(frozen=True)
class Source:
    """A directory of Parquet files of one size."""

    directory: Path
    rows: int
    files: int

    def write(self) -> None:
        self.directory.mkdir(parents=True)
        bounds = [number * self.rows // self.files for number in range(self.files + 1)]
        for number, (first, end) in enumerate(pairwise(bounds)):
            whole = pa.Table.from_batches(batches(end - first, first=first, batch=1_000_000), schema=SCHEMA)
            pq.write_table(whole, self.directory / f"{number:04d}.parquet", compression="zstd")

    def bytes_a_file(self) -> int:
        return max(path.stat().st_size for path in self.directory.iterdir())
