"""Another engine renames its snapshot over ours after somebody built on ours: nothing that is named is deleted."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable

import pytest

from paimon_sink.maintain.verify import verify
from tests.support.batches import coordinator, path_in, write_plan
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows

pytestmark = pytest.mark.damages
"""A snapshot that is renamed over leaves a history that does not hang together."""

Builder = Callable[[Lake], None]


def ours(lake: Lake) -> None:
    lake.with_options(commitUser="somebody").append(0, rows(3))


def another_engine(lake: Lake) -> None:
    other_engine(lake).append(rows(3))


def rename_over(lake: Lake, target: str) -> None:
    """What another engine does that looked before ours came: a snapshot of its own on the first one."""
    with open(path_in(lake, "snapshot", "snapshot-1"), encoding="utf-8") as first:
        snapshot = json.load(first)
    snapshot |= {"id": 2, "commitUser": "java", "commitIdentifier": 2**63 - 1}
    del snapshot["properties"]
    temporary = path_in(lake, "snapshot", f".snapshot-2.{uuid.uuid4()}.tmp")
    with open(temporary, "x", encoding="utf-8") as file:
        json.dump(snapshot, file)
    os.rename(temporary, target)


@pytest.mark.parametrize("build_on_it", [ours, another_engine])
def test_a_snapshot_that_was_built_on_before_it_was_replaced_is_in(
    local_lake: Lake, monkeypatch: pytest.MonkeyPatch, build_on_it: Builder
) -> None:
    local_lake.append(0, rows(1))
    plan = write_plan(local_lake, 1, rows(2))
    link = os.link

    def link_and_be_replaced(source: str, target: str) -> None:
        link(source, target)
        if target.endswith("snapshot-2"):
            monkeypatch.setattr(os, "link", link)
            build_on_it(local_lake)
            rename_over(local_lake, target)

    monkeypatch.setattr(os, "link", link_and_be_replaced)
    coordinator(local_lake).commit(plan)

    assert local_lake.ids() == [1, 2, 3]
    assert not [found for found in verify(local_lake.open(), deep=True).problems if "manifest" in found.where]


def test_what_stood_for_a_moment_keeps_its_manifests(local_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever read it in that moment may put a snapshot on it later."""
    local_lake.append(0, rows(1))
    plan = write_plan(local_lake, 1, rows(2))
    stood: list[set[str]] = []
    link = os.link

    def link_and_be_replaced(source: str, target: str) -> None:
        link(source, target)
        if target.endswith("snapshot-2"):
            stood.append(set(local_lake.files("manifest")))
            rename_over(local_lake, target)

    monkeypatch.setattr(os, "link", link_and_be_replaced)
    coordinator(local_lake).commit(plan)

    assert local_lake.ids() == [1, 2]
    assert local_lake.batch_ids()[-1] == 1
    assert stood[0] <= set(local_lake.files("manifest"))
