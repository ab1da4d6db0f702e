"""The page about testing with tables in memory: its example runs, and it names what a lake offers."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from paimon_sink.formats.memory import MemoryLake

PAGE = (Path(__file__).parents[2] / "docs" / "testing-your-job.md").read_text()
_OF_THE_FORMAT = {"state_at", "create_at"}


def test_the_examples_run_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, flags=re.DOTALL))
    assert list(examples) == ["my_job", "test_my_job"]
    for name, source in examples.items():
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))

    module = importlib.import_module("test_my_job")
    tests = [value for name, value in vars(module).items() if name.startswith("test_")]
    for test in tests:
        test()

    assert len(tests) == PAGE.count("\ndef test_") == 2
    for name in examples:
        sys.modules.pop(name)


def test_the_page_has_all_that_a_lake_offers() -> None:
    offered = {name for name, value in vars(MemoryLake).items() if callable(value) and not name.startswith("_")}

    assert {name for name in offered - _OF_THE_FORMAT if f"`{name}(" not in PAGE} == set()
