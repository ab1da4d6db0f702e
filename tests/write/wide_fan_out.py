"""A task over a thousand partitions, in a process of its own: prints how far its memory grew. Run by test_fan_out."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.support.lake import Lake
from tests.write.support import commit, task

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("payload", pa.binary())])
ROWS, PARTITIONS, BATCH, PAYLOAD_BYTES = 400_000, 1_000, 10_000, 512


def batches(random: np.random.Generator) -> Iterator[pa.RecordBatch]:
    for start in range(0, ROWS, BATCH):
        ids = np.arange(start, start + BATCH)
        payload = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(PAYLOAD_BYTES), BATCH, [None, pa.py_buffer(random.bytes(BATCH * PAYLOAD_BYTES))]
        )
        parts = pa.array(ids % PARTITIONS, pa.int32())
        yield pa.RecordBatch.from_arrays([pa.array(ids), parts, payload.cast(pa.binary())], schema=SCHEMA)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    lake = Lake({"warehouse": sys.argv[1]}).with_options(partitionBy="part")
    task(lake, SCHEMA, [])
    before = peak_bytes()
    message = task(lake, SCHEMA, batches(np.random.default_rng(seed=7)))
    grown = peak_bytes() - before
    commit(lake, SCHEMA, message)
    sys.stdout.write(f"{grown}\n")


if __name__ == "__main__":
    main()
