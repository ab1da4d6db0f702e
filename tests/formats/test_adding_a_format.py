"""The page about formats from other packages: its example runs, and its suite notices what is broken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.formats.contract import Table
from paimon_sink.formats.memory import memory_lake
from paimon_sink.formats.memory.commits import MemoryCommits, MemoryPrepared
from paimon_sink.formats.memory.scans import MemoryScans
from paimon_sink.formats.registry import GROUP
from paimon_sink.formats.values import PutOutcome
from paimon_sink.testing import ContractLake, FormatContract, SecondEngineContract

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-format.md").read_text(encoding="utf-8")
PARTS = ("files", "commits", "scans", "upkeep", "refs", "side_files")


@pytest.fixture
def lake() -> Iterator[ContractLake]:
    with memory_lake() as opened:
        options = opened.options("sales.orders")
        yield ContractLake(options=options, drop=lambda: opened.drop("sales.orders"))


# ---------------------------------------------------------------- the page


def install_the_example(directory: Path) -> None:
    """The modules of the page, and the metadata that an installer would write beside them."""
    modules = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, flags=re.DOTALL))
    assert list(modules) == ["puddle_capabilities.py", "puddle_format.py", "test_puddle.py"]
    for name, source in modules.items():
        (directory / name).write_text(source)
    [project] = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    registered = tomllib.loads(project)["project"]["entry-points"][GROUP]
    metadata = directory / "puddle-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: puddle\nVersion: 1.0\n")
    lines = [f"{name} = {path}" for name, path in registered.items()]
    (metadata / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))


def test_the_example_is_a_format_from_outside_that_keeps_every_clause(tmp_path: Path) -> None:
    install_the_example(tmp_path)

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "test_puddle.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    clauses = {name for name in vars(FormatContract) if name.startswith("test_")}
    assert set(re.findall(r"::TestPuddle::(\w+).* PASSED", run.stdout)) == clauses


def test_the_page_names_the_parts_of_a_table_and_of_a_lake() -> None:
    assert set(PARTS) <= {field.name for field in fields(Table)}
    named = (*PARTS, *(field.name for field in fields(ContractLake)))

    assert [name for name in named if f"| `{name}` |" not in PAGE] == []


# ---------------------------------------------------------------- it would see what is broken


def always(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


def put_and_claim_success(prepared: MemoryPrepared) -> PutOutcome:
    prepared._handle.state.put(prepared._snapshot, base=prepared._base)
    return PutOutcome.LANDED


@pytest.mark.parametrize(
    ("part", "method", "broken", "clause"),
    [
        pytest.param(
            MemoryPrepared,
            "put",
            put_and_claim_success,
            "test_a_put_on_an_id_that_is_taken_is_lost_and_changes_nothing",
            id="every put is said to have landed",
        ),
        pytest.param(
            MemoryPrepared,
            "resolve_outcome",
            always(PutOutcome.ABSENT),
            "test_a_snapshot_settles_as_landed_under_later_ones",
            id="what landed is not found again",
        ),
        pytest.param(
            MemoryPrepared,
            "discard",
            always(None),
            "test_discarding_removes_what_was_built_and_nothing_else",
            id="what was built stays",
        ),
        pytest.param(
            MemoryCommits,
            "files_added_by",
            always(frozenset()),
            "test_the_files_of_a_snapshot_that_is_gone_or_anothers_cannot_be_told",
            id="a snapshot that is gone is told to have no files",
        ),
        pytest.param(
            MemoryScans,
            "plan_splits",
            always([]),
            "test_splits_together_are_the_newest_snapshot",
            id="rows are not read",
        ),
    ],
)
def test_a_format_that_is_broken_fails_the_clause(
    lake: ContractLake, monkeypatch: pytest.MonkeyPatch, part: type, method: str, broken: Any, clause: str
) -> None:
    monkeypatch.setattr(part, method, broken)

    with pytest.raises(AssertionError):
        getattr(FormatContract(), clause)(lake)


@pytest.mark.parametrize("clause", sorted(name for name in vars(SecondEngineContract) if name.startswith("test_")))
def test_a_clause_about_a_second_engine_fails_where_there_is_none(lake: ContractLake, clause: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="need another engine, and this ContractLake has none"):
        getattr(SecondEngineContract(), clause)(lake)
