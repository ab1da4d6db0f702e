"""``~`` and relative paths are settled once, or refused. Neither ever becomes a directory of that name by itself."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from paimon_sink.core.errors import OptionError
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.registry import parse_options


def parse(directory: str | None = "/srv", **options: str) -> Options:
    given = {name.replace("__", "."): value for name, value in options.items()}
    return parse_options(given, purpose=Purpose.BATCH_WRITE, directory=directory)


@pytest.mark.parametrize("text", ["~/lake", "file:~/lake", "~"])
@pytest.mark.parametrize("directory", ["/srv", None], ids=["local", "cluster"])
def test_a_home_directory_is_expanded_wherever_spark_runs(
    text: str, directory: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    settled = "/home/ann" + text.removeprefix("file:").removeprefix("~")

    assert parse(directory, warehouse=text, table="a.b").table.warehouse == settled
    assert parse(directory, path=text).table.path == settled
    assert parse(directory, path=text).table.label == settled


def test_a_settled_path_stays_the_same_in_a_process_with_another_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    message = pickle.dumps(parse(path="~/lake"))

    monkeypatch.setenv("HOME", "/home/executor")

    assert pickle.loads(message).table.path == "/home/ann/lake"


def test_a_home_directory_of_nobody_is_refused() -> None:
    with pytest.raises(OptionError, match="path begins with ~, and no such home directory is known here"):
        parse(path="~nobody-of-this-name/lake")


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("lake", "/srv/lake"),
        ("./lake/../sea", "/srv/sea"),
        ("file:lake", "/srv/lake"),
        ("file:a%20lake", "/srv/a lake"),
        ("./~/lake", "/srv/~/lake"),
    ],
)
def test_a_relative_path_is_taken_from_the_directory_given(text: str, settled: str) -> None:
    assert parse(warehouse=text, table="a.b").table.warehouse == settled
    assert parse(path=text).table.path == settled


@pytest.mark.parametrize("text", ["lake", "./lake", "../lake", "file:lake", "file:../lake"])
@pytest.mark.parametrize("key", ["warehouse", "path"])
def test_a_relative_path_is_refused_together_with_all_else_where_it_would_be_many_places(text: str, key: str) -> None:
    given = {key: text, "takeover": "maybe"} | ({"table": "a.b"} if key == "warehouse" else {})

    with pytest.raises(OptionError) as refused:
        parse(None, **given)

    assert f"{key} is a relative path, which is another directory on each machine" in str(refused.value)
    assert "takeover must be true or false" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["/lake", "/lake/../sea", "s3://bucket/lake", "file:///lake", "file:/lake", "abfss://c@a.dfs.core.windows.net/x"],
)
def test_any_other_location_stays_as_it_was_written(text: str) -> None:
    assert parse(None, path=text).table.path == text


@pytest.mark.parametrize(
    "catalog", [{"catalog__type": "rest"}, {"catalog__metastore": "REST"}, {"catalog__uri": "http://c"}]
)
def test_the_warehouse_of_a_rest_catalog_is_a_name_and_no_path(catalog: dict[str, str]) -> None:
    assert parse(None, warehouse="lake", table="a.b", **catalog).table.warehouse == "lake"


def test_a_store_without_its_slashes_is_not_taken_for_a_directory() -> None:
    with pytest.raises(OptionError, match="path needs two slashes after the colon, as in s3://bucket/path"):
        parse(path="s3:lake/orders")


def test_a_program_that_reads_options_for_itself_means_its_own_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    parsed = parse_options({"path": "lake"}, purpose=Purpose.READ)

    assert parsed.table.path == os.path.join(os.getcwd(), "lake")


SQLITE = {"warehouse": "/lake", "table": "a.b", "tableFormat": "iceberg", "catalog.type": "sql"}


@pytest.mark.parametrize(
    ("uri", "settled"),
    [
        ("sqlite:///cat.db", "sqlite:////srv/cat.db"),
        ("sqlite:///./a/cat.db?timeout=5", "sqlite:////srv/a/cat.db?timeout=5"),
        ("SQLite+pysqlite:///cat.db", "SQLite+pysqlite:////srv/cat.db"),
        ("sqlite:////lake/cat.db", "sqlite:////lake/cat.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("postgresql+psycopg2://host/lake", "postgresql+psycopg2://host/lake"),
    ],
)
def test_the_file_of_a_catalog_is_settled_as_a_location_is(uri: str, settled: str) -> None:
    options = {**SQLITE, "catalog.uri": uri}

    parsed = parse_options(options, purpose=Purpose.STREAM_WRITE, directory="/srv")

    assert parsed.table.catalog["uri"] == settled


def test_a_catalog_in_a_relative_file_is_refused_where_it_would_be_many_files() -> None:
    options = {**SQLITE, "catalog.uri": "sqlite:///cat.db"}

    with pytest.raises(OptionError, match=r"catalog\.uri is a relative path"):
        parse_options(options, purpose=Purpose.STREAM_WRITE, directory=None)
