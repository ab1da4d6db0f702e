"""Compaction of Paimon tables: what its entries and its snapshot say to other engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pypaimon.common.json_util import JSON
from pypaimon.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER

from paimon_sink.core.errors import UnsupportedTableError
from paimon_sink.formats.contract import Table
from paimon_sink.formats.paimon.snapshots import PaimonSnapshotInfo
from paimon_sink.formats.values import CommitKind, Plan
from paimon_sink.maintain.compact import COMMIT_USER, publish
from tests.support import foreign
from tests.support.batches import path_in
from tests.support.compaction import compact, rewritten
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.paimon_engine import _entries, _newest


def test_the_snapshot_and_its_entries_are_those_of_a_compaction(local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day")
    for number in range(4):
        lake.append(number, rows(number, 10 + number, day="ab"[number % 2]))

    compact(lake)

    newest = lake.snapshots()[-1]
    assert (newest["commitKind"], newest["commitIdentifier"]) == ("COMPACT", BATCH_COMMIT_IDENTIFIER)
    assert newest["commitUser"].startswith(f"{COMMIT_USER}-")
    assert (newest["deltaRecordCount"], newest["totalRecordCount"]) == (0, 8)
    native = foreign.table(lake)
    files = [entry.file for entry in _entries(native, _newest(native))]
    assert [(file.file_source, file.row_count, file.level) for file in files] == [(1, 4, 0)] * 2
    assert [(file.min_sequence_number, file.max_sequence_number) for file in files] == [(0, 3)] * 2


def test_files_of_another_engine_are_compacted_with_ours(local_lake: Lake) -> None:
    engine = other_engine(local_lake)
    local_lake.append(0, rows(0))
    engine.append(rows(1))
    engine.compact()
    engine.append(rows(2))

    done = compact(local_lake)
    engine.append(rows(3))
    local_lake.append(1, rows(4))

    assert (done.files_before, done.files_after) == (2, 1)
    assert local_lake.ids() == engine.read_ids() == [0, 1, 2, 3, 4]


def test_a_table_with_an_index_is_refused_by_name(local_lake: Lake) -> None:
    """It may hold deletion vectors, also when the table does not ask for them any more."""
    for number in range(2):
        local_lake.append(number, rows(number))
    ready = rewritten(local_lake)
    newest = local_lake.snapshots()[-1]
    table = local_lake.open()
    table.store.write(path_in(local_lake, "manifest", "index-manifest-1"), b"")
    snapshot = replace(_snapshot(table), index_manifest="index-manifest-1")
    _write(local_lake, int(newest["id"]), snapshot)

    with pytest.raises(UnsupportedTableError, match="may hold deletion vectors"):
        compact(local_lake)
    with pytest.raises(UnsupportedTableError, match="may hold deletion vectors"):
        publish(local_lake.open(), ready)


def _snapshot(table: Table) -> Any:
    newest = table.upkeep.history()[-1]
    assert isinstance(newest, PaimonSnapshotInfo)
    return newest.snapshot


def _write(lake: Lake, number: int, snapshot: Any) -> None:
    lake.open().store.write(path_in(lake, "snapshot", f"snapshot-{number}"), JSON.to_json(snapshot).encode())


def test_a_plan_that_removes_files_changes_something() -> None:
    empty = Plan("user", None, None, (), CommitKind.REWRITE, None, frozenset(), removed=frozenset({"a"}))

    assert not empty.changes_nothing
