"""What the named steps cost when nobody listens: a batch with them as they are, and one with the call taken out.

Product code announces where it is with ``reached(step)``. The first figure counts those calls in a batch and multiplies
them by the time of one call. The second runs the same batch in turns, with the seam and with a function in its place
that does nothing, and compares the processor time of the fastest ones: wall clock would show what else the machine
does. The third is the noise that remains: the same batch against itself.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import timeit
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from paimon_sink.commit import coordinator
from paimon_sink.core.steps import Step, listening, reached
from paimon_sink.write import files, task
from tests.support.lake import Lake

USERS_OF_THE_SEAM = (coordinator, files, task)
CALLS = 400_000


@dataclass(frozen=True)
class Result:
    """Shares and ratios are of a whole batch: write and commit. Ratios compare processor time."""

    rows: int
    repetitions: int
    steps: dict[str, int]
    ns_a_call: float
    batch_ms: float
    share: float
    ratio_with_to_without: float
    ratio_of_noise: float


def batch(rows: int, batch_rows: int) -> list[pa.RecordBatch]:
    days = ["monday", "tuesday", "wednesday", "thursday"]
    table = pa.table({"id": range(rows), "day": [days[i % 4] for i in range(rows)]})
    return [piece for piece in table.to_batches(max_chunksize=batch_rows) if piece.num_rows]


@dataclass(frozen=True)
class Took:
    """Seconds that one batch took."""

    wall: float
    processor: float


def write_and_commit(lake: Lake, batches: Sequence[pa.RecordBatch], batch_id: int) -> Took:
    wall, processor = time.perf_counter(), time.process_time()
    lake.commit(batch_id, lake.write(*batches))
    return Took(time.perf_counter() - wall, time.process_time() - processor)


@contextmanager
def without_the_seam() -> Iterator[None]:
    """The modules that announce steps call a function that does nothing instead."""

    def nothing(step: Step) -> None:
        pass

    with ExitStack() as stack:
        for module in USERS_OF_THE_SEAM:
            stack.enter_context(mock.patch.object(module, "reached", nothing))
        yield


def ns_a_call() -> float:
    """The best of five, the loop around it included: an upper bound."""
    given = {"reached": reached, "step": Step.ROWS_WRITTEN}
    taken = timeit.repeat("reached(step)", globals=given, number=CALLS, repeat=5, timer=time.process_time)
    return min(taken) / CALLS * 1e9


def measure(*, rows: int, batch_rows: int, repetitions: int) -> Result:
    batches = batch(rows, batch_rows)
    counted: Counter[str] = Counter()
    times: dict[str, list[Took]] = {"with": [], "without": [], "with again": []}
    with tempfile.TemporaryDirectory() as directory:
        lake = Lake({"warehouse": directory}).with_options(partitionBy="day")
        with listening(lambda step: counted.update([step.value])):
            write_and_commit(lake, batches, 0)
        # In turns, and in another order each time, so that a slow moment of the machine hits all alike.
        for turn in range(repetitions):
            kinds = list(times)[turn % 3 :] + list(times)[: turn % 3]
            for place, kind in enumerate(kinds):
                with ExitStack() as stack:
                    if kind == "without":
                        stack.enter_context(without_the_seam())
                    times[kind].append(write_and_commit(lake, batches, 1 + 3 * turn + place))
    cost, seconds = ns_a_call(), statistics.median(took.wall for took in times["with"])
    return Result(
        rows=rows,
        repetitions=repetitions,
        steps=dict(counted),
        ns_a_call=cost,
        batch_ms=seconds * 1e3,
        share=counted.total() * cost / 1e9 / seconds,
        ratio_with_to_without=_ratio(times["with"], times["without"]),
        ratio_of_noise=_ratio(times["with"], times["with again"]),
    )


def _ratio(one: Sequence[Took], other: Sequence[Took]) -> float:
    return min(took.processor for took in one) / min(took.processor for took in other)


def show(result: Result) -> None:
    table = Table(box=box.SIMPLE_HEAD, title=f"The named steps in a batch of {result.rows:,} rows", show_header=False)
    steps = ", ".join(f"{count} {name}" for name, count in result.steps.items())
    table.add_row("steps announced", f"{sum(result.steps.values())} ({steps})")
    table.add_row("one call, nobody listening", f"{result.ns_a_call:.0f} ns")
    table.add_row("one batch, write and commit", f"{result.batch_ms:.0f} ms")
    table.add_row("steps x call, as a share of the batch", f"{result.share:.7%}")
    table.add_row(f"with / without the seam, best of {result.repetitions}", f"{result.ratio_with_to_without:.3f}")
    table.add_row("the same batch against itself (noise)", f"{result.ratio_of_noise:.3f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch-rows", type=int, default=10_000, help="rows of one Arrow batch; Spark sends 10,000")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    result = measure(rows=arguments.rows, batch_rows=arguments.batch_rows, repetitions=arguments.repetitions)
    if arguments.json:
        print(json.dumps(asdict(result), indent=2))
    else:
        show(result)


if __name__ == "__main__":
    main()
