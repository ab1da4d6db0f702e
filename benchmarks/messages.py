"""The driver with 5,000 messages of 40,000 files: time against writing their manifests alone, memory, and bytes.

The files are links to one real file, described each by itself as a task does. What the driver does with the messages
runs in a process of its own, so that its peak is its own: it opens the table, reads the messages, folds, checks, builds
and commits. In another, the parts of that are timed by themselves, and so is writing the manifests of the same files.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.peak import peak_bytes

ROOT = Path(__file__).resolve().parent.parent
MESSAGES, FILES, TURNS = 5_000, 40_000, 5
PARTITIONS = 100


# ---------------------------------------------------------------- in a process of its own


def run(errand: str, kind: str) -> None:
    """Do what the errand asks for, and print what it took."""
    from paimon_sink.spark.writers import PwcCommitMessage
    from tests.support.lake import Lake

    body = pickle.loads(Path(errand).read_bytes())
    lake = Lake(body["options"], body["table"])
    if kind == "commit":
        writer = lake.stream_writer()
        messages = [PwcCommitMessage(payload) for payload in body.pop("payloads")]
        began = time.perf_counter()
        writer.commit(messages, 1)
        found = {"commit": time.perf_counter() - began, "peak": peak_bytes()}
    else:
        found = parts(lake, body["payloads"])
    print(json.dumps(found))


def parts(lake: Any, payloads: Sequence[bytes]) -> dict[str, float]:
    from paimon_sink.commit.fold import fold
    from paimon_sink.core.messages import TaskMessage
    from tests.support.batches import sink_options

    taken: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = work()
        taken[name] = time.perf_counter() - began
        return result

    options = sink_options(lake)
    messages = timed("read", lambda: [TaskMessage.from_bytes(payload) for payload in payloads])
    plan = timed("fold", lambda: fold(messages, table=lake.table, options=options.commit, batch_id=1, overwrite=False))
    table = lake.open()
    commit = table.commits.begin(plan)
    timed("check", commit.check_files)
    timed("manifests", writer_of_manifests(lake.format, table, commit, plan))
    return taken


def writer_of_manifests(table_format: str, table: Any, commit: Any, plan: Any) -> Callable[[], object]:
    """Writes the manifests of the files with the format's library, from what it takes."""
    if table_format == "paimon":
        handle = table.handle
        entries = list(handle.checked_entries(plan.files).values())
        target = handle.native.options.manifest_target_size()
        return lambda: handle.manifests.rolling_write(entries, target, f"manifest-{uuid.uuid4()}")
    from paimon_sink.formats.iceberg.entries import decode_entries
    from paimon_sink.formats.iceberg.partitions import Partitioning

    native = commit.load_head().native
    metadata = native.metadata
    partitioning = Partitioning(metadata.spec(), metadata.schema(), table=table.label)
    files = decode_entries(plan.files, partitioning, None, table_location=metadata.location)
    return lambda: with_the_library(native, files)


def with_the_library(native: Any, files: Sequence[Any]) -> None:
    """One manifest, entry by entry: how pyiceberg itself writes what it appends."""
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest
    from pyiceberg.table import TableProperties

    metadata = native.metadata
    # Its own default, which its annotation of this argument does not know.
    compression: Any = TableProperties.WRITE_AVRO_COMPRESSION_DEFAULT
    with write_manifest(
        format_version=metadata.format_version,
        spec=metadata.spec(),
        schema=metadata.schema(),
        output_file=native.io.new_output(f"{metadata.location}/metadata/{uuid.uuid4()}.avro"),
        snapshot_id=1,
        avro_compression=compression,
    ) as writer:
        for file in files:
            writer.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, sequence_number=None, data_file=file))


# ---------------------------------------------------------------- from outside


def payloads(lake: Any, *, messages: int, files: int) -> list[bytes]:
    """Messages of tasks, each of which wrote its share of the files."""
    from benchmarks.committers import Ours
    from paimon_sink.core.messages import DataFile, TaskMessage
    from paimon_sink.formats.values import ClosedFile
    from tests.support.lake import rows

    closed: list[ClosedFile] = []
    ours = Ours(lake)
    table = ours.table
    describe = table.files.describe

    def noting(file: ClosedFile) -> DataFile:
        closed.append(file)
        return describe(file)

    setattr(table.files, "describe", noting)  # noqa: B010
    first = ours.write(*(rows(number, day=f"day-{number:03}") for number in range(PARTITIONS)))
    setattr(table.files, "describe", describe)  # noqa: B010
    made: list[bytes] = []
    share = files // messages
    for task in range(messages):
        written: list[DataFile] = []
        for number in range(share):
            file = closed[(task * share + number) % len(closed)]
            path = table.files.new_path(file.partition, attempt=f"{uuid.uuid4()}", number=number)
            os.link(os.path.join(table.location, file.path), os.path.join(table.location, path))
            written.append(describe(replace(file, path=path)))
        made.append(TaskMessage.to_bytes(replace(first, files=tuple(written))))
    return made


def measure(table_format: str, given: argparse.Namespace, directory: Path) -> dict[str, Any]:
    from benchmarks.committers import Ours
    from benchmarks.report import median
    from tests.support.lake import Lake
    from tests.support.old_messages import as_version_1

    found: dict[str, list[float]] = {}
    sizes: list[int] = []
    for turn in range(given.turns):
        options = {"warehouse": str(directory / f"{table_format}-{turn}"), "tableFormat": table_format}
        lake = Lake(options, "bench.messages", {"partitionBy": "day"})
        Ours(lake).grow(1)
        made = payloads(lake, messages=given.messages, files=given.files)
        sizes = [sum(map(len, made)), sum(len(as_version_1(payload)) for payload in made)]
        errand = directory / f"{table_format}-{turn}.pickle"
        body = {"options": {**options, "partitionBy": "day"}, "table": lake.table, "payloads": made}
        errand.write_bytes(pickle.dumps(body))
        for kind in ("parts", "commit"):
            command = [sys.executable, str(Path(__file__)), "--errand", str(errand), "--kind", kind]
            told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
            for name, value in json.loads(told.splitlines()[-1]).items():
                found.setdefault(name, []).append(value)
        errand.unlink()
    times = {name: median(found[name]) for name in ("read", "fold", "check", "manifests", "commit")}
    ratios = [whole / alone for whole, alone in zip(found["commit"], found["manifests"], strict=True)]
    return {
        "format": table_format,
        "messages": given.messages,
        "files": given.files,
        **{f"{name} s": round(value, 3) for name, value in times.items()},
        "x manifests": round(median(ratios), 2),
        "peak MB": round(median(found["peak"]) / 2**20, 1),
        "bytes a file": round(sizes[0] / given.files),
        "as JSON": round(sizes[1] / given.files),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--files", type=int, default=FILES, help="of all messages")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--formats", nargs="+", choices=["paimon", "iceberg"], default=["paimon", "iceberg"])
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--errand", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.errand:
        run(given.errand, given.kind)
        return
    from benchmarks.report import RESULTS, Bar, bars, save, show

    with tempfile.TemporaryDirectory(prefix="pwc-messages-") as directory:
        rows = [measure(name, given, Path(directory)) for name in given.formats]
    notes = [
        "read, fold, check: parts of the commit; manifests: writing the manifests of the same files alone; commit: all "
        f"that the driver does; medians of {given.turns}"
    ]
    to = given.results or RESULTS
    show("A commit of many messages", rows, notes=notes)
    save("messages", arguments={**vars(given), "results": to}, rows=rows, to=to)
    bars(
        "messages",
        [
            Bar(
                f"{row['format'].capitalize()}, {name}", row[f"{name} s"], f"{row[f'{name} s']:.2f} s", name == "commit"
            )
            for row in rows
            for name in ("manifests", "commit")
        ],
        title=f"{given.messages:,} messages of {given.files:,} files",
        x="seconds",
        to=to,
    )


if __name__ == "__main__":
    main()
