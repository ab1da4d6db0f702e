"""The page about listeners: its example runs, and it has every setting that there is."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from paimon_sink.core.errors import OptionError
from paimon_sink.listen.loading import BUILT_IN, ListenerContext, load_by_path
from tests.support.lake import Lake, rows
from tests.support.listeners import with_listener

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "listeners.md").read_text()


def test_the_listener_of_ones_own_works_as_it_stands(
    local_lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "listening_by_example.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    counted = tmp_path / "days.json"
    told = with_listener(local_lake, "listening_by_example:BatchesADay", {"file": str(counted)}, partitionBy="day")
    told.stream_writer().check_plan()
    told.append(0, rows(1, 2, day="2024-02-02"))
    told.append(1, rows(3, day="2024-02-02"), rows(4, day=None))
    told.append(1, rows(3, day="2024-02-02"), rows(4, day=None))
    assert json.loads(counted.read_text()) == {"2024-02-02": 2, "none": 1}
    sys.modules.pop("listening_by_example")


@pytest.mark.parametrize("name", [name for name in BUILT_IN if f"\n## {name}\n" in PAGE])
def test_every_setting_is_on_the_page(name: str) -> None:
    with pytest.raises(OptionError) as refused:
        load_by_path(BUILT_IN[name], what="listener")(ListenerContext(name, {"zzzzzzzz": ""}))
    [known] = re.findall(r"there are (.*)\.", str(refused.value))
    [section] = re.findall(rf"\n## {name}\n(.*?)(?=\n## |\Z)", PAGE, flags=re.DOTALL)
    for key in known.split(", "):
        assert f"\n| `{key}` | " in section


def test_the_built_in_listeners_are_entry_points_too() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["paimon_sink.listeners"] == BUILT_IN


def test_both_are_on_the_page() -> None:
    assert {"mark-done", "tags"} <= {name for name in BUILT_IN if f"\n## {name}\n" in PAGE}


def test_a_name_that_is_not_known_is_refused_with_the_nearest(local_lake: Lake) -> None:
    with pytest.raises(OptionError, match=r"No installed package has a listener 'markdone'; did you mean mark-done\?"):
        with_listener(local_lake, "markdone", {}).stream_writer().check_plan()
