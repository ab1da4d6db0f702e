"""Tags as people set them: with names that are checked, beside expiry, and read by every engine."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import OptionError, SnapshotExpiredError
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.iceberg.catalogs import Tables
from paimon_sink.formats.iceberg.expiry import IcebergExpiry
from paimon_sink.formats.lineage import Consumer
from paimon_sink.formats.paimon.expiry import PaimonExpiry
from paimon_sink.formats.values import AsOf
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.tags import create_tag, delete_tag, list_tags
from paimon_sink.maintain.verify import verify
from tests.support.clock import FakeClock
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.places import Place, places
from tests.support.time_travel import time_travel


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture(params=places("local", "s3", format="paimon"))
def paimon_lake(request: pytest.FixtureRequest) -> Lake:
    where: Place = request.param
    return where.lake(request)


def three_batches(lake: Lake) -> list[int]:
    for batch in range(3):
        lake.append(batch, rows(batch))
    return lake.snapshot_ids()


def expire_all(lake: Lake) -> None:
    expire(lake.open(), Retention(older_than_ms=1, keep_last=1), clock=FakeClock(10**15))


@pytest.mark.witness
@pytest.mark.parametrize("position", [0, 1, 2], ids=["the oldest", "one between", "the newest"])
def test_any_snapshot_that_stands_can_have_a_tag_and_stays(lake: Lake, position: int) -> None:
    ids = three_batches(lake)

    created = create_tag(lake.open(), "release-1", snapshot_id=ids[position])
    expire_all(lake)

    assert (created.name, created.snapshot.snapshot_id) == ("release-1", ids[position])
    assert lake.open().refs.tags() == {"release-1": ids[position]}
    read = lake.open().scans
    assert sorted(
        row["id"]
        for split in read.at(AsOf(version="release-1")).splits([])
        for batch in read.read_split(split, ["id"])
        for row in batch.to_pylist()
    ) == list(range(position + 1))
    assert verify(lake.open()).problems == ()


def test_without_a_number_the_newest_gets_it(lake: Lake) -> None:
    ids = three_batches(lake)

    assert create_tag(lake.open(), "now").snapshot.snapshot_id == ids[-1]
    assert [(tag.name, tag.snapshot.rows) for tag in list_tags(lake.open())] == [("now", 3)]


@pytest.mark.parametrize("name", ["release 1", "ünïcode-版", "v1.0", "2026-11-18 12"])
def test_names_of_many_kinds_are_taken(lake: Lake, name: str) -> None:
    three_batches(lake)

    create_tag(lake.open(), name)

    assert lake.open().refs.tag_names() == [name]
    delete_tag(lake.open(), name)
    assert lake.open().refs.tag_names() == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        (" ", "is empty"),
        (" a", "begins or ends with a space"),
        ("a\nb", "cannot be printed"),
        ("..", "taken for a path"),
        ("-x", "taken for a path or a flag"),
        ("pwc-rollback-to-1", "begins as names that this package gives"),
        ("17", "taken for the id of a snapshot"),
        ("\uff11\uff17", "taken for the id of a snapshot"),
    ],
)
def test_names_that_would_be_mistaken_are_refused(lake: Lake, name: str, problem: str) -> None:
    three_batches(lake)

    with pytest.raises(OptionError, match=problem):
        create_tag(lake.open(), name)

    assert lake.open().refs.tag_names() == []


@pytest.mark.parametrize("name", ["a/b", "../a", "a\\b", "x" * 252])
def test_names_that_are_no_names_of_files_are_refused_where_they_have_to_be(local_lake: Lake, name: str) -> None:
    three_batches(local_lake)

    with pytest.raises(OptionError, match="the name of a file"):
        create_tag(local_lake.open(), name)


@pytest.mark.parametrize("name", ["main", "audit"])
def test_the_name_of_a_branch_is_refused(iceberg_sqlite_lake: Lake, name: str) -> None:
    ids = three_batches(iceberg_sqlite_lake)
    time_travel(iceberg_sqlite_lake).branch("audit", ids[0])

    with pytest.raises(OptionError, match="the name of a branch"):
        create_tag(iceberg_sqlite_lake.open(), name)


def test_a_name_that_is_taken_is_an_error_and_stays_where_it_is(lake: Lake) -> None:
    ids = three_batches(lake)
    create_tag(lake.open(), "keep", snapshot_id=ids[1])

    with pytest.raises(OptionError, match=f"is on snapshot {ids[1]} already"):
        create_tag(lake.open(), "keep")

    assert lake.open().refs.tags() == {"keep": ids[1]}


def test_a_snapshot_that_has_expired_is_named(lake: Lake) -> None:
    ids = three_batches(lake)
    expire_all(lake)

    with pytest.raises(SnapshotExpiredError, match=rf"{ids[0]} is none of its snapshots.*{ids[2]}"):
        create_tag(lake.open(), "late", snapshot_id=ids[0])


def test_an_empty_table_has_nothing_to_tag(lake: Lake) -> None:
    lake.write()

    with pytest.raises(OptionError, match="has no snapshot yet"):
        create_tag(lake.open(), "early")


def test_a_tag_that_is_not_there_cannot_be_deleted_and_the_nearest_is_named(lake: Lake) -> None:
    three_batches(lake)
    create_tag(lake.open(), "release")

    with pytest.raises(OptionError, match=r"has no tag 'relaese'. Did you mean release"):
        delete_tag(lake.open(), "relaese")


def test_a_tag_that_a_reader_holds_snapshots_by_is_left_to_it(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    ids = three_batches(lake)
    consumers = lake.open().consumers
    assert consumers is not None
    consumers.put(Consumer("reports", ids[0], "key", 0, 10**15))

    with pytest.raises(OptionError, match="by it the reader reports holds what it still needs"):
        delete_tag(lake.open(), "pwc-consumer-reports")
    with pytest.raises(OptionError, match="begins as names that this package gives"):
        create_tag(lake.open(), "pwc-consumer-mine")

    assert [tag.consumer for tag in list_tags(lake.open())] == ["reports"]


# ---------------------------------------------------------------- beside expiry


@pytest.mark.fault(84)
@pytest.mark.witness
@pytest.mark.parametrize("moment", ["before its look", "after its look"])
def test_a_tag_for_what_an_expiry_is_about_to_take_keeps_it_or_comes_too_late(
    paimon_lake: Lake, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    lake = paimon_lake
    ids = three_batches(lake)
    verdicts: list[bool] = []

    def tag() -> None:
        if not verdicts:
            verdicts.append(lake.open().refs.tag("keep", ids[0]))

    look, remove = PaimonExpiry._tag_files, PaimonExpiry._remove
    looks: list[int] = []

    def counted(self: PaimonExpiry) -> list[str]:
        # The first look chooses; the second is right before the first removal.
        looks.append(1)
        if moment == "before its look" and len(looks) == 2:
            tag()
        return look(self)

    def late(self: PaimonExpiry, each: object) -> None:
        if moment == "after its look":
            tag()
        remove(self, each)  # type: ignore[arg-type]

    monkeypatch.setattr(PaimonExpiry, "_tag_files", counted)
    monkeypatch.setattr(PaimonExpiry, "_remove", late)
    expire_all(lake)

    assert lake.open().refs.tags() == ({"keep": ids[0]} if verdicts == [True] else {})
    assert verify(lake.open(), deep=True).problems == ()


@pytest.mark.fault(84)
def test_an_expiry_that_gave_way_to_a_tag_leaves_the_oldest_to_be_tagged(local_lake: Lake) -> None:
    lake = local_lake
    ids = three_batches(lake)
    create_tag(lake.open(), "keep", snapshot_id=ids[0])
    expire_all(lake)
    lake.append(3, rows(3))

    assert create_tag(lake.open(), "next", snapshot_id=lake.snapshot_ids()[0]).name == "next"


def test_a_tag_set_while_a_batch_commits_is_of_the_snapshot_that_was_asked_for(lake: Lake) -> None:
    ids = three_batches(lake)

    with listening(once_at(Step.BEFORE_PUT, lambda: create_tag(lake.open(), "mine", snapshot_id=ids[-1]))):
        lake.append(3, rows(3))

    assert lake.open().refs.tags() == {"mine": ids[-1]}
    assert lake.ids() == [0, 1, 2, 3]


@pytest.mark.fault(84)
def test_on_iceberg_an_expiry_gives_way_to_a_tag_that_came_after_its_look(
    iceberg_sqlite_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = iceberg_sqlite_lake
    ids = three_batches(lake)
    publish = IcebergExpiry._publish
    verdicts: list[bool] = []

    def late(self: IcebergExpiry, native: object, snapshot_ids: object) -> object:
        if not verdicts:
            verdicts.append(lake.open().refs.tag("keep", ids[0]))
        return publish(self, native, snapshot_ids)  # type: ignore[arg-type]

    monkeypatch.setattr(IcebergExpiry, "_publish", late)
    expire_all(lake)

    assert verdicts == [True]
    assert lake.open().refs.tags() == {"keep": ids[0]}
    assert verify(lake.open(), deep=True).problems == ()


def test_on_iceberg_a_tag_that_comes_after_the_expiry_is_refused(
    iceberg_sqlite_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = iceberg_sqlite_lake
    ids = three_batches(lake)
    commit = Tables.commit
    expired: list[bool] = []

    def beside(self: Tables, *arguments: object) -> object:
        if not expired:
            expired.append(True)
            expire_all(lake)
        return commit(self, *arguments)  # type: ignore[arg-type]

    refs = lake.open().refs
    monkeypatch.setattr(Tables, "commit", beside)

    assert refs.tag("late", ids[0]) is False
    assert lake.open().refs.tags() == {}
