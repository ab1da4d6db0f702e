"""Workers that Spark uses again: what it does around each call stays small."""

from __future__ import annotations

import gc
import importlib
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from zipimport import zipimporter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from paimon_sink.spark import reuse
from paimon_sink.spark.reuse import cheapen_worker_reuse
from tests.spark.support import save
from tests.support.lake import Lake


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """This process, as if it were a worker of the Spark in the directory, with nothing on its path yet."""
    home = tmp_path / "spark"
    home.mkdir()
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    monkeypatch.setattr(reuse, "_modules_set_aside", len(sys.modules))
    before = set(sys.modules)
    yield home
    for name in set(sys.modules) - before:
        del sys.modules[name]
    gc.unfreeze()


def archive(path: Path, *modules: str) -> None:
    with zipfile.ZipFile(path, "w") as opened:
        for module in modules:
            opened.writestr(f"{module}.py", f"name = {module!r}")
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))


def finders(under: Path) -> list[str]:
    cache = sys.path_importer_cache
    return [path for path, finder in cache.items() if isinstance(finder, zipimporter) and path.startswith(str(under))]


def test_the_archives_of_spark_are_not_read_again(worker: Path) -> None:
    archive(worker / "pyspark.zip", "of_spark_one", "of_spark_two")
    importlib.import_module("of_spark_one")
    cheapen_worker_reuse()
    # Were its list read again, nothing would be in it.
    (worker / "pyspark.zip").rename(worker / "elsewhere.zip")
    importlib.invalidate_caches()
    (worker / "elsewhere.zip").rename(worker / "pyspark.zip")
    assert importlib.import_module("of_spark_two").name == "of_spark_two"


def test_other_archives_are_read_again_when_spark_says_so(worker: Path, tmp_path: Path) -> None:
    archive(tmp_path / "of_the_user.zip", "of_user_one")
    importlib.import_module("of_user_one")
    cheapen_worker_reuse()
    assert finders(tmp_path) == [str(tmp_path / "of_the_user.zip")]
    archive(tmp_path / "of_the_user.zip", "of_user_one", "of_user_two")
    importlib.invalidate_caches()
    assert importlib.import_module("of_user_two").name == "of_user_two"


def test_what_imports_made_is_set_aside_once_and_again_after_further_imports(worker: Path) -> None:
    cheapen_worker_reuse()
    nothing_new = gc.get_freeze_count()
    archive(worker / "more.zip", "of_more")
    importlib.import_module("of_more")
    cheapen_worker_reuse()
    after_import = gc.get_freeze_count()
    made_since: list[list[int]] = [[] for _ in range(10_000)]
    cheapen_worker_reuse()
    assert nothing_new == 0
    assert after_import > 10_000
    assert gc.get_freeze_count() < after_import + len(made_since)


def test_a_process_that_spark_does_not_keep_is_left_alone(worker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REUSE_WORKER")
    archive(worker / "pyspark.zip", "of_spark_three")
    importlib.import_module("of_spark_three")
    cheapen_worker_reuse()
    assert finders(worker) == [str(worker / "pyspark.zip")]
    assert gc.get_freeze_count() == 0


@pytest.mark.spark
@pytest.mark.smoke
def test_a_worker_that_wrote_keeps_neither_finders_of_spark_nor_its_modules_for_the_next_call(
    spark: SparkSession, local_lake: Lake
) -> None:
    probe(spark)  # imports what it needs, so that the second one imports nothing
    for _ in range(2):
        save(spark.range(0, 2, 1, numPartitions=2), local_lake)
    assert (0, True) in probe(spark)


def probe(spark: SparkSession) -> list[tuple[int, bool]]:
    rows = spark.range(0, 2, 1, numPartitions=2).mapInArrow(_made_here(), "finders long, set_aside boolean").collect()
    return [(row.finders, row.set_aside) for row in rows]


def _made_here() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that travels as a whole: a worker need not import this module, and with it look along its path."""

    def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = [
                f for f in sys.path_importer_cache.values() if isinstance(f, zipimporter) and "pyspark" in f.archive
            ]
            yield pa.RecordBatch.from_pydict({"finders": [len(found)], "set_aside": [gc.get_freeze_count() > 0]})

    return seen
