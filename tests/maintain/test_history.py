"""The figures of a table's history, from what its snapshots say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from paimon_sink.commit.journal import MOST_EVENTS, ListenerJournal
from paimon_sink.core.events import CommitEvent
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.values import SnapshotInfo, SnapshotKind
from paimon_sink.maintain.history import History, ListenerState, User, history, rows_per_s

NOW = 1_000_000


def ours(number: int, *, at_ms: int, user: str = "stream", batch: int | None = 0, **said: str) -> SnapshotInfo:
    figures = {"rows": "10", "files": "4", "bytes": "400", "small-files": "1", "attempts": "1", "commit-ms": "20"}
    figures |= {name.replace("_", "-"): text for name, text in said.items()}
    return snapshot(
        number,
        at_ms=at_ms,
        user=user,
        batch=batch,
        commit_id=f"commit-{number}",
        properties={f"pwc.{name}": text for name, text in figures.items()},
    )


def snapshot(
    number: int,
    *,
    at_ms: int,
    user: str | None = "another",
    batch: int | None = None,
    commit_id: str | None = None,
    effect: SnapshotKind = SnapshotKind.APPEND,
    rows_added: int | None = None,
    files_added: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> SnapshotInfo:
    return SnapshotInfo(
        number,
        f"the format's word for {effect.value}",
        effect,
        user,
        batch,
        None,
        commit_id,
        at_ms,
        None,
        rows_added,
        properties or {},
        files_added=files_added,
    )


def told(*snapshot_infos: SnapshotInfo, user: str | None = None, **ledger: LedgerEntry) -> History:
    return history(snapshot_infos, ledger=ledger, now_ms=NOW, user=user)


def test_lag_is_counted_for_each_user_alone() -> None:
    found = told(
        ours(1, at_ms=100, user="a"),
        ours(2, at_ms=150, user="b"),
        ours(3, at_ms=400, user="a"),
        ours(4, at_ms=500, user="b"),
    )

    assert [entry.lag_ms for entry in found.entries] == [None, None, 300, 350]
    assert (found.totals.lag_ms_median, found.totals.lag_ms_most) == (325, 350)


def test_a_clock_that_was_set_back_makes_no_negative_lag() -> None:
    found = told(ours(1, at_ms=NOW + 500), ours(2, at_ms=NOW + 100))

    assert [entry.lag_ms for entry in found.entries] == [None, 0]
    assert found.since_last_ms == 0


def test_totals_add_up_what_is_said() -> None:
    found = told(
        ours(1, at_ms=100, batch=0, commit_ms="10"),
        ours(2, at_ms=200, batch=1, commit_ms="90", attempts="4", small_files="3"),
        snapshot(3, at_ms=300, effect=SnapshotKind.OVERWRITE),
        snapshot(4, at_ms=600, rows_added=5, files_added=2),
    )

    totals = found.totals
    assert (totals.snapshots, totals.batches, totals.rows, totals.files, totals.size_bytes) == (4, 2, 25, 10, 800)
    assert (totals.commit_ms_median, totals.commit_ms_most, totals.lost_attempts) == (50, 90, 3)
    # The two files of the other engine may be small or not: they do not count as large.
    assert (totals.small_files, totals.small_share) == (4, 0.5)
    assert found.since_last_ms == NOW - 600


@pytest.mark.parametrize(
    ("effect", "rows"),
    [
        pytest.param(SnapshotKind.APPEND, 7, id="an append wrote what it added"),
        pytest.param(SnapshotKind.OVERWRITE, None, id="of an overwrite only the difference is known"),
        pytest.param(SnapshotKind.OTHER, None, id="of a delete too"),
        pytest.param(SnapshotKind.REWRITE, 0, id="a compaction wrote none"),
    ],
)
def test_another_engines_snapshot_says_what_it_can(effect: SnapshotKind, rows: int | None) -> None:
    [entry] = told(snapshot(1, at_ms=100, effect=effect, rows_added=7)).entries

    assert entry.rows == rows
    assert (entry.files, entry.size_bytes, entry.small_files, entry.attempts, entry.commit_ms) == (None,) * 5


@pytest.mark.parametrize("text", ["", "-1", "1.5", "many", "²", "9" * 5000], ids=lambda text: text[:6])
def test_a_property_that_is_no_figure_says_nothing(text: str) -> None:
    [entry] = told(ours(1, at_ms=100, rows=text, commit_ms=text)).entries

    assert (entry.rows, entry.commit_ms) == (None, None)


def test_our_properties_on_another_engines_snapshot_are_not_its_own() -> None:
    carried = {"pwc.rows": "10", "pwc.commit-ms": "20"}

    [entry] = told(snapshot(1, at_ms=100, rows_added=3, properties=carried)).entries

    assert (entry.rows, entry.commit_ms) == (3, None)


def test_users_come_with_their_last_batch_the_newest_first() -> None:
    found = told(
        ours(1, at_ms=100, user="a", batch=6),
        ours(2, at_ms=200, user="b", batch=1),
        ours(3, at_ms=300, user="a", batch=7),
        snapshot(4, at_ms=400, user="a", effect=SnapshotKind.REWRITE),
    )

    assert found.users == (User("a", 3, 20, 7, 400, None), User("b", 1, 10, 1, 200, None))


def test_a_user_whose_snapshots_are_gone_is_told_from_the_ledger() -> None:
    silent = LedgerEntry(41, "query", "commit", 3, 50)

    found = told(ours(9, at_ms=100, user="a"), gone=silent, a=LedgerEntry(0, None, "commit-9", 9, 100))

    assert found.users == (User("a", 1, 10, 0, 100, None), User("gone", 0, None, 41, 50, "query"))


def test_one_user_alone_has_totals_of_its_own() -> None:
    snapshot_infos = (ours(1, at_ms=100, user="a"), ours(2, at_ms=900, user="b"), ours(3, at_ms=300, user="a"))

    found = told(*snapshot_infos, user="a", b=LedgerEntry(0, None, "commit-2", 2, 900))

    assert [entry.snapshot_id for entry in found.entries] == [1, 3]
    assert (found.totals.rows, found.since_last_ms, len(found.users)) == (20, NOW - 300, 1)


def test_an_empty_table_has_no_figures() -> None:
    found = told()

    assert (found.entries, found.users, found.since_last_ms) == ((), (), None)
    assert (found.totals.snapshots, found.totals.rows, found.totals.commit_ms_median) == (0, None, None)


def test_the_watermark_lags_behind_each_snapshot_and_behind_the_clock() -> None:
    found = told(
        ours(1, at_ms=5_000),
        replace(ours(2, at_ms=6_000), watermark_ms=2_000),
        replace(ours(3, at_ms=7_000), watermark_ms=9_000),
        snapshot(4, at_ms=8_000),
    )

    assert [entry.watermark_lag_ms for entry in found.entries] == [None, 4_000, -2_000, None]
    assert (found.watermark_ms, found.watermark_lag_ms) == (9_000, NOW - 9_000)


def test_rows_a_second_are_those_of_the_time_since_the_users_batch_before() -> None:
    found = told(
        ours(1, at_ms=NOW - 70_000, user="a", rows="600"),
        ours(2, at_ms=NOW - 50_000, user="b", rows="1200"),
        ours(3, at_ms=NOW - 30_000, user="a", rows="400"),
    )

    assert [entry.rows_per_s for entry in found.entries] == [None, None, 10.0]
    assert rows_per_s(found, over_ms=60_000) == pytest.approx(1600 / 60)
    assert rows_per_s(told(), over_ms=60_000) is None


def test_rows_that_a_compaction_rewrote_are_not_written_and_it_is_no_batch_of_anybody() -> None:
    found = told(
        ours(1, at_ms=NOW - 70_000, rows="600"),
        # Some engines compact under the name of their stream.
        replace(ours(2, at_ms=NOW - 40_000, batch=None, rows="600"), effect=SnapshotKind.REWRITE),
        ours(3, at_ms=NOW - 30_000, rows="400"),
    )

    assert [(entry.rows, entry.rows_rewritten) for entry in found.entries] == [(600, None), (0, 600), (400, None)]
    assert (found.totals.rows, found.totals.rows_rewritten) == (1000, 600)
    assert [user.rows for user in found.users] == [1000]
    assert [entry.lag_ms for entry in found.entries] == [None, None, 40_000]
    assert [entry.rows_per_s for entry in found.entries] == [None, None, 10.0]
    assert rows_per_s(found, over_ms=60_000) == pytest.approx(400 / 60)


def event(batch: int) -> CommitEvent:
    return CommitEvent(
        "t", "/t", "a", None, batch, batch, f"commit-{batch}", batch + 1, 1000 * batch, 1, 1, 1, 0, 1, 0, None
    )


def heard(*batches: int, failing: str | None = None) -> ListenerJournal:
    """What two listeners know after these batches: one took them all, the other none."""
    journal = ListenerJournal()
    for batch in batches:
        journal = journal.with_event(event(batch), ["fine", "other"]).acknowledged("fine", None)
        journal = journal.failed("other", failing, now_ms=1000 * batch + 5) if failing is not None else journal
    return journal


def test_a_listener_fails_since_the_first_batch_that_it_did_not_take() -> None:
    found = history((), ledger={}, journals={"a": heard(1, 2, 3, failing="no answer")}, now_ms=NOW)

    assert found.listeners == (
        ListenerState("other", "a", owed=3, failures=3, error="no answer", failed_ms=3005, since_ms=1000),
        ListenerState("fine", "a", owed=0, failures=0, error=None, failed_ms=None, since_ms=None),
    )


def test_one_that_is_owed_batches_and_did_not_fail_is_not_failing() -> None:
    [other, _] = history((), ledger={}, journals={"a": heard(1)}, now_ms=NOW).listeners

    assert (other.name, other.owed, other.is_failing, other.since_ms) == ("other", 1, False, 1000)


def test_batches_that_were_put_together_do_not_hide_since_when_it_fails() -> None:
    batches = range(MOST_EVENTS + 20)
    snapshot_infos = [ours(batch + 1, at_ms=1000 * batch, user="a", batch=batch) for batch in batches]

    found = history(snapshot_infos, ledger={}, journals={"a": heard(*batches, failing="gone")}, now_ms=NOW)

    assert (found.listeners[0].owed, found.listeners[0].failures) == (MOST_EVENTS, MOST_EVENTS + 20)
    assert found.listeners[0].since_ms == 0


def test_one_user_alone_has_its_own_listeners() -> None:
    found = history((), ledger={}, journals={"a": heard(1), "b": heard(2)}, now_ms=NOW, user="b")

    assert {listener.user for listener in found.listeners} == {"b"}
