"""The benchmarks run: a few commits of each, so that they do not rot. What they measure here means nothing."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import commit_overhead, growth, memory

HAS_PLOTS = importlib.util.find_spec("matplotlib") is not None


def run(benchmark: Callable[[Sequence[str]], None], *arguments: str, to: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of all it wrote, by name."""
    benchmark([*arguments, "--results", str(to)])
    found = {path.stem: json.loads(path.read_text()) for path in to.glob("*.json")}
    assert all(body["machine"]["cores"] and body["versions"]["pypaimon"] for body in found.values())
    assert {path.stem for path in to.glob("*.png")} == (found.keys() if HAS_PLOTS else set())
    return {name: body["rows"] for name, body in found.items()}


@pytest.mark.parametrize("store", ["local", pytest.param("s3", marks=pytest.mark.s3)])
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


def test_memory_is_that_of_a_process_of_its_own(tmp_path: Path) -> None:
    few = ["--rows", "1000", "--times", "1", "3", "--turns", "1", "--formats", "paimon"]

    found = run(memory.main, *few, to=tmp_path)

    assert [(row["format"], row["rows"]) for row in found["memory"]] == [("paimon", 1000), ("paimon", 3000)]
    assert all(row["peak MB"] >= row["before MB"] > 10 for row in found["memory"])
