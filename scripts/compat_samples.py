"""Makes the samples of tests/compat/data anew, from the paimon-sink that Python finds: one directory a version.

    python scripts/compat_samples.py 0.1.0

Run it once for each release; what is there stays as that release wrote it. PYTHONPATH may name the checkout of another
version. The story told here stays the same, since the tests of all samples know it. Needs Java for the checkpoint.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import fsspec
from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).resolve().parent.parent))  # behind PYTHONPATH

import paimon_sink
from tests.compat import samples
from tests.compat.samples import DATA, DYNAMIC, KEPT, LISTENER, MEMORY, NOWHERE, Shop, moved, rows

HOURS_NS = 3600 * 10**9


class KilledError(BaseException):
    """The process ends here."""


@contextmanager
def hours_ago(hours: int) -> Iterator[None]:
    now = time.time_ns

    def then() -> int:
        return now() - hours * HOURS_NS

    with mock.patch("time.time_ns", then):
        yield


@contextmanager
def killed_at_its_snapshot() -> Iterator[None]:
    """On a local disk a snapshot is in with the hard link to its name."""
    link = os.link

    def dying(source: str, name: str, **options: Any) -> None:
        if Path(name).name.startswith("snapshot-"):
            raise KilledError
        link(source, name, **options)

    with mock.patch("os.link", dying), suppress(KilledError):
        yield


def expire_with_pyiceberg(shop: Shop, count: int) -> None:
    """Remove the oldest snapshots. It knows of no ledger, as no other engine does."""
    with samples.in_pyiceberg(shop) as table:
        oldest = sorted(table.snapshots(), key=lambda found: found.timestamp_ms)[:count]
        table.maintenance.expire_snapshots().by_ids([found.snapshot_id for found in oldest]).commit()


# ---------------------------------------------------------------- the story of a table


def tell(shop: Shop, notes: Path) -> None:
    """All that happened to the table, in order. The tests know the end of it."""
    with hours_ago(5):
        shop.stream("silent", 0, rows((1, "mon")))
        shop.stream("silent", 1, rows((2, "mon")))
    # It was silent for too long: from here on the ledger is not complete.
    shop.job(rows((10, "mon"), (11, "tue")), identifier=20260101, overwrite=True, ledger__retention="1h")
    if shop.format == "iceberg":
        expire_with_pyiceberg(shop, 2)
    shop.job(rows((12, "mon")), identifier=20260103)
    shop.job(rows((13, "wed")), identifier=20260105)
    hears = {"watermarkColumn": "at", "listeners": LISTENER}
    for batch_id, day in enumerate(("mon", "tue")):
        file = {f"listener.{LISTENER}.file": str(notes)}
        shop.stream("orders", batch_id, rows((20 + batch_id, day), minute=batch_id), **hears, **file)
    shop.pwc("compact", "--in-process")
    for batch_id, day in ((2, "mon"), (3, "tue")):
        shop.stream("orders", batch_id, rows((20 + batch_id, day), minute=batch_id), **hears)
    shop.commit_job(shop.write_job(rows((30, "wed")), overwrite=True, settings=DYNAMIC), overwrite=True)
    if shop.format == "paimon":
        with killed_at_its_snapshot():
            shop.stream("killed", 0, rows((40, "mon")))


def write_messages(shop: Shop) -> None:
    """Of tasks whose driver never committed."""
    timed = {"watermarkColumn": "at", **KEPT}
    found = {
        "stream": shop.write_stream("orders", 4, rows((24, "mon"), (25, None), minute=4), timed),
        "stream-empty": shop.write_stream("orders", 4, rows(), timed),
        "replay": shop.write_stream("orders", 3, rows((23, "tue"), minute=3), timed),
        "job": shop.write_job(rows((14, "mon"))),
        "dynamic": shop.write_job(rows((31, "wed")), overwrite=True, settings=DYNAMIC),
    }
    (shop.directory / "messages").mkdir()
    for name, message in found.items():
        (shop.directory / "messages" / f"{name}.json").write_bytes(message)


def make_paimon(directory: Path) -> None:
    shop = Shop("paimon", directory)
    with tempfile.TemporaryDirectory() as elsewhere:
        tell(shop, Path(elsewhere) / "notes")
    write_messages(shop)


def make_iceberg(directory: Path) -> None:
    samples.empty_memory()
    shop = Shop("iceberg", directory)
    with tempfile.TemporaryDirectory() as elsewhere:
        tell(shop, Path(elsewhere) / "notes")
    write_messages(shop)
    fsspec.filesystem("memory").get(f"{MEMORY}/", str(directory / "store"), recursive=True)


# ---------------------------------------------------------------- what else there is


def make_embedded(directory: Path) -> None:
    """An Iceberg table on a local disk that has no batch yet, and the catalog that is made beside it."""
    samples.local_iceberg(directory).write_stream("orders", 0, rows(), {"partitionBy": "day"})
    samples.move_embedded(directory, str(directory), NOWHERE)


def make_stream(directory: Path) -> None:
    """A real stream of three batches, with its source and its checkpoint."""
    source = directory / "source"
    source.mkdir()
    for number in range(3):
        file = source / f"{number:04d}.json"
        file.write_text("\n".join(f'{{"id": {number * 2 + row}, "day": "mon"}}' for row in range(2)))
        os.utime(file, (1_700_000_000 + number,) * 2)
    with _session() as spark:
        rows_of = spark.readStream.schema("id long, day string").option("maxFilesPerTrigger", 1).json(str(source))
        writer = rows_of.writeStream.format("pwc").option("warehouse", str(directory / "warehouse"))
        writer = writer.option("table", "sales.orders").option("checkpointLocation", str(directory / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    for checksum in directory.rglob(".*.crc"):
        checksum.unlink()
    moved(samples.log_of_source(directory), str(directory), NOWHERE)


@contextmanager
def _session() -> Iterator[SparkSession]:
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        paimon_sink.register(spark)
        yield spark
    finally:
        spark.stop()


MAKERS: dict[str, Callable[[Path], None]] = {
    "paimon": make_paimon,
    "iceberg": make_iceberg,
    "embedded": make_embedded,
    "stream": make_stream,
}


def pack(directory: Path, archive: Path) -> None:
    """Without anything of this machine."""
    here = os.fsencode(directory.parent)
    naming = [path for path in directory.rglob("*") if path.is_file() and here in path.read_bytes()]
    assert not naming, f"a place of this machine is in {naming}"
    with tarfile.open(archive, "w:gz") as found:
        found.add(directory, ".", filter=_nobodys)


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main(version: str) -> None:
    target = DATA / version
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    print(f"From {Path(paimon_sink.__file__).parent}")
    for name, make in MAKERS.items():
        with tempfile.TemporaryDirectory(prefix="pwc-compat-") as scratch:
            directory = Path(scratch).resolve() / name
            directory.mkdir()
            make(directory)
            pack(directory, target / f"{name}.tar.gz")
        print(f"{name}: {(target / f'{name}.tar.gz').stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
