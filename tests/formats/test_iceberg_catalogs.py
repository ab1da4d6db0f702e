"""Which catalog the options mean, what is refused before anything is touched, and what is never shown."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import traceback
import uuid
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.core.errors import CorruptTableError, OptionError, StorageError, TableChangedError
from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.iceberg.file_io import StoreFileIO
from paimon_sink.formats.registry import parse_options
from paimon_sink.maintain.verify import verify
from tests.support.iceberg_engine import IcebergEngine, catalog, native
from tests.support.lake import Lake, rows
from tests.support.s3 import S3Server

SECRET = "hunter2-very-secret"


def test_a_path_is_refused_with_a_sentence(tmp_path: Path) -> None:
    lake = Lake({"path": str(tmp_path), "tableFormat": "iceberg"})
    options = {key: value for key, value in lake.all_options().items() if key != "table"}

    from paimon_sink import PwcDataSource

    with pytest.raises(OptionError, match="lives in one"):
        PwcDataSource(options).schema()


def test_a_remote_warehouse_needs_a_catalog() -> None:
    with pytest.raises(OptionError, match=r"catalog\.type and catalog\.uri"):
        Lake({"warehouse": "s3://lake/warehouse", "tableFormat": "iceberg"}).open()


def test_looking_for_a_table_leaves_nothing_behind(tmp_path: Path) -> None:
    lake = Lake({"warehouse": str(tmp_path / "typo"), "tableFormat": "iceberg"})

    with pytest.raises(Exception, match="no table"):
        lake.open()

    assert list(tmp_path.iterdir()) == []


def test_a_warehouse_with_blanks_and_odd_signs_works(tmp_path: Path) -> None:
    lake = Lake({"warehouse": str(tmp_path / "my lake %20 ž"), "tableFormat": "iceberg"}).with_options(
        partitionBy="day"
    )
    lake.append(0, rows(1, day="a/b c%"), rows(2, day=None))

    assert lake.ids() == IcebergEngine(lake).read_ids() == [1, 2]


def test_another_sqlite_file_may_be_named(tmp_path: Path) -> None:
    lake = Lake(
        {
            "warehouse": str(tmp_path / "lake"),
            "tableFormat": "iceberg",
            "catalog.uri": f"sqlite:///{tmp_path}/other.db",
        }
    )
    lake.append(0, rows(1))

    assert lake.ids() == [1]
    assert (tmp_path / "other.db").exists()
    assert not (tmp_path / "lake" / "catalog.db").exists()


@pytest.mark.parametrize(
    "options",
    [
        {"catalog.type": "sql", "catalog.uri": f"postgresql+psycopg2://me:{SECRET}@127.0.0.1:1/none?connect_timeout=2"},
        {"catalog.type": "rest", "catalog.uri": "http://127.0.0.1:1", "catalog.token": SECRET},
        {"catalog.type": "sql", "catalog.uri": f"nonsense://me:{SECRET}@host/db"},
        {
            "catalog.type": "rest",
            "catalog.uri": "http://127.0.0.1:1",
            "catalog.header.Authorization": f" Bearer {SECRET}",
        },
        {"catalog.type": "rest", "catalog.uri": f"http://me:{SECRET}/x@127.0.0.1:1"},
        {"catalog.uri": f"gopher:me:{SECRET}@127.0.0.1:1/db"},
        {"catalog.type": "sql", "catalog.uri": f"postgresql+nosuch://127.0.0.1:1/db?user=me&password={SECRET}"},
    ],
    ids=["sql", "rest", "no such database", "header", "slash", "no scheme", "parameter"],
)
def test_a_catalog_that_fails_is_a_sentence_without_secrets(
    options: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake({"warehouse": str(tmp_path), "tableFormat": "iceberg", **options})

    with caplog.at_level(logging.DEBUG), pytest.raises(StorageError, match=r"catalog of sales\.orders") as caught:
        lake.open()

    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("catalog.header.Authorization", f"Bearer {SECRET}"),
        ("catalog.adls.connection-string", f"AccountKey={SECRET}"),
        ("catalog.uri", f"postgresql://host/db?password={SECRET}"),
        ("catalog.uri", f"http://me:{SECRET}/x@host"),
    ],
)
def test_options_in_a_log_show_no_secrets(key: str, value: str, tmp_path: Path) -> None:
    options = {"warehouse": str(tmp_path), "table": "sales.orders", "tableFormat": "iceberg", key: value}

    assert SECRET not in repr(parse_options(options, purpose=Purpose.READ))


def test_metadata_that_cannot_be_read_is_named(iceberg_sqlite_lake: Lake) -> None:
    iceberg_sqlite_lake.append(0, rows(1))
    IcebergEngine(iceberg_sqlite_lake).damage_snapshot(b"{}")

    with pytest.raises(CorruptTableError, match=r"sales\.orders"):
        iceberg_sqlite_lake.open()


def test_metadata_that_is_gone_is_named(iceberg_sqlite_lake: Lake) -> None:
    iceberg_sqlite_lake.append(0, rows(1))
    for path in Path(iceberg_sqlite_lake.options["warehouse"]).rglob("*.metadata.json"):
        path.unlink()

    with pytest.raises(CorruptTableError, match="not there"):
        iceberg_sqlite_lake.open()


def test_without_the_extra_a_sentence_says_what_to_install() -> None:
    script = """
import sys
sys.modules["pyiceberg"] = None
from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.registry import open_table, parse_options
try:
    open_table(parse_options({"warehouse": "/w", "table": "d.t", "tableFormat": "iceberg"}, purpose=Purpose.READ).table)
except Exception as error:
    print(type(error).__name__, error)
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path.cwd())

    assert answer.stdout.startswith("OptionError")
    assert "pip install 'paimon-sink[iceberg]'" in answer.stdout


@pytest.mark.s3
def test_a_sql_catalog_may_keep_its_tables_on_s3(s3: S3Server, tmp_path: Path) -> None:
    lake = Lake(
        {
            "warehouse": f"s3://{s3.bucket}/{uuid.uuid4().hex}",
            "tableFormat": "iceberg",
            "catalog.uri": f"sqlite:///{tmp_path}/catalog.db",
            **s3.options(),
        }
    )
    for batch in range(3):
        lake.append(batch, rows(batch))
    lake.append(2, rows(2))

    assert lake.ids() == IcebergEngine(lake).read_ids() == [0, 1, 2]
    assert verify(lake.open()).problems == ()


def test_a_catalog_that_was_put_back_from_a_backup_is_the_one_that_is_read(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    lake.append(0, rows(0))
    database = Path(lake.options["warehouse"], "catalog.db")
    backup = shutil.copy(database, f"{database}.backup")
    lake.append(1, rows(1))

    os.replace(backup, database)
    lake.append(1, rows(1))

    assert lake.ids() == [0, 1]
    assert IcebergEngine(lake).read_ids() == [0, 1]


def test_a_warehouse_that_was_removed_begins_anew(iceberg_sqlite_lake: Lake) -> None:
    iceberg_sqlite_lake.append(0, rows(0))
    shutil.rmtree(iceberg_sqlite_lake.options["warehouse"])

    iceberg_sqlite_lake.append(0, rows(5))

    assert iceberg_sqlite_lake.ids() == [5]


def test_metadata_that_others_replaced_before_it_was_read_is_not_called_broken(
    iceberg_sqlite_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = iceberg_sqlite_lake.with_options(**{"table.write.metadata.previous-versions-max": "1"})
    other = lake.with_options(commitUser="other")
    lake.append(0, rows(0))
    table = lake.open()
    # What the table knows from being opened is old, so that it has to read.
    other.append(0, rows(10))
    read, moves = StoreFileIO.new_input, iter([True])

    def after_others_moved_on(self: StoreFileIO, location: str) -> Any:
        if location.endswith(".metadata.json") and next(moves, False):
            for number in range(1, 4):
                other.append(number, rows(10 + number))
        return read(self, location)

    monkeypatch.setattr(StoreFileIO, "new_input", after_others_moved_on)

    assert len(table.upkeep.history()) == 5


def newest_metadata(lake: Lake) -> Path:
    return Path(native(lake).metadata_location.removeprefix("file://"))


def test_metadata_that_could_not_be_read_is_read_again_once_it_is_restored(iceberg_sqlite_lake: Lake) -> None:
    iceberg_sqlite_lake.append(0, rows(0))
    table = iceberg_sqlite_lake.open()
    iceberg_sqlite_lake.with_options(commitUser="other").append(0, rows(1))
    newest = newest_metadata(iceberg_sqlite_lake)
    whole = newest.read_bytes()

    newest.write_bytes(whole[:100])
    with pytest.raises(CorruptTableError, match="Restore it"):
        table.upkeep.history()
    newest.write_bytes(whole)

    assert len(table.upkeep.history()) == 2


def test_a_table_made_anew_under_the_old_name_of_its_metadata_is_not_taken_for_the_old_one(
    iceberg_sqlite_lake: Lake,
) -> None:
    """Metadata files that are numbered only, as some engines name them: the name comes again, and the table is new."""
    lake = iceberg_sqlite_lake
    lake.append(0, rows(0))
    numbered = newest_metadata(lake).with_name("v2.metadata.json")
    newest_metadata(lake).rename(numbered)
    found = catalog(lake)
    found.drop_table(lake.table)
    found.register_table(lake.table, f"file://{numbered}")
    message = lake.write(rows(1))

    def make_anew(step: Step) -> None:
        if step is Step.BEFORE_PUT:
            found.drop_table(lake.table)
            anew = {**json.loads(numbered.read_bytes()), "table-uuid": str(uuid.uuid4())}
            numbered.write_text(json.dumps(anew))
            found.register_table(lake.table, f"file://{numbered}")

    with listening(make_anew), pytest.raises(TableChangedError, match="created again"):
        lake.commit(1, message)

    assert lake.ids() == [0]
