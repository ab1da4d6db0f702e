"""``pwc verify`` finds what was planted, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pypaimon.manifest.manifest_list_manager import ManifestListManager

from paimon_sink.core.errors import StorageError
from paimon_sink.formats.audit import ProblemKind
from paimon_sink.formats.paimon.snapshots import PaimonSnapshotInfo
from paimon_sink.formats.paimon.table import PaimonTable
from paimon_sink.maintain.verify import Report, verify
from paimon_sink.storage.store import Store
from tests.support import foreign
from tests.support.batches import of_query, path_in, through
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.lying_store import LyingStore
from tests.support.places import Place, places


@pytest.fixture(params=places("local", "s3", format="paimon"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def troubles(report: Report) -> list[tuple[ProblemKind, str]]:
    return [(found.kind, found.where) for found in report.problems]


def a_table(lake: Lake, *, batches: int = 4) -> Lake:
    """Batches 0, 1, … with two rows each, in a file each."""
    for batch in range(batches):
        lake.append(batch, rows(2 * batch, 2 * batch + 1))
    return lake


def store_bytes(lake: Lake, name: str, data: bytes) -> None:
    lake.open().store.write(path_in(lake, name), data)


def delete(lake: Lake, name: str) -> None:
    lake.open().store.delete(path_in(lake, name))


def read_bytes(lake: Lake, name: str) -> bytes:
    return lake.open().store.read(path_in(lake, name))


def file_of(lake: Lake, batch: int) -> str:
    """The data file of one batch of ``a_table``."""
    audit = lake.open().upkeep.audit()
    line = audit.histories()[0]
    for snapshot_info in line.snapshots:
        (file,) = audit.contents(line, snapshot_info).entered
        if snapshot_info.batch_id == batch:
            return file.path
    raise AssertionError(batch)


def rewrite_snapshot(lake: Lake, snapshot_id: int, change: Callable[[dict[str, Any]], None]) -> None:
    name = f"snapshot/snapshot-{snapshot_id}"
    body = json.loads(read_bytes(lake, name))
    change(body)
    store_bytes(lake, name, json.dumps(body).encode())


def rewrite_ledger(lake: Lake, snapshot_id: int, change: Callable[[dict[str, Any]], None]) -> None:
    def inside(body: dict[str, Any]) -> None:
        ledger = json.loads(body["properties"]["pwc.ledger"])
        change(ledger)
        body["properties"]["pwc.ledger"] = json.dumps(ledger)

    rewrite_snapshot(lake, snapshot_id, inside)


def manifest_of(lake: Lake, snapshot_id: int) -> str:
    """The one manifest that a batch of ``a_table`` wrote."""
    table = lake.open()
    assert isinstance(table, PaimonTable)
    info = next(info for info in table.upkeep.history() if info.snapshot_id == snapshot_id)
    assert isinstance(info, PaimonSnapshotInfo)
    (manifest,) = ManifestListManager(table.native).read_delta(info.snapshot)
    return f"manifest/{manifest.file_name}"


# ---------------------------------------------------------------- a table that is whole


@pytest.mark.witness
@pytest.mark.parametrize("deep", [False, True], ids=["footers", "rows"])
def test_a_whole_table_has_no_problems_and_its_figures_are_right(lake: Lake, deep: bool) -> None:
    a_table(lake, batches=3)
    lake.with_options(commitUser="other").append(0, rows(100, day="sunday"))

    report = verify(lake.open(), deep=deep)

    assert report.problems == ()
    assert report.orphans == ()
    assert (report.snapshots, report.first_snapshot, report.newest_snapshot) == (4, 1, 4)
    assert (report.batches, report.commit_users) == (4, 2)
    assert (report.data_files, report.rows) == (4, 7)
    assert report.data_bytes == sum(lake.open().store.size(path_in(lake, name)) for name in lake.data_files())


def test_an_empty_table_is_whole(local_lake: Lake) -> None:
    local_lake.write()

    report = verify(local_lake.open())

    assert report.good
    assert (report.snapshots, report.rows, report.data_files) == (0, 0, 0)


def test_a_table_that_other_engines_and_overwrites_worked_on_is_whole(lake: Lake) -> None:
    a_table(lake, batches=2)
    foreign.append(lake, rows(50))
    lake.commit(2, lake.write(rows(60, 61)), overwrite=True)
    foreign.overwrite(lake, rows(70))
    foreign.append(lake, rows(71), commit_user="flink", identifier=9)
    lake.append(3, rows(80))

    report = verify(lake.open(), deep=True)

    assert report.problems == ()
    assert report.rows == len(lake.ids()) == 3


def test_a_partitioned_table_is_whole_whatever_its_values_are(local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day")
    for batch, day in enumerate(["monday", "a/b", "x=y", "50%", "ü", "", None, "a b"]):
        lake.append(batch, rows(batch, day=day))

    report = verify(lake.open(), deep=True)

    assert report.problems == ()
    assert report.orphans == ()
    assert report.data_files == 8


def test_a_table_whose_oldest_snapshots_expired_is_whole(local_lake: Lake) -> None:
    a_table(local_lake)
    for snapshot_id in (1, 2):
        delete(local_lake, f"snapshot/snapshot-{snapshot_id}")

    report = verify(local_lake.open(), deep=True)

    assert report.problems == ()
    assert (report.first_snapshot, report.rows) == (3, 8)


def test_a_taken_over_name_may_start_again_at_batch_0(local_lake: Lake) -> None:
    local_lake.commit(0, of_query(local_lake.write(rows(1)), "first"))
    local_lake.commit(1, of_query(local_lake.write(rows(2)), "first"))
    local_lake.with_options(takeover="true").commit(0, of_query(local_lake.write(rows(3)), "second"))

    assert verify(local_lake.open()).problems == ()


def test_a_user_that_was_silent_for_longer_than_the_retention_may_leave_the_ledger(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    rewrite_ledger(local_lake, 1, lambda ledger: ledger["users"]["test"].__setitem__(4, 0))
    local_lake.with_options(commitUser="other", ledger__retention="1d").append(0, rows(2))

    assert verify(local_lake.open()).problems == ()


# ---------------------------------------------------------------- planted damage: data files


@pytest.mark.witness
def test_a_deleted_data_file_is_found(lake: Lake) -> None:
    a_table(lake)
    gone = file_of(lake, 1)
    delete(lake, gone)

    assert troubles(verify(lake.open())) == [(ProblemKind.MISSING_FILE, gone)]


def test_a_truncated_data_file_is_found(lake: Lake) -> None:
    a_table(lake)
    name = file_of(lake, 2)
    store_bytes(lake, name, read_bytes(lake, name)[:-7])

    assert troubles(verify(lake.open())) == [(ProblemKind.DAMAGED_FILE, name)]


def test_a_data_file_with_a_garbled_footer_of_the_same_size_is_found(local_lake: Lake) -> None:
    a_table(local_lake)
    name = file_of(local_lake, 0)
    whole = read_bytes(local_lake, name)
    store_bytes(local_lake, name, whole[:-40] + b"x" * 40)

    assert troubles(verify(local_lake.open())) == [(ProblemKind.DAMAGED_FILE, name)]


def test_garbled_rows_are_found_when_rows_are_read(local_lake: Lake) -> None:
    a_table(local_lake)
    name = file_of(local_lake, 0)
    whole = read_bytes(local_lake, name)
    store_bytes(local_lake, name, whole[:4] + b"\xff" * 60 + whole[64:])

    assert verify(local_lake.open()).good
    assert troubles(verify(local_lake.open(), deep=True)) == [(ProblemKind.DAMAGED_FILE, name)]


def test_a_data_file_with_another_number_of_rows_is_found(local_lake: Lake) -> None:
    local_lake.append(0, rows(*range(2000)))
    name = file_of(local_lake, 0)
    other = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1], "day": ["monday"]}), other)
    shorter = other.getvalue().to_pybytes()
    padding = len(read_bytes(local_lake, name)) - len(shorter)
    # Of the same size; a reader finds the footer from the end.
    store_bytes(local_lake, name, shorter[:4] + bytes(padding) + shorter[4:])

    report = verify(local_lake.open())

    assert troubles(report) == [(ProblemKind.DAMAGED_FILE, name)]
    assert report.problems[0].what == "has 1 rows, its manifest says 2,000"


def test_a_file_that_is_in_twice_is_found(local_lake: Lake) -> None:
    """What a coordinator would do that believed a message it was sent a second time under another number."""
    message = local_lake.append(0, rows(1, 2))
    local_lake.commit(1, message)

    assert (ProblemKind.DOUBLED_FILE, "snapshot 2") in troubles(verify(local_lake.open()))


def test_files_that_nothing_names_are_listed_and_are_no_problem(lake: Lake) -> None:
    a_table(lake)
    in_flight = lake.files_of([lake.write(rows(99))])
    store_bytes(lake, "manifest/manifest-left-behind-0", b"x")
    store_bytes(lake, "snapshot/.snapshot-9.0123.tmp", b"x")

    report = verify(lake.open())

    assert report.good
    left = ["manifest/manifest-left-behind-0", "snapshot/.snapshot-9.0123.tmp"]
    assert [orphan.path for orphan in report.orphans] == sorted([*in_flight, *left])
    assert [orphan.size_bytes for orphan in report.orphans if orphan.path in left] == [1, 1]


# ---------------------------------------------------------------- planted damage: metadata


def test_a_snapshot_gap_is_found(lake: Lake) -> None:
    a_table(lake)
    delete(lake, "snapshot/snapshot-2")

    report = verify(lake.open())

    assert troubles(report) == [(ProblemKind.GAP, "snapshot 2")]
    assert report.data_files == 4, "what the snapshots on both sides of the gap name is still checked"


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"\xff", b'{"id": 3}'], ids=repr)
def test_a_broken_snapshot_is_found_by_name(local_lake: Lake, data: bytes) -> None:
    a_table(local_lake)
    store_bytes(local_lake, "snapshot/snapshot-3", data)

    assert (ProblemKind.BROKEN_METADATA, "snapshot/snapshot-3") in troubles(verify(local_lake.open()))


@pytest.mark.parametrize("data", [b"", b"garbage", b"Obj\x01"], ids=repr)
def test_a_broken_manifest_is_found_once_although_every_later_snapshot_names_it(local_lake: Lake, data: bytes) -> None:
    a_table(local_lake)
    name = manifest_of(local_lake, 2)
    store_bytes(local_lake, name, data)

    report = verify(local_lake.open())

    assert troubles(report) == [(ProblemKind.BROKEN_METADATA, name)]
    assert report.rows is None, "it cannot be counted, and is not guessed"


def test_a_missing_manifest_and_a_missing_list_are_found(local_lake: Lake) -> None:
    a_table(local_lake)
    manifest, listing = manifest_of(local_lake, 2), f"manifest/{local_lake.snapshots()[0]['deltaManifestList']}"
    delete(local_lake, manifest)
    delete(local_lake, listing)

    assert set(troubles(verify(local_lake.open()))) == {
        (ProblemKind.MISSING_FILE, manifest),
        (ProblemKind.MISSING_FILE, listing),
    }


def test_a_manifest_that_lost_entries_is_found(local_lake: Lake) -> None:
    lake = local_lake.with_options(partitionBy="day")
    lake.append(0, rows(1))
    lake.append(1, rows(2), rows(3, day="sunday"))
    damaged = manifest_of(lake, 2)
    store_bytes(lake, damaged, read_bytes(lake, manifest_of(lake, 1)))

    assert troubles(verify(lake.open())) == [(ProblemKind.WRONG_COUNT, damaged)]


@pytest.mark.parametrize("count", ["totalRecordCount", "deltaRecordCount"])
def test_a_snapshot_that_states_other_numbers_than_its_manifests_is_found(local_lake: Lake, count: str) -> None:
    a_table(local_lake)
    rewrite_snapshot(local_lake, 2, lambda body: body.update({count: 77}))

    report = verify(local_lake.open())

    assert troubles(report) == [(ProblemKind.WRONG_COUNT, "snapshot 2")]
    assert "says 77 rows" in report.problems[0].what


def test_a_commit_that_another_one_was_not_built_on_is_found(local_lake: Lake) -> None:
    """What is left when two writers publish on the same base and one of them is lost."""
    a_table(local_lake)
    without = local_lake.snapshots()[1]["baseManifestList"]
    rewrite_snapshot(local_lake, 3, lambda body: body.update(baseManifestList=without, totalRecordCount=4))

    found = troubles(verify(local_lake.open()))

    assert (ProblemKind.BROKEN_CHAIN, "snapshot 3") in found


# ---------------------------------------------------------------- planted damage: batches and the ledger


def test_a_doubled_batch_is_found(local_lake: Lake) -> None:
    a_table(local_lake)
    twin = local_lake.snapshots()[1]
    rewrite_snapshot(local_lake, 3, lambda body: body.update(commitIdentifier=twin["commitIdentifier"]))

    assert (ProblemKind.DOUBLED_BATCH, "snapshot 3") in troubles(verify(local_lake.open()))


def test_a_replay_that_another_engine_committed_again_is_found(lake: Lake) -> None:
    a_table(lake, batches=1)
    foreign.append(lake, rows(1), commit_user="flink", identifier=7)
    foreign.append(lake, rows(1), commit_user="flink", identifier=7)

    assert troubles(verify(lake.open())) == [(ProblemKind.DOUBLED_BATCH, "snapshot 3")]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        pytest.param(lambda users: users["test"].__setitem__(0, 1), "its ledger has batch 1", id="goes back"),
        pytest.param(lambda users: users.pop("test"), "its ledger has nothing", id="forgets its own batch"),
        pytest.param(lambda users: users.pop("other"), "without other", id="forgets another user"),
        pytest.param(lambda users: users["other"].__setitem__(0, 2), "other goes back from batch 5", id="other back"),
        pytest.param(lambda users: users["other"].__setitem__(2, "x"), "a second time", id="other committed again"),
        pytest.param(lambda users: users["other"].__setitem__(3, 99), "a later one", id="from the future"),
    ],
)
def test_a_ledger_that_is_out_of_order_is_found(
    local_lake: Lake, change: Callable[[dict[str, list[Any]]], None], what: str
) -> None:
    local_lake.with_options(commitUser="other").append(5, rows(100))
    a_table(local_lake, batches=3)
    rewrite_ledger(local_lake, 4, lambda ledger: change(ledger["users"]))

    report = verify(local_lake.open())

    assert {found.kind for found in report.problems} == {ProblemKind.LEDGER}
    assert any(found.where == "snapshot 4" and what in found.what for found in report.problems)


def test_an_unreadable_ledger_is_found_by_its_snapshot(local_lake: Lake) -> None:
    a_table(local_lake)
    rewrite_snapshot(local_lake, 2, lambda body: body["properties"].update({"pwc.ledger": "{"}))

    assert (ProblemKind.LEDGER, "snapshot 2") in troubles(verify(local_lake.open()))


# ---------------------------------------------------------------- tags, branches, and tables that move


def test_what_a_tag_keeps_is_checked_and_no_orphan(local_lake: Lake) -> None:
    a_table(local_lake, batches=1)
    store_bytes(local_lake, "tag/tag-first", read_bytes(local_lake, "snapshot/snapshot-1"))
    kept = file_of(local_lake, 0)
    local_lake.commit(1, local_lake.write(rows(50)), overwrite=True)
    delete(local_lake, "snapshot/snapshot-1")

    whole = verify(local_lake.open())
    delete(local_lake, kept)

    assert (whole.problems, whole.orphans, whole.tags_and_branches) == ((), (), ("tag first",))
    assert troubles(verify(local_lake.open())) == [(ProblemKind.MISSING_FILE, kept)]


def test_what_a_branch_keeps_is_checked_and_no_orphan(local_lake: Lake) -> None:
    a_table(local_lake, batches=1)
    store_bytes(local_lake, "branch/branch-test/snapshot/snapshot-1", read_bytes(local_lake, "snapshot/snapshot-1"))
    kept = file_of(local_lake, 0)
    local_lake.commit(1, local_lake.write(rows(50)), overwrite=True)
    delete(local_lake, "snapshot/snapshot-1")

    whole = verify(local_lake.open())
    delete(local_lake, kept)

    assert (whole.problems, whole.orphans, whole.tags_and_branches) == ((), (), ("branch test",))
    assert troubles(verify(local_lake.open())) == [(ProblemKind.MISSING_FILE, kept)]


def test_a_table_that_is_expired_while_it_is_read_is_read_again(local_lake: Lake) -> None:
    a_table(local_lake, batches=1)
    old = file_of(local_lake, 0)
    local_lake.commit(1, local_lake.write(rows(50)), overwrite=True)

    def expire(part: str, done: int, of: int) -> None:
        delete(local_lake, "snapshot/snapshot-1")
        delete(local_lake, old)

    assert verify(local_lake.open(), progress=expire).problems == ()


def test_a_batch_that_lands_while_the_table_is_read_leaves_no_orphans(local_lake: Lake) -> None:
    a_table(local_lake, batches=1)
    landed: list[int] = []

    def land(part: str, done: int, of: int) -> None:
        if not landed:
            landed.append(1)
            local_lake.append(1, rows(50))

    report = verify(local_lake.open(), progress=land)

    assert (report.problems, report.orphans) == ((), ())


def test_a_table_that_is_expired_with_every_commit_is_whole_all_the_time(local_lake: Lake) -> None:
    for batch in range(8):
        local_lake.commit(batch, local_lake.write(rows(batch)), overwrite=True)
    replaced = [file_of(local_lake, batch) for batch in range(7)]
    oldest = iter(range(1, 8))

    def expire_one(part: str, done: int, of: int) -> None:
        if part == "snapshots" and done == of and (snapshot_id := next(oldest, None)) is not None:
            delete(local_lake, replaced[snapshot_id - 1])
            delete(local_lake, f"snapshot/snapshot-{snapshot_id}")

    assert verify(local_lake.open(), progress=expire_one).problems == ()


def test_a_tag_that_is_dropped_while_the_table_is_read_is_not_missed(local_lake: Lake) -> None:
    a_table(local_lake, batches=1)
    store_bytes(local_lake, "tag/tag-first", read_bytes(local_lake, "snapshot/snapshot-1"))
    kept = file_of(local_lake, 0)
    local_lake.commit(1, local_lake.write(rows(50)), overwrite=True)
    delete(local_lake, "snapshot/snapshot-1")

    def drop(part: str, done: int, of: int) -> None:
        delete(local_lake, "tag/tag-first")
        delete(local_lake, kept)

    assert verify(local_lake.open(), progress=drop).problems == ()


# ---------------------------------------------------------------- damage beside the snapshots, and other engines


def test_a_damaged_tag_is_found_by_name_and_not_followed(local_lake: Lake) -> None:
    a_table(local_lake, batches=1)
    body = json.loads(read_bytes(local_lake, "snapshot/snapshot-1"))
    store_bytes(local_lake, "tag/tag-null", json.dumps({**body, "commitKind": None}).encode())
    store_bytes(local_lake, "tag/tag-out", json.dumps({**body, "baseManifestList": "../../x"}).encode())

    assert troubles(verify(local_lake.open())) == [
        (ProblemKind.BROKEN_METADATA, "tag/tag-null"),
        (ProblemKind.BROKEN_METADATA, "tag/tag-out"),
    ]


def test_a_schema_that_files_were_written_with_is_missed(local_lake: Lake) -> None:
    a_table(local_lake, batches=1)
    other_engine(local_lake).add_column("note")
    local_lake.append(1, rows(9))
    delete(local_lake, "schema/schema-0")

    assert (ProblemKind.MISSING_FILE, "schema/schema-0") in troubles(verify(local_lake.open()))


@pytest.mark.parametrize("lost", [[4], [1, 2, 3, 4]], ids=["the newest", "all of them"])
def test_a_newest_snapshot_that_is_gone_is_missed(lake: Lake, lost: list[int]) -> None:
    a_table(lake)
    for snapshot_id in lost:
        delete(lake, f"snapshot/snapshot-{snapshot_id}")

    assert troubles(verify(lake.open())) == [(ProblemKind.GAP, "snapshot 4")]


def test_an_index_manifest_that_is_gone_is_found(local_lake: Lake) -> None:
    a_table(local_lake)
    rewrite_snapshot(local_lake, 4, lambda body: body.update(indexManifest="index-manifest-1"))

    assert troubles(verify(local_lake.open())) == [(ProblemKind.MISSING_FILE, "manifest/index-manifest-1")]


def test_files_of_a_changelog_and_of_a_tag_on_a_branch_are_no_orphans(local_lake: Lake) -> None:
    a_table(local_lake, batches=2)
    store_bytes(local_lake, "changelog/changelog-1", read_bytes(local_lake, "snapshot/snapshot-1"))
    store_bytes(local_lake, "branch/branch-b/tag/tag-t", read_bytes(local_lake, "snapshot/snapshot-2"))
    local_lake.commit(2, local_lake.write(rows(50)), overwrite=True)
    local_lake.append(3, rows(51))
    for snapshot_id in (1, 2, 3):
        delete(local_lake, f"snapshot/snapshot-{snapshot_id}")

    report = verify(local_lake.open())

    assert report.problems == ()
    assert report.tags_and_branches == ("branch b", "tag t of branch b")
    # What snapshot 3 alone named is left: its two lists, and the manifest that took the first two files out is shared.
    assert all(orphan.path.startswith("manifest/manifest-list-") for orphan in report.orphans)


def test_another_engine_may_number_its_commits_as_it_likes(lake: Lake) -> None:
    lake.append(0, rows(0))
    foreign.append(lake, rows(1), commit_user="flink", identifier=5)
    lake.append(1, rows(2))
    foreign.append(lake, rows(3), commit_user="flink", identifier=3)
    lake.append(2, rows(4))

    assert verify(lake.open()).problems == ()


def test_a_batch_that_is_in_as_an_append_and_as_an_overwrite_is_found(local_lake: Lake) -> None:
    a_table(local_lake)
    rewrite_snapshot(local_lake, 3, lambda body: body.update(commitIdentifier=1, commitKind="OVERWRITE"))

    assert (ProblemKind.DOUBLED_BATCH, "snapshot 3") in troubles(verify(local_lake.open()))


def test_trouble_with_the_store_is_not_called_damage(local_lake: Lake) -> None:
    a_table(local_lake)
    unlucky = file_of(local_lake, 1)
    table = through(local_lake.open(), _Refusing(local_lake.open().store, unlucky))

    assert troubles(verify(table)) == [(ProblemKind.UNREACHABLE, unlucky)]


class _Refusing(LyingStore):
    """Throttles every look at one file."""

    def __init__(self, inner: Store, path: str) -> None:
        super().__init__(inner)
        self._unlucky = path

    def size(self, path: str) -> int:
        if path.endswith(self._unlucky):
            raise StorageError(f"Cannot look at {path}: 503 SlowDown")
        return super().size(path)
