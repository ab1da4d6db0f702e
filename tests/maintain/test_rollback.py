"""What a rollback means is told as it will be, and it is done as the format's own engines mean it."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import OptionError, PwcError, SnapshotExpiredError
from paimon_sink.formats.lineage import Consumer
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.rollback import RollbackPlan, plan_rollback, roll_back
from paimon_sink.maintain.tags import create_tag
from paimon_sink.maintain.verify import verify
from tests.support.clock import FakeClock
from tests.support.compaction import compact
from tests.support.engines import other_engine
from tests.support.evolving import append as with_columns
from tests.support.evolving import with_note
from tests.support.iceberg_engine import native
from tests.support.lake import Lake, rows
from tests.support.places import Place, places
from tests.support.time_travel import time_travel

pytestmark = pytest.mark.needs("rollback")


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def plan_to(lake: Lake, to: int | str) -> RollbackPlan:
    return plan_rollback(lake.open(), str(to))


def back_to(lake: Lake, to: int | str) -> RollbackPlan:
    table = lake.open()
    plan = plan_rollback(table, str(to))
    roll_back(table, plan)
    return plan


def two_users(lake: Lake) -> list[int]:
    """Batches 0 to 3 of one user, then 7 of another."""
    for batch in range(4):
        lake.append(batch, rows(batch, batch + 10))
    lake.with_options(commitUser="other").append(7, rows(100))
    return lake.snapshot_ids()


# ---------------------------------------------------------------- what it means


@pytest.mark.witness
def test_the_plan_says_what_goes_and_what_the_ledger_will_say(lake: Lake) -> None:
    ids = two_users(lake)

    plan = plan_to(lake, ids[1])

    assert [snapshot.snapshot_id for snapshot in plan.going] == ids[:1:-1]
    assert (plan.newest.rows, plan.to.rows) == (9, 4)
    losses = {loss.user: (loss.batches, loss.rows, loss.last, loss.knows) for loss in plan.users}
    assert losses == {"test": ((2, 3), 4, 1, True), "other": ((7,), 1, None, True)}
    assert lake.snapshot_ids() == ids


def test_columns_stay_as_they_are(lake: Lake) -> None:
    lake.append(0, rows(1))
    [first] = lake.snapshot_ids()
    with_columns(lake, 1, with_note(2))

    back_to(lake, first)
    lake.append(2, rows(3))

    assert "note" in lake.open().schema.names
    assert lake.ids() == other_engine(lake).read_ids() == [1, 3]


@pytest.mark.witness
def test_the_ledger_says_afterwards_what_the_plan_said(lake: Lake) -> None:
    ids = two_users(lake)

    plan = back_to(lake, ids[1])

    assert lake.ids() == other_engine(lake).read_ids() == [0, 1, 10, 11]
    for loss in plan.users:
        entry = lake.open().commits.load_head(commit_user=loss.user).ledger.entries.get(loss.user)
        assert (None if entry is None else entry.batch_id) == loss.last
    lake.append(1, rows(1, 11))
    lake.append(2, rows(2, 12))
    lake.with_options(commitUser="other").append(7, rows(100))
    assert lake.ids() == [0, 1, 2, 10, 11, 12, 100]
    assert verify(lake.open(), deep=True).problems == ()


def test_a_compaction_that_goes_is_no_loss_of_anybody(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    here = lake.snapshot_ids()[-1]
    compact(lake)

    plan = back_to(lake, here)

    assert (len(plan.going), plan.users) == (1, ())
    assert lake.ids() == [0, 1]


def test_tags_above_go_where_the_format_means_it_so_and_stay_elsewhere(lake: Lake) -> None:
    ids = two_users(lake)
    create_tag(lake.open(), "below", snapshot_id=ids[0])
    create_tag(lake.open(), "above", snapshot_id=ids[3])

    plan = back_to(lake, ids[1])

    assert plan.tags == ("above",)
    stays = {} if plan.takes_tags_along else {"above": ids[3]}
    assert lake.open().refs.tags() == {"below": ids[0], **stays}
    assert verify(lake.open(), deep=True).problems == ()


def test_readers_that_have_read_what_goes_are_named(lake: Lake) -> None:
    ids = two_users(lake)
    consumers = lake.open().consumers
    assert consumers is not None
    consumers.put(Consumer("ahead", ids[3], "key", 0, 10**15))
    consumers.put(Consumer("behind", ids[0], "key", 0, 10**15))

    assert [consumer.name for consumer in plan_to(lake, ids[1]).consumers] == ["ahead"]
    assert plan_to(lake, ids[1]).tags == ()


def test_branches_that_stand_on_what_goes_are_named_and_keep_it(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    ids = two_users(lake)
    time_travel(lake).branch("audit", ids[3])
    time_travel(lake).branch("old", ids[0])

    plan = back_to(lake, ids[1])

    assert plan.branches == ("audit",)
    assert lake.with_options(branch="audit").ids() == [0, 1, 2, 3, 10, 11, 12, 13]
    assert verify(lake.open(), deep=True).problems == ()


def test_a_branch_is_rolled_back_by_itself(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    ids = two_users(lake)
    branch = lake.with_options(branch="audit")
    branch.append(8, rows(200))

    plan = back_to(branch, ids[-1])

    assert (plan.branches, [loss.batches for loss in plan.users]) == ((), [(8,)])
    assert lake.ids() == branch.ids()


# ---------------------------------------------------------------- where to


def test_a_tag_names_where_to(lake: Lake) -> None:
    ids = two_users(lake)
    create_tag(lake.open(), "release", snapshot_id=ids[0])

    plan = back_to(lake, "release")

    assert (plan.tag, plan.to.snapshot_id) == ("release", ids[0])
    assert lake.ids() == [0, 10]
    assert lake.open().refs.tags() == {"release": ids[0]}


def test_the_newest_is_nothing_to_go_back_to(lake: Lake) -> None:
    ids = two_users(lake)

    assert plan_to(lake, ids[-1]).is_nothing


@pytest.mark.parametrize("format_keeps", ["local_lake"])
def test_a_tag_whose_snapshot_expired_can_be_gone_back_to(format_keeps: str, request: pytest.FixtureRequest) -> None:
    lake: Lake = request.getfixturevalue(format_keeps)
    ids = two_users(lake)
    create_tag(lake.open(), "release", snapshot_id=ids[1])
    expire(lake.open(), Retention(older_than_ms=1, keep_last=1), clock=FakeClock(10**15))

    for to in ("release", str(ids[1])):
        assert [snapshot.snapshot_id for snapshot in plan_to(lake, to).going] == lake.snapshot_ids()
    back_to(lake, "release")

    assert lake.ids() == other_engine(lake).read_ids() == [0, 1, 10, 11]
    assert lake.snapshot_ids() == [ids[1]]
    lake.append(2, rows(2, 12))
    assert lake.ids() == other_engine(lake).read_ids() == [0, 1, 2, 10, 11, 12]
    assert verify(lake.open(), deep=True).problems == ()


def test_one_whose_way_there_expired_is_refused_on_iceberg(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    ids = two_users(lake)
    create_tag(lake.open(), "release", snapshot_id=ids[1])
    expire(lake.open(), Retention(older_than_ms=1, keep_last=1), clock=FakeClock(10**15))

    with pytest.raises(PwcError, match=r"not one that the newest, \d+, was built on"):
        plan_to(lake, "release")


def test_a_snapshot_of_another_branch_is_refused(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    two_users(lake)
    branch = lake.with_options(branch="audit")
    branch.append(8, rows(200))
    lake.append(9, rows(300))

    with pytest.raises(SnapshotExpiredError, match="is of another branch"):
        plan_to(lake, branch.snapshot_ids()[-1])


@pytest.mark.parametrize(
    ("to", "sentence"),
    [
        ("relaese", "Did you mean release"),
        ("", "neither the id"),
        ("-1", "neither the id"),
        ("1e3", "neither the id"),
        ("9" * 5000, "neither the id"),
    ],
)
def test_what_is_neither_snapshot_nor_tag_is_refused(lake: Lake, to: str, sentence: str) -> None:
    two_users(lake)
    create_tag(lake.open(), "release")

    with pytest.raises(OptionError, match=sentence):
        plan_to(lake, to)


def test_an_id_that_has_expired_or_never_was_is_refused(lake: Lake) -> None:
    ids = two_users(lake)
    expire(lake.open(), Retention(older_than_ms=1, keep_last=2), clock=FakeClock(10**15))

    for to in (ids[0], 10**17):
        with pytest.raises(PwcError, match=f"Those that stand are {ids[3]} to {ids[4]}"):
            plan_to(lake, to)


def test_a_tag_that_is_named_like_the_id_of_another_snapshot_is_refused(local_lake: Lake) -> None:
    lake = local_lake
    two_users(lake)
    assert lake.open().refs.tag("2", 4), "a listener that formats days without dashes sets such"

    with pytest.raises(OptionError, match="2 is the id of a snapshot, and a tag of that name is on snapshot 4"):
        plan_to(lake, "2")


def test_a_branch_that_is_not_there_is_named(iceberg_sqlite_lake: Lake) -> None:
    two_users(iceberg_sqlite_lake)

    with pytest.raises(OptionError, match=r"the branch 'nope' .* none of that name"):
        plan_to(iceberg_sqlite_lake.with_options(branch="nope"), 1)


def test_a_tag_of_the_name_that_a_rollback_works_by_is_not_taken_for_its_own(local_lake: Lake) -> None:
    ids = two_users(local_lake)
    assert local_lake.open().refs.tag(f"pwc-rollback-to-{ids[0]}", ids[3])

    with pytest.raises(PwcError, match="is on another snapshot"):
        back_to(local_lake, ids[0])

    assert local_lake.snapshot_ids() == ids
    assert local_lake.open().refs.tag_names() == [f"pwc-rollback-to-{ids[0]}"]


def test_an_empty_table_cannot_be_rolled_back(lake: Lake) -> None:
    lake.write()

    with pytest.raises(OptionError, match="has no snapshot yet"):
        plan_to(lake, 1)


def test_a_table_with_long_lived_changelogs_is_left_to_the_engine_that_keeps_them(local_lake: Lake) -> None:
    lake = local_lake
    ids = two_users(lake)
    table = lake.open()
    table.store.write(table.store.join(table.location, "changelog", "changelog-1"), b"{}")

    with pytest.raises(PwcError, match="keeps changelogs longer than snapshots"):
        back_to(lake, ids[0])

    assert lake.snapshot_ids() == ids


def test_no_data_file_is_deleted(lake: Lake) -> None:
    ids = two_users(lake)
    before = lake.data_files()

    back_to(lake, ids[0])

    assert lake.data_files() == before


# ---------------------------------------------------------------- other engines, and standing snapshots


def test_another_engine_goes_on_from_where_it_was_rolled_back_to(lake: Lake) -> None:
    ids = two_users(lake)

    back_to(lake, ids[1])
    other_engine(lake).append(rows(500))

    assert lake.ids() == other_engine(lake).read_ids() == [0, 1, 10, 11, 500]


def test_what_led_to_a_tag_is_verified_and_no_orphan(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    ids = two_users(lake)
    create_tag(lake.open(), "above", snapshot_id=ids[4])
    back_to(lake, ids[1])
    lake.append(2, rows(2))

    report = verify(lake.open(), deep=True)

    assert (report.problems, report.orphans) == ((), ())
    assert report.tags_and_branches == ("tag above", f"rolled back from {ids[3]}")


def test_a_rolled_back_batch_is_not_taken_for_in_whoever_expires_next(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    ids = two_users(lake)
    back_to(lake, ids[1])
    engine = other_engine(lake)
    engine.append(rows(500))
    # With no commit of ours in between: what was rolled back, and all that leads to the newest.
    table = engine.lake.open()
    assert table.upkeep.history()
    stale = native(lake)
    keep = {stale.current_snapshot().snapshot_id}  # type: ignore[union-attr]
    stale.maintenance.expire_snapshots().by_ids(
        [each.snapshot_id for each in stale.snapshots() if each.snapshot_id not in keep]
    ).commit()

    lake.append(2, rows(2, 12))

    assert 12 in lake.ids()
