"""A batch that Spark forgot: who commits it again, and doubles its rows.

A stream of three batches runs to its end. Then the last entry of its commit log is gone, as when a driver dies after
the sink's commit and before Spark's own. The restarted query runs that batch once more, and the rows are counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyspark.sql import DataFrame
from rich.console import Console
from rich.progress import Progress

from benchmarks.report import RESULTS, Bar, bars, save, show
from benchmarks.rows import SPARK_SCHEMA, Source
from benchmarks.session import session
from benchmarks.sinks import BY_KEY, ByRows, Place, Sink, UnknownSinkError, chosen, session_conf, sinks
from tests.spark.support import Checkpoint

BATCHES = 3


def replayed(sink: Sink, source: Source, scratch: Path) -> dict[str, Any]:
    """What is in the table after the replay."""
    checkpoint = Checkpoint(scratch / f"checkpoint-{sink.key}")
    sink.prepare()
    try:
        sink.stream(_rows(sink, source), checkpoint.directory)
        before = sink.count()
        # Fails when there is no such batch.
        checkpoint.forget(BATCHES - 1)
        sink.stream(_rows(sink, source), checkpoint.directory)
        after, batches = sink.count(), checkpoint.batches()
    finally:
        sink.clear()
    if (batches, before) != (list(range(BATCHES)), source.rows):
        raise RuntimeError(f"{sink.name}: {before} rows before the restart, and batches {batches} after it.")
    return {
        "who": sink.name,
        "rows sent": source.rows,
        "rows in the table": after,
        "doubled": after - source.rows,
        "exactly once": "yes" if after == source.rows else "no",
    }


def _rows(sink: Sink, source: Source) -> DataFrame:
    rows = sink.spark.readStream.schema(SPARK_SCHEMA).option("maxFilesPerTrigger", 1)
    return rows.parquet(str(source.directory))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=3_000)
    replayable = [key for key, kind in BY_KEY.items() if kind.keeps_rows and not issubclass(kind, ByRows)]
    parser.add_argument("--sinks", nargs="+", choices=replayable)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    notes: list[str] = []
    try:
        kinds = [kind for kind in chosen(given.sinks, notes.append) if kind.key in replayable]
    except UnknownSinkError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory(prefix="pwc-replay-") as name:
        directory = Path(name)
        source = Source(directory / "source", given.rows, BATCHES)
        source.write()
        with session(directory, session_conf(kinds, directory)) as spark:
            with Progress(console=Console(stderr=True), transient=True) as progress:
                found = sinks(kinds, Place(spark, directory))
                rows = []
                for sink in progress.track(found, description="replays"):
                    rows.append(replayed(sink, source, directory))
                    said = f"{rows[-1]['rows sent']:,} rows sent, {rows[-1]['rows in the table']:,} in the table"
                    progress.console.print(f"{sink.name}: {said}", soft_wrap=True)
    title = "The last batch of a stream, replayed"
    show(title, rows, notes=notes)
    save("replay", arguments=vars(given), rows=rows, to=given.results)
    bars(
        "replay",
        [
            Bar(row["who"], row["rows in the table"], f"{row['rows in the table']:,}", ours=sink.key.startswith("ours"))
            for row, sink in zip(rows, found, strict=True)
        ],
        title=f"{title}: {given.rows:,} rows were sent",
        x="rows in the table",
        to=given.results,
    )


if __name__ == "__main__":
    main()
