"""The benchmarks run: a few commits of each, so that they do not rot. What they measure here means nothing."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import (
    commit_overhead,
    contention,
    encoding,
    fan_out,
    growth,
    latency,
    memory,
    messages,
    metrics_cost,
    report,
    throughput,
)
from benchmarks.sinks import BY_KEY
from benchmarks.throughput import Taken

ROOT = Path(__file__).parent.parent
HAS_PLOTS = importlib.util.find_spec("matplotlib") is not None


def run(benchmark: Callable[[Sequence[str]], None], *arguments: str, to: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of all it wrote, by name."""
    benchmark([*arguments, "--results", str(to)])
    return results(to)


def results(to: Path) -> dict[str, list[dict[str, Any]]]:
    found = {path.stem: json.loads(path.read_text()) for path in to.glob("*.json")}
    assert all(body["machine"]["cores"] and body["versions"]["pypaimon"] for body in found.values())
    assert {path.stem for path in to.glob("*.md")} == found.keys()
    assert {path.stem for path in to.glob("*.png")} >= (found.keys() if HAS_PLOTS else set())
    return {name: body["rows"] for name, body in found.items()}


@pytest.mark.parametrize("store", ["local", pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.long])])
def test_growth_measures_ours_further_than_the_others(store: str, tmp_path: Path) -> None:
    few = ["--first", "1", "--commits", "2", "--peer-commits", "1", "--turns", "1", "--store", store]

    found = run(growth.main, *few, to=tmp_path)

    ours = [(f"paimon-sink, {name}", commits) for name in ("Paimon", "Iceberg") for commits in (1, 2)]
    commits = [(row["who"], row["commits"]) for row in found[f"commit-growth-{store}"]]
    assert commits == [*ours, ("pypaimon", 1), ("pyiceberg", 1)]
    assert [(row["who"], row["commits"]) for row in found[f"plan-growth-{store}"]] == ours
    assert all(row["old ms"] > 0 and row["young ms"] > 0 for rows in found.values() for row in rows)


def test_growth_passes_expiry_on_and_says_what_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        growth.main(["--option", "expire.nonsense=1", "--commits", "1", "--results", str(tmp_path)])

    assert left.value.code == 2
    assert "expire.nonsense" in capsys.readouterr().err


def test_encoding_compares_other_ways_with_the_one_that_tasks_take(tmp_path: Path) -> None:
    found = run(encoding.main, "--rows", "100000", "--turns", "1", to=tmp_path)["encoding"]

    assert found[0]["how"] == "as tasks write"
    assert found[0]["x as tasks write"] == found[0]["x bytes"] == 1
    sizes = {row["how"]: row["bytes a row"] for row in found}
    assert sizes["without compression"] > sizes["no dictionaries"] > sizes["integers and times as differences"]


def test_the_points_double_up_to_the_last() -> None:
    assert growth.points(100, 1000, 700) == [100, 200, 400, 700, 800, 1000]
    assert growth.points(100, 40) == [40]


def test_commit_overhead_measures_every_size_in_both_formats(tmp_path: Path) -> None:
    found = run(commit_overhead.main, "--files", "2", "5", "--turns", "1", to=tmp_path)

    rows = found["commit-overhead-local"]
    assert [(row["format"], row["files"]) for row in rows] == [
        ("paimon", 2),
        ("paimon", 5),
        ("iceberg", 2),
        ("iceberg", 5),
    ]
    assert all(row["commit ms"] > 0 and row["put ms"] > 0 for row in rows)


@pytest.mark.s3
@pytest.mark.long
def test_latency_counts_requests_and_those_that_waited_for_each_other(tmp_path: Path) -> None:
    few = ["--files", "1", "--delays", "0", "--turns", "1"]

    rows = run(latency.main, *few, to=tmp_path)["latency"]

    commits = [(row["format"], row["what"], row["who"]) for row in rows if row["files"] == 1]
    assert commits == [
        (table_format, what, who)
        for table_format, library in (("paimon", "pypaimon"), ("iceberg", "pyiceberg"))
        for what, who in (("commit", library), ("stream commit", latency.OURS), ("batch commit", latency.OURS))
    ]
    assert [row["what"] for row in rows if row["files"] is None] == [*latency.LOOKS, *latency.LOOKS]
    assert all(row["requests"] >= row["chain"] >= 0 and row["ms"] > 0 for row in rows)


@pytest.mark.long
def test_messages_are_measured_beside_their_manifests(tmp_path: Path) -> None:
    few = ["--messages", "10", "--files", "20", "--turns", "1"]

    rows = run(messages.main, *few, to=tmp_path)["messages"]

    assert [row["format"] for row in rows] == ["paimon", "iceberg"]
    assert all(row["commit s"] > 0 and row["manifests s"] > 0 and row["peak MB"] > 10 for row in rows)
    assert all(row["bytes a file"] < row["as JSON"] for row in rows)


@pytest.mark.long
def test_memory_is_that_of_a_process_of_its_own(tmp_path: Path) -> None:
    few = ["--rows", "1000", "--times", "1", "3", "--turns", "1", "--formats", "paimon"]

    found = run(memory.main, *few, to=tmp_path)

    assert [(row["format"], row["rows"]) for row in found["memory"]] == [("paimon", 1000), ("paimon", 3000)]
    assert all(row["peak MB"] >= row["before MB"] > 10 for row in found["memory"])


def test_metrics_cost_measures_with_and_without_the_listener(tmp_path: Path) -> None:
    found = run(metrics_cost.main, "--rows", "1000", "--rounds", "1", to=tmp_path)

    rows = found["metrics-cost-local"]
    assert [row["format"] for row in rows] == ["paimon", "iceberg"]
    assert all(row["with ms"] > row["telling ms"] > 0 and row["ratio"] > 0 for row in rows)


@pytest.mark.long
def test_fan_out_measures_a_file_for_each_partition(tmp_path: Path) -> None:
    few = ["--rows", "500", "--partitions", "1", "4", "--turns", "1", "--formats", "paimon"]

    rows = run(fan_out.main, *few, to=tmp_path)["fan-out"]

    assert [(row["partitions"], row["files"]) for row in rows] == [(1, 1), (4, 4)]
    assert all(row["peak MB"] > row["rows MB"] > 0 and row["seconds"] > 0 for row in rows)


@pytest.mark.parametrize("store", ["local", pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.long])])
def test_contention_counts_every_commit_of_ours_and_of_the_libraries(store: str, tmp_path: Path) -> None:
    few = ["--committers", "2", "--commits", "2", "--turns", "1", "--store", store]

    rows = run(contention.main, *few, to=tmp_path)[f"contention-{store}"]

    assert [(row["format"], row["writer"]) for row in rows] == [
        ("paimon", "pypaimon"),
        ("paimon", "paimon-sink"),
        ("iceberg", "pyiceberg"),
        ("iceberg", "paimon-sink"),
    ]
    assert all(row["acknowledged"] + row["refused"] == row["tried"] == 4 for row in rows)
    ours = [row for row in rows if row["writer"] == "paimon-sink"]
    assert all((row["acknowledged"], row["lost"], row["doubled"]) == (4, 0, 0) for row in ours)


def test_speeds_are_compared_round_by_round() -> None:
    class Named:
        def __init__(self, key: str) -> None:
            self.key, self.name = key, BY_KEY[key].name

    # The machine was slow at times. Medians of all the times would differ by a factor of 20.
    drain: Any = Taken(Named("drain"), [1.0, 10.0, 1.0])  # type: ignore[arg-type]
    ours: Any = Taken(Named("ours-paimon"), [2.0, 20.0, 20.0])  # type: ignore[arg-type]

    rows = throughput.speeds([drain, ours], rows=2_000_000)

    assert [row["x drain"] for row in rows] == [1.0, 0.5]
    assert rows[0]["million rows/s"] == 2.0


def test_a_jvm_connector_is_refused_where_it_cannot_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.3.0")

    with pytest.raises(SystemExit) as left:
        throughput.main(["batch", "--sinks", "paimon-jvm"])

    assert left.value.code == 2
    assert "Paimon's JVM connector runs here on Spark 4.1, and this is 4.3.0." in capsys.readouterr().err


def test_markdown_leaves_out_what_is_only_for_machines() -> None:
    table = report.markdown([{"who": "drain", "seconds": 1.5, "x": None, "each round": [1.5]}])

    assert table == "| who | seconds | x |\n| --- | ---: | ---: |\n| drain | 1.50 | - |\n"


IN_ONE_JVM = """
import sys
from benchmarks import profile_path, replay, throughput

to = ["--results", sys.argv[1]]
few = ["--rows", "400", "--batches", "2", "--rounds", "1", "--warmups", "0"]
throughput.main(["batch", *few, "--sinks", "drain", "ours-paimon", "ours-paimon-by-rows", *to])
profile_path.main(["--rows", "20000", "--rounds", "1", "--sinks", "drain", "ours-paimon-by-rows", *to])
replay.main(["--rows", "300", "--sinks", "ours-paimon", "ours-iceberg", *to])
"""


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_spark_writes_and_replays_the_same_rows_through_every_sink(tmp_path: Path) -> None:
    # A process of its own: the session of the other tests stays as it is.
    command = [sys.executable, "-c", IN_ONE_JVM, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]

    found = {name.partition("-spark")[0]: rows for name, rows in results(tmp_path).items()}
    speeds = [(row["who"], row["seconds"] > 0) for row in found["throughput-batch"]]
    assert speeds == [
        ("Arrow drain (writes nothing)", True),
        ("paimon-sink, Paimon", True),
        ("paimon-sink, Paimon, by rows", True),
    ]
    assert [row["JVM s"] > 0 and row["Python s"] > 0 for row in found["profile"]] == [True, True]
    assert [row["who"] for row in found["bytes"]] == ["paimon-sink, Paimon"]
    assert [(row["who"], row["rows in the table"], row["doubled"]) for row in found["replay"]] == [
        ("paimon-sink, Paimon", 300, 0),
        ("paimon-sink, Iceberg", 300, 0),
    ]
