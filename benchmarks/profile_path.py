"""Where the time goes between a Parquet file and a sink in Python: processor time, and what Spark's tasks do in it.

Java's flight recorder looks at the threads of the tasks, processor time comes from the system. Nothing is compared
with a clock, so other work on the machine disturbs it little.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import Progress

from benchmarks.report import RESULTS, Bar, bars, save, show
from benchmarks.rows import Source
from benchmarks.session import session
from benchmarks.sinks import BY_KEY, LEVEL, Place, Sink, session_conf, sinks
from benchmarks.throughput import BATCHES, FILES_A_BATCH, ROWS, TASKS, Job, shared_out, spark_version

_KEYS = ("drain", "drain-by-rows", "ours-paimon", "ours-paimon-by-rows", "ours-iceberg-by-rows")
_TASK = "Executor task"
_PARTS: Mapping[str, Sequence[str]] = {
    "measure": ("ArrowWriter.sizeInBytes",),
    "copy": ("ArrowWriter.write", "ArrowWriter.finish", "ArrowFieldWriter.write"),
    "read": ("FileScanRDD", "VectorizedParquetRecordReader", "GeneratedIterator", "UTF8String", "ColumnVector"),
    "send": ("ArrowStreamWriter", "ArrowWriter.reset", "WritableByteChannel", "SocketChannel", "VectorUnloader"),
}
"""What a task does, by the innermost frame that names one: it measures the Arrow batch after a row, copies the row into
it, reads Parquet and makes rows of it, and sends the batch to Python."""
_OTHER = "other"
_NOTE = (
    "Processor seconds of the JVM and of the Pythons below it. The rest is about the JVM's tasks while they do not "
    "wait: the share in which they measure Arrow batches, copy rows into them, read Parquet, and send to Python"
)


@dataclass
class Seen:
    """What one sink took, over all rounds."""

    sink: Sink
    jvm_seconds: float = 0
    python_seconds: float = 0
    samples: Counter[str] = field(default_factory=Counter)

    def row(self) -> dict[str, Any]:
        whole, cpu = self.samples.total() or 1, self.jvm_seconds + self.python_seconds
        return {
            "who": self.sink.name,
            "JVM s": round(self.jvm_seconds, 1),
            "Python s": round(self.python_seconds, 1),
            "Python %": round(100 * self.python_seconds / cpu, 1),
            **{f"{part} %": round(100 * self.samples[part] / whole, 1) for part in (*_PARTS, _OTHER)},
            "samples": self.samples.total(),
        }


@contextmanager
def recorded(seen: Seen, spark: SparkSession, scratch: Path) -> Iterator[None]:
    """Adds what happens within to what was seen."""
    file, java = scratch / "recording.jfr", spark.sparkContext._jvm.jdk.jfr  # type: ignore[union-attr]
    recording = java.Recording(java.Configuration.getConfiguration("profile"))
    recording.setDestination(spark.sparkContext._jvm.java.io.File(str(file)).toPath())  # type: ignore[union-attr]
    recording.start()
    before = _cpu(spark)
    try:
        yield
    finally:
        after = _cpu(spark)
        recording.stop()
        recording.close()
    seen.jvm_seconds += after[0] - before[0]
    seen.python_seconds += after[1] - before[1]
    seen.samples.update(_parts_of(file))


def _cpu(spark: SparkSession) -> tuple[float, float]:
    """Processor seconds so far: of the JVM, and of all Pythons below it."""
    jvm = psutil.Process(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    times = jvm.cpu_times()
    return times.user + times.system, sum(_seconds(child) for child in jvm.children(recursive=True))


def _seconds(process: psutil.Process) -> float:
    """Its own, and those of its children that ended."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0
    return times.user + times.system + times.children_user + times.children_system


def _parts_of(recording: Path) -> Iterator[str]:
    events = "jdk.ExecutionSample,jdk.NativeMethodSample"
    command = ["jfr", "print", "--json", "--stack-depth", "64", "--events", events, str(recording)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for event in json.loads(said)["recording"]["events"]:
        values = event["values"]
        thread = (values.get("sampledThread") or {}).get("javaName") or ""
        if thread.startswith(_TASK) and values.get("stackTrace"):
            part = _part([_frame(frame["method"]) for frame in values["stackTrace"]["frames"]])
            # A task that waits for its Python is seen in the native read; that is no work.
            if part is not None:
                yield part


def _frame(method: Mapping[str, Any]) -> str:
    return f"{method['type']['name'].rpartition('/')[2].rpartition('.')[2]}.{method['name']}"


def _part(frames: Sequence[str]) -> str | None:
    if frames[0].startswith(("EPoll.", "SocketDispatcher.read", "Net.poll")):
        return None
    for frame in frames:
        for part, names in _PARTS.items():
            if any(name in frame for name in names):
                return part
    return _OTHER


def run(given: argparse.Namespace, directory: Path, console: Console) -> list[dict[str, Any]]:
    source = Source(directory / "source", given.rows, BATCHES * FILES_A_BATCH)
    console.print(f"Writing {given.rows:,} rows into {source.files} files …")
    source.write()
    kinds = [BY_KEY[key] for key in given.sinks]
    conf = {**session_conf(kinds, directory), **shared_out(source, TASKS)}
    with session(directory, conf) as spark, Progress(console=console, transient=True) as progress:
        job = Job(spark, source, directory)
        seen = [Seen(sink) for sink in sinks(kinds, Place(spark, directory, LEVEL))]
        bar = progress.add_task("writes", total=(1 + given.rounds) * len(seen))
        for number in range(1 + given.rounds):
            for one in seen:
                # The first warms up.
                _write(one if number else Seen(one.sink), job)
                progress.advance(bar)
    return [one.row() for one in seen]


def _write(seen: Seen, job: Job) -> None:
    seen.sink.prepare()
    try:
        with seen.sink.with_settings(), recorded(seen, job.spark, job.scratch):
            job.batch(seen.sink)
    finally:
        seen.sink.clear()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sinks", nargs="+", default=list(_KEYS), choices=list(BY_KEY))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pwc-profile-") as directory:
        rows = run(given, Path(directory), Console(stderr=True))
    name = f"profile-spark{spark_version()}"
    title = f"{given.rounds} batch jobs of {given.rows:,} rows, Spark {spark_version()}"
    show(title, rows, notes=[_NOTE])
    save(name, arguments=vars(given), rows=rows, to=given.results)
    bars(name, [_bar(row) for row in rows], title=f"Processor time of {title}", x="processor seconds", to=given.results)


def _bar(row: Mapping[str, Any]) -> Bar:
    jvm, python = row["JVM s"], row["Python s"]
    return Bar(row["who"], jvm + python, f"{jvm:.0f} JVM + {python:.0f} Python", ours="drain" not in row["who"])


if __name__ == "__main__":
    main()
