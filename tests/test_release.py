"""What a release stands on: its tag, its changelog, its samples, and its benchmarks beside those of the one before."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from scripts import bench_history

ROOT = Path(__file__).parent.parent


def loaded(script: str) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("check_release", str(ROOT / "scripts" / script))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n")
    (tmp_path / "tests" / "compat" / "data" / "0.2.0").mkdir(parents=True)
    (tmp_path / "benchmarks" / "history").mkdir(parents=True)
    (tmp_path / "benchmarks" / "history" / "0.2.0.json").touch()
    return tmp_path


def test_a_tag_is_released_only_with_all_that_belongs_to_it(tree: Path) -> None:
    problems = loaded("check-release").problems

    assert problems("v0.2.0", tree) == []
    assert len(problems("v0.3.0", tree)) == 1
    (tree / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    (tree / "benchmarks" / "history" / "0.2.0.json").unlink()
    (tree / "tests" / "compat" / "data" / "0.2.0").rmdir()
    assert [problem.split()[0] for problem in problems("v0.2.0", tree)] == [
        "CHANGELOG.md",
        "tests/compat/data",
        "benchmarks/history",
    ]


def test_ratios_of_two_releases_are_compared_by_name() -> None:
    before = {"a": 1.0, "b": 1.0, "gone": 2.0}

    moved = list(bench_history.compared(before, {"a": 1.05, "b": 1.2, "new": 3.0}))

    assert moved == [("b", 1.0, 1.2), ("gone", 2.0, None), ("new", None, 3.0)]


def test_every_result_has_figures_that_a_release_keeps() -> None:
    figures = bench_history.kept()["figures"]

    assert figures["throughput-batch-spark4.1, paimon-sink, Paimon, by rows, x Parquet"] > 0
    assert len(figures) > 100


def test_a_release_that_was_kept_can_be_compared() -> None:
    for file in bench_history.HISTORY.glob("*.json"):
        stored = json.loads(file.read_text(encoding="utf-8"))
        assert stored["figures"]
        assert bench_history.figures_of(file.stem)


def test_only_the_workflow_of_a_release_may_ask_for_a_token() -> None:
    workflows = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")}

    assert [name for name, text in workflows.items() if "id-token: write" in text] == ["release.yml"]
    assert not any(re.search(r"\$\{\{\s*secrets\.", text) for text in workflows.values())
