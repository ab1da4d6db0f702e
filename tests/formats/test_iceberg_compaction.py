"""Compaction of Iceberg tables: branches, transforms, deletes, older partitionings, and what a summary says."""

from __future__ import annotations

import pytest
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.transforms import IdentityTransform

from paimon_sink.core.errors import OptionError, UnsupportedTableError
from paimon_sink.core.steps import Step, listening
from paimon_sink.maintain.compact import compact_groups, plan
from paimon_sink.read.partition import partition_filters
from tests.formats.test_iceberg_tasks import EVENTS
from tests.support import tasks
from tests.support.compaction import compact
from tests.support.iceberg_deletes import delete_a_row
from tests.support.iceberg_engine import native
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows


@pytest.fixture
def lake(iceberg_sqlite_lake: Lake) -> Lake:
    return iceberg_sqlite_lake


def test_the_summary_says_what_was_replaced(lake: Lake) -> None:
    parted = lake.with_options(partitionBy="day")
    for number in range(4):
        parted.append(number, rows(number, day="ab"[number % 2]))
    before = native(lake).current_snapshot()

    compact(lake)

    newest = native(lake).current_snapshot()
    assert before is not None
    assert before.summary is not None
    assert newest is not None
    assert newest.summary is not None
    said = newest.summary.additional_properties
    assert newest.summary.operation.value == "replace"
    assert {key: said[key] for key in said if "data-files" in key or "records" in key or "partition" in key} == {
        "added-data-files": "2",
        "deleted-data-files": "4",
        "added-records": "4",
        "deleted-records": "4",
        "total-data-files": "2",
        "total-records": "4",
        "changed-partition-count": "2",
    }
    sizes = {key: int(said[key]) for key in ("total-files-size", "added-files-size", "removed-files-size")}
    was = int(before.summary.additional_properties["total-files-size"])
    assert sizes["total-files-size"] == was + sizes["added-files-size"] - sizes["removed-files-size"]
    entries = [
        entry
        for manifest in newest.manifests(native(lake).io)
        for entry in manifest.fetch_manifest_entry(native(lake).io, discard_deleted=False)
        if entry.snapshot_id == newest.snapshot_id
    ]
    assert sorted(entry.status.name for entry in entries) == ["ADDED"] * 2 + ["DELETED"] * 4
    assert {entry.sequence_number for entry in entries if entry.status is ManifestEntryStatus.DELETED} == {1, 2, 3, 4}


def test_a_branch_is_compacted_by_itself(lake: Lake) -> None:
    for number in range(3):
        lake.append(number, rows(number))
    audit = lake.with_options(branch="audit", commitUser="auditor")
    for number in range(3):
        audit.append(number, rows(10 + number))

    done = compact(audit)

    assert (done.files_before, done.files_after) == (6, 1)
    assert (len(audit.open().scans.live_files()), len(lake.open().scans.live_files())) == (1, 3)
    assert (audit.ids(), lake.ids()) == ([0, 1, 2, 10, 11, 12], [0, 1, 2])
    assert audit.history()[-1].kind == "replace"
    audit.append(2, rows(12))
    compact(lake)
    assert (audit.ids(), lake.ids()) == ([0, 1, 2, 10, 11, 12], [0, 1, 2])


def test_a_branch_that_is_not_there_is_said(lake: Lake) -> None:
    lake.append(0, rows(0))

    with pytest.raises(OptionError, match="no branch 'nowhere'"):
        compact(lake.with_options(branch="nowhere"))


@pytest.mark.parametrize("partition_by", ["days(at)", "hours(seen)", "bucket(4, name)", "truncate(2, name)"])
def test_rows_stay_in_the_partitions_of_transforms(lake: Lake, partition_by: str) -> None:
    parted = lake.with_options(partitionBy=partition_by)
    tasks.append(parted, 0, EVENTS)
    tasks.append(parted, 1, EVENTS)
    partitions = {file.partition for file in parted.open().scans.live_files()}

    done = compact(parted)

    assert done.groups == done.files_after == len(partitions) > 1
    assert {file.partition for file in parted.open().scans.live_files()} == partitions
    assert native(lake).scan().to_arrow().sort_by("id").num_rows == 2 * EVENTS.num_rows


def test_a_partition_is_chosen_by_files_and_all_of_their_rows_stay(lake: Lake) -> None:
    parted = lake.with_options(partitionBy="bucket(2, id)")
    for number in range(3):
        parted.append(number, rows(*range(10 * number, 10 * number + 10)))
    table = parted.open()
    filters = partition_filters(table, {"id": "7"})

    done = compact_groups(table, plan(table, target_bytes=128 << 20, filters=filters).groups)

    assert (done.groups, done.files_after) == (1, 1)
    assert 1 <= done.files_before <= 3
    assert done.rows > 1
    assert parted.ids() == list(range(30))


def test_files_of_an_earlier_partitioning_are_left_alone(lake: Lake) -> None:
    for number in range(3):
        lake.append(number, rows(number))
    with native(lake).update_spec() as update:
        update.add_field("day", IdentityTransform(), "day")
    for number in range(3, 6):
        lake.append(number, rows(number))

    done = compact(lake)

    assert (done.files_before, done.files_after) == (3, 1)
    assert len(lake.open().scans.plan_splits([])) == 4
    assert lake.ids() == list(range(6))
    assert len(list(native(lake).scan().plan_files())) == 4


# ---------------------------------------------------------------- rows that others deleted


def test_a_table_with_delete_files_is_refused_by_name(lake: Lake) -> None:
    for number in range(3):
        lake.append(number, rows(number))
    delete_a_row(lake)
    assert lake.ids() == [1, 2]

    with pytest.raises(UnsupportedTableError, match="it has delete files"):
        compact(lake)

    assert lake.ids() == [1, 2]


@pytest.mark.parametrize("step", [Step.WRITE_STARTED, Step.AFTER_LOOK, Step.BEFORE_PUT], ids=lambda step: step.value)
def test_a_row_that_is_deleted_meanwhile_does_not_come_back(lake: Lake, step: Step) -> None:
    for number in range(3):
        lake.append(number, rows(number))

    with (
        listening(once_at(step, lambda: delete_a_row(lake))),
        pytest.raises(UnsupportedTableError, match="it has delete files"),
    ):
        compact(lake)

    assert lake.ids() == [1, 2]
    assert len(lake.open().scans.plan_splits([])) == 3
