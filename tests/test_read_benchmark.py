"""The benchmark of reads: what it compares, when it stops, and that it runs. What it measures here means nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.progress import Progress

from benchmarks import delete, read
from benchmarks.read import Taken, compare_answers, compare_rows, figures, goal, missed
from benchmarks.read_options import is_option, known, pairs
from benchmarks.readers import BY_KEY, QUERIES, Digest, Query, chosen
from tests.test_benchmarks import ROOT, results, run

SUM, ALL, FILTER = (QUERIES[key](1000) for key in ("sum", "all", "filter"))


class OneTable:
    title, format, rows = "1,000 x 5", "paimon", 1000


class Named:
    """A reader that gives what it is told to."""

    def __init__(self, key: str, digests: Mapping[str, Digest] | None = None) -> None:
        self.key, self.name = key, BY_KEY[key].name
        self.stored = OneTable()
        self._digests = digests or {}

    def answers(self, query: Query) -> bool:
        return bool(query.columns) or not BY_KEY[self.key].narrows

    def digest(self, query: Query) -> Digest:
        return self._digests[query.key]


def taken(key: str, query: Query, *seconds: float) -> Any:
    return Taken(Named(key), query, list(seconds))  # type: ignore[arg-type]


def test_times_are_compared_with_parquet_and_the_bare_source_of_the_same_round() -> None:
    # The machine was slow at times. Medians of all the times would give other ratios.
    times = [
        taken("parquet", ALL, 1.0, 10.0, 1.0),
        taken("bare", ALL, 2.0, 20.0, 2.0),
        taken("pwc", ALL, 3.0, 30.0, 30.0),
    ]

    rows = figures(times)

    assert [row["x Parquet"] for row in rows] == [1.0, 2.0, 3.0]
    assert [row["x bare"] for row in rows] == [None, None, 1.5]
    assert [(row["goal"], row["its goal"]) for row in rows] == [(None, None), (None, None), (1.9, 1.2)]


def test_a_read_with_columns_is_compared_with_a_bare_source_with_columns() -> None:
    times = [
        taken("parquet", SUM, 1.0),
        taken("bare", SUM, 4.0),
        taken("bare-columns", SUM, 2.0),
        taken("pwc-columns", SUM, 2.5),
    ]

    row = figures(times)[-1]

    assert (row["x Parquet"], row["goal"], row["x bare"], row["its goal"]) == (2.5, 2.0, 1.25, 1.2)
    which = 'Missed: 1,000 x 5, paimon, sum of one column: format("pwc"), columns takes'
    assert missed([row]) == [
        f"{which} 2.50 x Parquet, and at most 2.0 was the goal.",
        f"{which} 1.25 x bare, and at most 1.2 was the goal.",
    ]


def test_load_has_a_goal_for_every_query() -> None:
    assert {goal("load", query) for query in QUERIES} == {1.1}
    assert goal("iceberg-jvm", "all") is None
    assert missed(figures([taken("parquet", ALL, 1.0), taken("load", ALL, 1.1)])) == []


@pytest.mark.parametrize("query", [ALL, FILTER], ids=["all", "filter"])
def test_a_reader_that_gives_other_rows_ends_the_benchmark(query: Query) -> None:
    rows = 10 if query.conditions else 1000
    right, fewer, other = Digest(rows, 7), Digest(rows - 1, 7), Digest(rows, 8)

    def compare(digest: Digest) -> None:
        readers: Any = [Named("parquet", {query.key: right}), Named("pwc", {query.key: digest})]
        compare_rows(readers, [query], Progress(disable=True))

    compare(right)
    compare(Digest(rows))
    for wrong in (fewer, other):
        with pytest.raises(RuntimeError, match="gives other rows"):
            compare(wrong)


def test_files_that_are_not_of_the_table_end_the_benchmark() -> None:
    twice: Any = [Named("parquet", {"all": Digest(2000, 7)}), Named("pwc", {"all": Digest(2000, 7)})]

    with pytest.raises(RuntimeError, match=r"spark\.read\.parquet gives other rows"):
        compare_rows(twice, [ALL], Progress(disable=True))


def test_another_answer_ends_the_benchmark() -> None:
    times = [taken("parquet", SUM), taken("pwc", SUM)]
    for one, answer in zip(times, (1.0, 2.0), strict=True):
        one.answers.add(answer)

    with pytest.raises(RuntimeError, match="The answers to sum of one column differ"):
        compare_answers(times)


def test_parquet_is_always_among_the_readers() -> None:
    assert [kind.key for kind in chosen(["pwc", "bare"], print)] == ["parquet", "bare", "pwc"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["--only", "parquet,pcw"], "'pcw' is no reader; there are parquet, bare,", id="reader"),
        pytest.param(["--option", "splitSize"], "--option splitSize has no value; write it as KEY=VALUE.", id="option"),
    ],
)
def test_bad_usage_is_refused(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        read.main(arguments)

    assert left.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_jvm_connector_is_refused_where_it_cannot_run_and_left_out_where_nobody_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.3.0")
    heard: list[str] = []

    with pytest.raises(SystemExit) as left:
        read.main(["--only", "iceberg-jvm"])

    assert left.value.code == 2
    sentence = "Iceberg's JVM connector runs here on Spark 4.1, and this is 4.3.0."
    assert sentence in capsys.readouterr().err
    assert "iceberg-jvm" not in [kind.key for kind in chosen(None, heard.append)]
    assert f"Left out: {sentence}" in heard
    heard.clear()
    assert chosen(None, heard.append, jvm=False)
    assert not [sentence for sentence in heard if "JVM" in sentence]


def test_only_options_that_the_package_knows_are_passed() -> None:
    assert is_option("WHERE")
    assert not is_option("nonsense")
    assert known(where="id = 1", nonsense="2") == {"where": "id = 1"}
    assert pairs(["where=id = 1", "a="]) == {"where": "id = 1", "a": ""}


@pytest.mark.long
def test_memory_of_a_read_is_that_of_a_process_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--memory", "--memory-rows", "1000", "--times", "3", "--rounds", "1", "--json"]

    rows = run(read.main, *few, to=tmp_path)["read-memory"]

    expected = [("paimon", 1000), ("paimon", 3000), ("iceberg", 1000), ("iceberg", 3000)]
    assert [(row["format"], row["rows"]) for row in rows] == expected
    assert all(row["peak MB"] >= row["before MB"] > 10 and row["file MB"] >= 0 for row in rows)
    assert [row["goal"] for row in rows] == [None, 1.2, None, 1.2]
    assert json.loads(capsys.readouterr().out)["rows"] == rows


@pytest.mark.long
def test_memory_of_a_delete_is_that_of_a_process_of_its_own(tmp_path: Path) -> None:
    few = ["--memory", "--memory-rows", "1000", "--rounds", "1"]

    rows = run(delete.main, *few, to=tmp_path)["delete-memory"]

    assert [(row["format"], row["rows"]) for row in rows] == [
        ("paimon", 1000), ("paimon", 20_000), ("iceberg", 1000), ("iceberg", 20_000)
    ]  # fmt: skip
    assert all(row["peak MB"] >= row["before MB"] > 10 for row in rows)


IN_ONE_JVM = """
import sys
from benchmarks import read

to = ["--results", sys.argv[1]]
few = ["--rows", "3000", "--wide-rows", "500", "--files", "2", "--rounds", "1", "--warmups", "0"]
read.main([*few, "--queries", "sum", "all", "count", "filter", "range", "--no-jvm", *to])
read.main(["--balance", "--large-mb", "2", "--small-mb", "0.1", "--small-files", "3", "--rounds", "1", *to])
"""


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_every_reader_reads_the_same_rows_of_both_tables_in_both_formats(tmp_path: Path) -> None:
    # A process of its own: the session of the other tests stays as it is.
    command = [sys.executable, "-c", IN_ONE_JVM, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]

    found = {name.partition("-spark")[0]: rows for name, rows in results(tmp_path).items()}
    reads = {(row["table"], row["format"], row["query"], row["who"]) for row in found["read"]}
    tables = [(title, name) for title in ("3,000 x 5", "500 x 60") for name in ("paimon", "iceberg")]
    queries = ["sum of one column", "all columns", "count", "filter, 1 % of the rows", "filter, 1 % side by side"]
    everywhere = ["spark.read.parquet", "bare Python source", 'format("pwc")']
    assert {(*table, query, who) for table in tables for query in queries for who in everywhere} <= reads
    assert ("3,000 x 5", "paimon", "count", "bare Python source, columns") in reads
    assert ("3,000 x 5", "paimon", "all columns", "bare Python source, columns") not in reads
    assert {table_format for _, table_format, _, who in reads if "pypaimon" in who} == {"paimon"}
    assert all(row["x Parquet"] > 0 for row in found["read"])

    balance = found["read-balance"]
    assert [(row["format"], "pwc" in row["who"]) for row in balance] == [
        (name, ours) for name in ("paimon", "iceberg") for ours in (False, True)
    ]
    written = (2 << 20) // 256 + 3 * ((1 << 20) // 10 // 256)
    assert {sum(row["rows of each task"]) for row in balance} == {written}
