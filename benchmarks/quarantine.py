"""What judging costs: the same rows into the same table, with and without a quarantine and two checks. No JVM.

Runs of both alternate, and the figure is the median of the ratios of neighbours: a machine that slows down slows both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from paimon_sink.sink import Sink

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("customer", pa.int64()),
        ("amount", pa.float64()),
        ("note", pa.string()),
        ("day", pa.string()),
    ]
)
JUDGED = {
    "quarantine": "sales.bad",
    "quarantine.maxShare": "1",
    "quarantine.maxRows": "1000000000",
    "check.positive": "amount >= 0",
    "check.named": "id IS NOT NULL AND note LIKE 'note%'",
}
A_BATCH = 8192
"""What a task gathers small batches of Spark to."""


def batches(rows: int, *, bad: float) -> list[pa.RecordBatch]:
    made = []
    every = round(1 / bad) if bad else 0
    for start in range(0, rows, A_BATCH):
        ids = range(start, min(start + A_BATCH, rows))
        amounts = [-1.0 if every and row % every == 0 else row * 0.5 for row in ids]
        columns = [list(ids), [row % 10_000 for row in ids], amounts]
        columns += [[f"note {row * 7919 % 100_003}" for row in ids], [f"2026-11-{row % 4 + 1:02d}" for row in ids]]
        made.append(pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)],
                                               schema=SCHEMA))  # fmt: skip
    return made


def seconds(place: Path, rows: list[pa.RecordBatch], number: int, options: dict[str, str]) -> float:
    table = {"warehouse": str(place), "table": f"sales.orders{number}", "commitUser": "bench", **options}
    sink = Sink.of(table)
    sink.check(SCHEMA)
    began = time.process_time()
    sink.commit([sink.write(iter(rows), schema=SCHEMA)], batch_id=0)
    return time.process_time() - began


def measured(rows: int, turns: int, *, bad: float, partitioned: bool) -> dict[str, float]:
    """Throughput with judging, as a share of that without."""
    plain = {"partitionBy": "day"} if partitioned else {}
    good, mixed = batches(rows, bad=0), batches(rows, bad=bad)
    ratios, without = [], []
    with tempfile.TemporaryDirectory() as directory:
        for turn in range(turns + 1):
            pair = [seconds(Path(directory), good, 2 * turn, plain)]
            pair.append(seconds(Path(directory), mixed, 2 * turn + 1, {**plain, **JUDGED}))
            if turn:
                # The first turn warms up.
                ratios.append(pair[0] / pair[1])
                without.append(pair[0])
    return {"ratio": statistics.median(ratios), "rows_per_s": rows / statistics.median(without)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {
        f"{bad:.0%} bad rows{', four partitions' if partitioned else ''}": measured(
            given.rows, given.turns, bad=bad, partitioned=partitioned
        )
        for bad, partitioned in ((0.0, False), (0.0, True), (0.01, False), (0.1, False))
    }
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for name, figures in found.items():
        print(f"{name:<32} {figures['ratio']:.3f} of the throughput without ({figures['rows_per_s']:,.0f} rows/s)")


if __name__ == "__main__":
    main()
