"""What it costs to make Parquet of a row group, as tasks write it and in other ways: processor time and size.

In one process and without Spark. This is what a sink in Python adds to the Arrow drain, and nothing but a cheaper
encoding would make it less.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import Progress

from benchmarks.report import RESULTS, Bar, bars, median, save, show, timed
from benchmarks.rows import batches
from benchmarks.sinks import LEVEL
from paimon_sink.write.encoding import dictionary_columns
from paimon_sink.write.fanout import Limits

TURNS = 9
_DIFFERENCES, _SPLIT = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"


def ways(rows: pa.Table) -> dict[str, dict[str, Any]]:
    """By name, what each asks of the Parquet writer. The first is what tasks do."""
    dictionaries = dictionary_columns(rows)
    plain = [field for field in rows.schema if field.name not in dictionaries]
    counted = {
        field.name: _DIFFERENCES
        for field in plain
        if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)
    }
    split = {field.name: _SPLIT for field in plain if pa.types.is_floating(field.type)}
    ours = {"compression": "zstd", "compression_level": LEVEL, "use_dictionary": dictionaries}
    return {
        "as tasks write": ours,
        "without compression": {**ours, "compression": "none", "compression_level": None},
        "a dictionary for every column": {**ours, "use_dictionary": True},
        "no dictionaries": {**ours, "use_dictionary": False},
        "integers and times as differences": {**ours, "column_encoding": counted},
        "and doubles split into bytes": {**ours, "column_encoding": {**counted, **split}},
    }


def encode(rows: pa.Table, way: Mapping[str, Any]) -> int:
    """One row group. The bytes it has become."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, write_page_index=True, store_schema=False, **way) as writer:
        writer.write_table(rows, row_group_size=rows.num_rows)
    return len(sink.getvalue())


def measure(rows: pa.Table, *, turns: int, progress: Progress) -> list[dict[str, Any]]:
    found = ways(rows)
    taken: dict[str, list[float]] = {name: [] for name in found}
    bar = progress.add_task("row groups", total=turns * len(found))
    for _ in range(turns):
        for name, way in found.items():
            taken[name].append(timed(partial(encode, rows, way)).cpu_ms)
            progress.advance(bar)
    sizes = {name: encode(rows, way) for name, way in found.items()}
    ours, first = next(iter(found)), next(iter(taken.values()))
    return [
        {
            "how": name,
            "CPU ms a million rows": median([one * 1e6 / rows.num_rows for one in times]),
            "x as tasks write": median([one / base for one, base in zip(times, first, strict=True)]),
            "bytes a row": round(sizes[name] / rows.num_rows, 2),
            "x bytes": round(sizes[name] / sizes[ours], 3),
        }
        for name, times in taken.items()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=Limits().row_group_rows)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        rows = measure(pa.Table.from_batches(batches(given.rows)), turns=given.turns, progress=progress)
    title = f"Parquet of a row group of {given.rows:,} rows, zstd level {LEVEL}"
    show(title, rows, notes=[f"medians of {given.turns}, in turns"])
    save("encoding", arguments=vars(given), rows=rows, to=given.results)
    figure = "CPU ms a million rows"
    drawn = [Bar(row["how"], row[figure], f"{row[figure]:.0f}", ours=number == 0) for number, row in enumerate(rows)]
    bars("encoding", drawn, title=title, x="processor milliseconds a million rows, median", to=given.results)


if __name__ == "__main__":
    main()
