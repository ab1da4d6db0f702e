"""The ledger in table properties: it survives expiry, follows rollbacks, and each branch has a line of its own."""

from __future__ import annotations

import json

import pytest

from paimon_sink.core.errors import (
    CommitUserConflictError,
    CorruptTableError,
    LedgerLostError,
    OptionError,
    StaleBatchError,
)
from tests.support.batches import coordinator, of_query, sink_options, write_plan
from tests.support.iceberg_engine import IcebergEngine, catalog, native
from tests.support.lake import Lake, rows
from tests.support.places import Place, places


@pytest.fixture(params=places("sqlite", "rest", format="iceberg"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def heads(lake: Lake) -> list[int]:
    return [found.snapshot_id for found in lake.history()]


@pytest.mark.witness
def test_a_batch_and_its_ledger_entry_are_one_commit(lake: Lake) -> None:
    lake.append(7, rows(1))

    table = native(lake)
    newest = table.current_snapshot()
    assert newest is not None
    entry = json.loads(table.properties["pwc.ledger.main.test"])
    assert entry[:2] == [7, None]
    assert (entry[3], entry[5]) == (newest.snapshot_id, newest.sequence_number)
    assert newest.summary is not None
    assert newest.summary["pwc.commit-id"] == entry[2]
    assert newest.summary["pwc.batch-id"] == "7"
    assert len(table.metadata.metadata_log) == 1


def test_a_replay_is_known_after_every_snapshot_of_its_user_expired(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    lake.with_options(commitUser="other").append(0, rows(9))
    IcebergEngine(lake).expire(3)

    lake.append(2, rows(2))
    with pytest.raises(StaleBatchError):
        lake.append(1, rows(1))
    lake.append(3, rows(3))

    assert lake.ids() == [0, 1, 2, 3, 9]


def test_a_batch_that_was_rolled_back_is_written_again(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    IcebergEngine(lake).roll_back(heads(lake)[1])
    assert lake.ids() == [0, 1]

    lake.append(1, rows(1))
    lake.append(2, rows(2))

    assert lake.ids() == [0, 1, 2]
    assert lake.batch_ids() == [0, 1, 2]


def test_a_user_rolled_back_altogether_starts_anew(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.with_options(commitUser="late").append(5, rows(5))
    IcebergEngine(lake).roll_back(heads(lake)[0])

    lake.with_options(commitUser="late").append(5, rows(5))

    assert lake.ids() == [0, 5]


def test_what_may_be_in_expired_history_is_refused_after_a_rollback(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    late = lake.with_options(commitUser="late")
    late.append(5, rows(5))
    first, second, _ = heads(lake)
    IcebergEngine(lake).roll_back(second)
    table = native(lake)
    table.maintenance.expire_snapshots().by_id(first).commit()

    for tried in (4, 5):
        with pytest.raises(LedgerLostError):
            late.append(tried, rows(tried))
    late.append(6, rows(6))

    assert late.ids() == [0, 1, 6]


@pytest.mark.parametrize("line", ["whole", "expired below"])
def test_a_batch_that_was_rolled_back_and_expired_is_not_taken_for_in(lake: Lake, line: str) -> None:
    """A job that wrote once: nothing of it stands, and its snapshot is gone like those that expired below the line."""
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    late = lake.with_options(commitUser="late")
    late.append(5, rows(5))
    first, second, rolled_back = heads(lake)
    IcebergEngine(lake).roll_back(second)
    gone = [rolled_back] if line == "whole" else [rolled_back, first]
    native(lake).maintenance.expire_snapshots().by_ids(gone).commit()

    if line == "whole":
        late.append(5, rows(5))
        assert lake.ids() == [0, 1, 5]
    else:
        with pytest.raises(LedgerLostError):
            late.append(5, rows(5))
        late.with_options(onLedgerLost="commit").append(5, rows(5))
        assert lake.ids() == [0, 1, 5]


@pytest.mark.witness
def test_names_with_dots_and_odd_signs_stay_apart(lake: Lake) -> None:
    users = ["a.b", "a", "main.a", "ž / %2E", 'quote"d', "a%2Eb"]
    for number, user in enumerate(users):
        lake.with_options(commitUser=user).append(number, rows(number))
    for number, user in enumerate(users):
        lake.with_options(commitUser=user).append(number, rows(number))

    assert lake.ids() == list(range(len(users)))
    ledger = lake.open().commits.load_head(commit_user="a").ledger
    assert {user: entry.batch_id for user, entry in ledger.entries.items()} == dict(zip(users, range(6), strict=True))


def drop_the_silent(lake: Lake, batch_id: int) -> None:
    # A retention of less than nothing: everybody else is silent for longer.
    coordinator(lake, ledger_retention_ms=-(10**15)).commit(write_plan(lake, batch_id, rows(batch_id)))


def test_a_silent_user_leaves_a_short_line_and_takes_it_back_when_it_comes_again(lake: Lake) -> None:
    old = lake.with_options(commitUser="old")
    old.append(3, rows(103))
    drop_the_silent(lake, 0)
    IcebergEngine(lake).expire(1)

    assert "pwc.ledger.main.old" not in native(lake).properties
    assert native(lake).properties["pwc.ledger-dropped.main"].endswith(":3:")
    with pytest.raises(LedgerLostError, match="old"):
        old.append(3, rows(103))
    old.append(4, rows(104))

    assert "pwc.ledger-dropped.main" not in native(lake).properties
    assert lake.ids() == [0, 103, 104]


def test_a_silent_user_of_another_query_is_refused_by_name(lake: Lake) -> None:
    old = lake.with_options(commitUser="old")
    old.commit(3, of_query(old.write(rows(103)), "first"))
    drop_the_silent(lake, 0)
    IcebergEngine(lake).expire(1)

    with pytest.raises(CommitUserConflictError, match="query first"):
        old.commit(4, of_query(old.write(rows(104)), "second"))
    old.commit(4, of_query(old.write(rows(104)), "first"))

    assert lake.ids() == [0, 103, 104]


def test_what_a_silent_user_wrote_is_known_on_a_branch_that_grew_out_of_it(lake: Lake) -> None:
    old = lake.with_options(commitUser="old")
    old.append(0, rows(100))
    drop_the_silent(lake, 0)
    IcebergEngine(lake).expire(1)

    with pytest.raises(LedgerLostError, match="old"):
        old.with_options(branch="audit").append(0, rows(100))


def test_nobody_is_taken_for_new_where_an_older_version_forgot_who_was_silent(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    with native(lake).transaction() as transaction:
        transaction.set_properties({"pwc.ledger-dropped.main": "true"})
    IcebergEngine(lake).expire(1)

    for batch_id in (0, 5):
        with pytest.raises(LedgerLostError, match="unheard"):
            lake.with_options(commitUser="unheard").append(batch_id, rows(9))
    lake.with_options(commitUser="unheard", onLedgerLost="commit").append(0, rows(9))

    assert lake.ids() == [0, 1, 9]


def test_silent_users_that_cannot_be_read_are_named_and_nothing_is_committed(lake: Lake) -> None:
    lake.append(0, rows(0))
    with native(lake).transaction() as transaction:
        transaction.set_properties({"pwc.ledger-dropped.main": "yes"})

    with pytest.raises(CorruptTableError, match=r"pwc\.ledger-dropped\.main"):
        lake.append(1, rows(1))


@pytest.mark.parametrize("why", ["silent for long", "removed by somebody"])
def test_a_batch_whose_snapshot_stands_is_known_without_its_ledger_line(lake: Lake, why: str) -> None:
    old = lake.with_options(commitUser="old")
    old.append(0, rows(0))
    if why == "silent for long":
        coordinator(lake, ledger_retention_ms=-(10**15)).commit(write_plan(lake, 0, rows(1)))
    else:
        with native(lake).transaction() as transaction:
            transaction.remove_properties("pwc.ledger.main.old")

    old.append(0, rows(0))
    old.append(1, rows(2))

    assert lake.ids() == sorted({0, 2, *([1] if why == "silent for long" else [])})


def test_a_batch_that_was_rolled_back_is_not_taken_for_in_once_others_wrote_and_all_expired(lake: Lake) -> None:
    # Given a batch that was rolled back before another writer's next one
    other = lake.with_options(commitUser="other")
    other.append(0, rows(100))
    lake.append(0, rows(0))
    first, rolled_back = heads(lake)
    IcebergEngine(lake).roll_back(first)
    other.append(1, rows(101))

    # When it and the start of the line have expired
    native(lake).maintenance.expire_snapshots().by_ids([first, rolled_back]).commit()

    # Then it is written again
    lake.append(0, rows(0))
    assert lake.ids() == [0, 100, 101]


def with_a_batch_rolled_back(lake: Lake) -> tuple[int, int]:
    """A user with a batch that stands and one that was rolled back; gives their snapshots."""
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    stands, rolled_back = heads(lake)
    IcebergEngine(lake).roll_back(stands)
    return stands, rolled_back


def test_the_last_batch_before_a_rollback_is_what_others_write_down(lake: Lake) -> None:
    # Given a commit of another user on top
    stands, rolled_back = with_a_batch_rolled_back(lake)
    lake.with_options(commitUser="other").append(0, rows(100))

    # When another engine expires both of the user's snapshots, with no look at our ledger
    native(lake).maintenance.expire_snapshots().by_ids([stands, rolled_back]).commit()

    # Then the one is known, and the other is written again, once
    lake.append(0, rows(0))
    assert lake.ids() == [0, 100]
    for _ in range(2):
        lake.append(1, rows(1))
    assert lake.ids() == [0, 1, 100]


def test_the_last_batch_before_a_rollback_is_what_our_expiry_writes_down(lake: Lake) -> None:
    """Also while its snapshot stays: others may expire that one later."""
    stands, rolled_back = with_a_batch_rolled_back(lake)
    IcebergEngine(lake).append(rows(100))

    lake.open().upkeep.expire([rolled_back])
    native(lake).maintenance.expire_snapshots().by_ids([stands]).commit()

    for _ in range(2):
        lake.append(1, rows(1))
    assert lake.ids() == [0, 1, 100]


def test_a_line_of_the_ledger_under_a_name_of_another_spelling_is_refused(lake: Lake) -> None:
    lake.append(0, rows(0))
    with native(lake).transaction() as transaction:
        transaction.set_properties({"pwc.ledger.main.%zz": "[1,null,null,5,5,5]"})

    with pytest.raises(CorruptTableError, match=r"pwc\.ledger\.main\.%zz"):
        lake.append(1, rows(1))


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '[1, null, "c", "x", 1, 1]', "[true, null, null, 1, 1, 1]", "[1, null, null, 1, 1]"]
)
def test_a_ledger_that_cannot_be_read_is_named_and_nothing_is_committed(lake: Lake, text: str) -> None:
    lake.append(0, rows(0))
    IcebergEngine(lake).damage_ledger(text)

    with pytest.raises(CorruptTableError, match=r"pwc\.ledger\.main\.test"):
        lake.append(1, rows(1))
    assert lake.ids() == [0]


# ---------------------------------------------------------------- branches


def test_a_branch_has_its_own_rows_and_its_own_line_of_history(lake: Lake) -> None:
    lake.append(0, rows(0))
    audit = lake.with_options(branch="audit")
    audit.append(1, rows(1))
    audit.append(2, rows(2))
    lake.append(1, rows(11))
    audit.append(2, rows(2))

    assert (lake.ids(), audit.ids()) == ([0, 11], [0, 1, 2])
    assert (lake.batch_ids(), audit.batch_ids()) == ([0, 1], [0, 1, 2])
    with pytest.raises(StaleBatchError):
        audit.append(1, rows(1))


def test_a_batch_that_was_rolled_back_on_one_branch_is_not_doubled_on_another(lake: Lake) -> None:
    # Given a branch that stands on a batch, which main is rolled back below
    lake.with_options(commitUser="keeper").append(0, rows(100))
    lake.append(5, rows(5))
    audit = lake.with_options(branch="audit")
    other = audit.with_options(commitUser="other")
    other.append(0, rows(200))
    IcebergEngine(lake).roll_back(lake.snapshot_ids()[0])
    lake.with_options(commitUser="keeper").append(1, rows(101))
    for batch_id in (1, 2):
        other.append(batch_id, rows(200 + batch_id))

    # When the snapshots that show it have expired
    oldest_first = sorted(native(lake).snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
    native(lake).maintenance.expire_snapshots().by_ids([found.snapshot_id for found in oldest_first[1:3]]).commit()

    # Then the branch still knows the batch as tried
    with pytest.raises(LedgerLostError):
        audit.append(5, rows(5))
    audit.append(6, rows(6))
    assert audit.ids() == [5, 6, 100, 200, 201, 202]


def test_a_batch_that_a_branch_grew_out_of_is_in_it(lake: Lake) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    audit = lake.with_options(branch="audit")

    audit.append(1, rows(1))
    audit.append(2, rows(2))

    assert audit.ids() == [0, 1, 2]


def test_a_batch_that_a_branch_grew_out_of_and_that_expired_is_not_written_to_it_again(lake: Lake) -> None:
    # Given a branch that grew out of a batch, whose snapshot is gone since
    lake.append(0, rows(0))
    lake.with_options(commitUser="other").append(0, rows(1))
    other = lake.with_options(commitUser="other", branch="audit")
    other.append(1, rows(2))
    native(lake).maintenance.expire_snapshots().by_ids(heads(lake)[:1]).commit()

    # When it comes to the branch
    with pytest.raises(LedgerLostError):
        lake.with_options(branch="audit").append(0, rows(0))

    # Then only the next one is let in
    lake.with_options(branch="audit").append(1, rows(3))
    assert lake.with_options(branch="audit").ids() == [0, 1, 2, 3]


def test_a_branch_that_was_published_to_main_brings_its_batches_along(lake: Lake) -> None:
    lake.append(0, rows(0))
    audit = lake.with_options(branch="audit")
    audit.append(1, rows(1))
    native(lake).manage_snapshots().set_current_snapshot(ref_name="audit").commit()

    lake.append(1, rows(1))
    lake.append(2, rows(2))

    assert lake.ids() == [0, 1, 2]


@pytest.mark.witness
def test_commits_to_two_branches_go_past_each_other(lake: Lake) -> None:
    lake.append(0, rows(0))
    audit = lake.with_options(branch="audit")
    audit.append(1, rows(1))
    for batch in range(2, 5):
        lake.append(batch, rows(batch))
        audit.append(batch, rows(10 * batch))

    assert lake.ids() == [0, 2, 3, 4]
    assert audit.ids() == [0, 1, 20, 30, 40]


def test_the_settings_of_a_branch_outlive_our_commits(lake: Lake) -> None:
    lake.append(0, rows(0))
    table = native(lake)
    table.manage_snapshots().create_branch(
        heads(lake)[0], "audit", max_ref_age_ms=10**9, min_snapshots_to_keep=3
    ).commit()

    lake.with_options(branch="audit").append(1, rows(1))

    ref = native(lake).refs()["audit"]
    assert (ref.max_ref_age_ms, ref.min_snapshots_to_keep) == (10**9, 3)


def test_a_branch_that_is_not_there_cannot_be_read(lake: Lake) -> None:
    lake.append(0, rows(0))

    with pytest.raises(OptionError, match="audit"):
        lake.with_options(branch="audit").ids()


def test_a_tag_is_no_branch(lake: Lake) -> None:
    lake.append(0, rows(0))
    native(lake).manage_snapshots().create_tag(heads(lake)[0], "release").commit()

    with pytest.raises(OptionError, match="tag"):
        lake.with_options(branch="release").write(rows(1))


def test_a_branch_of_an_empty_table_is_refused(lake: Lake) -> None:
    audit = lake.with_options(branch="audit")

    with pytest.raises(OptionError, match="main first"):
        audit.append(0, rows(0))


def test_paimon_has_no_branches_here(local_lake: Lake) -> None:
    with pytest.raises(OptionError, match="branch is not available for Paimon"):
        sink_options(local_lake.with_options(branch="audit"))
    assert sink_options(local_lake.with_options(branch="main")).table.branch == "main"


def test_dropping_and_creating_again_forgets_the_ledger(lake: Lake) -> None:
    lake.append(0, rows(0))
    catalog(lake).drop_table(lake.table)

    lake.append(0, rows(7))

    assert lake.ids() == [7]
