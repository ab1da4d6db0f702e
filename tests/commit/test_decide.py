"""DESIGN's decision table, row by row, and the ledger that is carried forward."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paimon_sink.commit.decide import CommitRequest, Policy, Verdict, advance, decide, identifiers_with
from paimon_sink.core.errors import CommitUserConflictError, LedgerLostError, RefusedError, StaleBatchError
from paimon_sink.core.identifiers import FEW_RANGES, Identifiers
from paimon_sink.formats.ledger import Claim, Ledger, LedgerEntry, Register

DAY_MS = 24 * 3600 * 1000
NOW_MS = 1_700_000_000_000


def entry(batch_id: int, query_id: str | None = "q", *, at_ms: int = NOW_MS) -> LedgerEntry:
    return LedgerEntry(batch_id, query_id, f"commit-{batch_id}", snapshot_id=41, at_ms=at_ms)


NOTHING_COMPLETE = Ledger()
NOTHING_EXPIRED = Ledger(complete=False, register=Register.EMPTY)
OTHERS_CLAIMED = Ledger(complete=False, register=Register.WHOLE)
CLAIMS_FORGOTTEN = Ledger(complete=False, register=Register.CUT)
LAST_IS_7 = Ledger({"u": entry(7)})
LAST_IS_7_EXPIRED = Ledger({"u": entry(7)}, complete=False)
OTHERS_ONLY = Ledger({"v": entry(7)})
OTHERS_ONLY_EXPIRED = Ledger({"v": entry(7)}, complete=False)
LOST_CLAIMED_7 = Ledger(
    complete=False,
    claims=[Claim("u", 6, "q", "commit-6"), Claim("u", 7, "q", "commit-7")],
    register=Register.WHOLE,
)
LOST_CLAIMED_BY_OTHER = Ledger(complete=False, claims=[Claim("u", 7, "r", "commit-7")], register=Register.WHOLE)
BY_NO_QUERY = Ledger({"u": entry(7, None)})


def job_entry(*identifiers: int, floor: int = -1, at_ms: int = NOW_MS) -> LedgerEntry:
    """The last of them came in last."""
    known = Identifiers(floor=floor)
    for identifier in identifiers:
        known = known.adding(identifier, at_ms=at_ms)
    return replace(entry(identifiers[-1], None, at_ms=at_ms), identifiers=known)


JOBS_16_17 = Ledger({"u": job_entry(16, 17)})
JOBS_FROM_16 = Ledger({"u": job_entry(16, 17, floor=15)})
JOBS_AND_NONE = Ledger({"u": replace(job_entry(16), identifiers=Identifiers(floor=16))})
JOB_CLAIMED_17 = Ledger(complete=False, claims=[Claim("u", 17, None, "commit-17")], register=Register.WHOLE)

SKIP_REWIND = {"on_rewind": "skip"}
COMMIT_LOST = {"on_ledger_lost": "commit"}
SKIP_LOST = {"on_ledger_lost": "skip"}
TAKEOVER = {"takeover": True}


def verdict(ledger: Ledger, batch_id: int, query_id: str | None, policy: dict[str, Any]) -> Verdict:
    return decide(ledger, CommitRequest("sales.orders", "u", batch_id, query_id), Policy(**policy))


def job(identifier: int) -> CommitRequest:
    return CommitRequest("sales.orders", "u", identifier, None, in_any_order=True)


@pytest.mark.parametrize(
    ("ledger", "batch_id", "query_id", "policy", "expected"),
    [
        pytest.param(NOTHING_COMPLETE, 0, "q", {}, Verdict.COMMIT, id="nothing known, complete, batch 0"),
        pytest.param(NOTHING_COMPLETE, 9, "q", {}, Verdict.COMMIT, id="nothing known, complete, batch 9"),
        pytest.param(OTHERS_ONLY, 9, "q", {}, Verdict.COMMIT, id="only others known, complete"),
        pytest.param(NOTHING_EXPIRED, 0, "q", {}, Verdict.COMMIT, id="nothing known, expired, batch 0"),
        pytest.param(NOTHING_EXPIRED, 1, "q", COMMIT_LOST, Verdict.COMMIT, id="expired, onLedgerLost=commit"),
        pytest.param(NOTHING_EXPIRED, 1, "q", SKIP_LOST, Verdict.SKIP, id="expired, onLedgerLost=skip"),
        pytest.param(NOTHING_EXPIRED, 0, "q", SKIP_LOST, Verdict.COMMIT, id="expired, batch 0, onLedgerLost=skip"),
        pytest.param(OTHERS_CLAIMED, 0, "q", {}, Verdict.COMMIT, id="expired, only others tried, batch 0"),
        pytest.param(OTHERS_CLAIMED, 9, "q", {}, Verdict.COMMIT, id="expired, only others tried"),
        pytest.param(CLAIMS_FORGOTTEN, 9, "q", COMMIT_LOST, Verdict.COMMIT, id="forgotten, onLedgerLost=commit"),
        pytest.param(LOST_CLAIMED_7, 8, "q", {}, Verdict.COMMIT, id="expired, never tried before"),
        pytest.param(LOST_CLAIMED_7, 7, "q", COMMIT_LOST, Verdict.COMMIT, id="expired, tried, onLedgerLost=commit"),
        pytest.param(LOST_CLAIMED_7, 7, "q", SKIP_LOST, Verdict.SKIP, id="expired, tried, onLedgerLost=skip"),
        pytest.param(LOST_CLAIMED_BY_OTHER, 0, "q", TAKEOVER, Verdict.COMMIT, id="expired, other query, takeover"),
        pytest.param(LAST_IS_7, 7, "q", {}, Verdict.ALREADY_IN, id="last = b"),
        pytest.param(LAST_IS_7_EXPIRED, 7, "q", {}, Verdict.ALREADY_IN, id="last = b, others expired"),
        pytest.param(LAST_IS_7, 7, "q", SKIP_REWIND, Verdict.ALREADY_IN, id="last = b, onRewind=skip"),
        pytest.param(LAST_IS_7, 7, "q", TAKEOVER, Verdict.ALREADY_IN, id="last = b, takeover of one's own name"),
        pytest.param(LAST_IS_7, 8, "q", {}, Verdict.COMMIT, id="last < b"),
        pytest.param(LAST_IS_7, 99, "q", {}, Verdict.COMMIT, id="last < b, with a gap"),
        pytest.param(LAST_IS_7_EXPIRED, 8, "q", {}, Verdict.COMMIT, id="last < b, others expired"),
        pytest.param(LAST_IS_7, 6, "q", SKIP_REWIND, Verdict.SKIP, id="last > b, onRewind=skip"),
        pytest.param(LAST_IS_7, 0, "q", SKIP_REWIND, Verdict.SKIP, id="last > b = 0, onRewind=skip"),
        pytest.param(LAST_IS_7, 7, "r", TAKEOVER, Verdict.COMMIT, id="other query, takeover, same batch"),
        pytest.param(LAST_IS_7, 0, "r", TAKEOVER, Verdict.COMMIT, id="other query, takeover, from 0"),
        pytest.param(BY_NO_QUERY, 7, None, {}, Verdict.ALREADY_IN, id="outside a query, last = b"),
        pytest.param(BY_NO_QUERY, 8, None, {}, Verdict.COMMIT, id="outside a query, last < b"),
    ],
)
def test_a_batch_that_is_not_refused_gets_its_verdict(
    ledger: Ledger, batch_id: int, query_id: str | None, policy: dict[str, Any], expected: Verdict
) -> None:
    assert verdict(ledger, batch_id, query_id, policy) is expected


@pytest.mark.parametrize(
    ("ledger", "batch_id", "query_id", "policy", "expected"),
    [
        pytest.param(NOTHING_EXPIRED, 1, "q", {}, LedgerLostError, id="nothing known, expired"),
        pytest.param(OTHERS_ONLY_EXPIRED, 9, "q", {}, LedgerLostError, id="only others known, expired"),
        pytest.param(CLAIMS_FORGOTTEN, 0, "q", {}, LedgerLostError, id="tries were forgotten, batch 0"),
        pytest.param(CLAIMS_FORGOTTEN, 9, "q", {}, LedgerLostError, id="tries were forgotten"),
        pytest.param(NOTHING_EXPIRED, 1, "q", SKIP_REWIND, LedgerLostError, id="expired, onRewind is another matter"),
        pytest.param(NOTHING_EXPIRED, 1, "q", TAKEOVER, LedgerLostError, id="expired, takeover is another matter"),
        pytest.param(LOST_CLAIMED_7, 7, "q", {}, LedgerLostError, id="expired, tried before"),
        pytest.param(LOST_CLAIMED_7, 6, "q", {}, LedgerLostError, id="expired, an older batch than was tried"),
        pytest.param(LOST_CLAIMED_7, 0, "q", {}, LedgerLostError, id="expired, batch 0 after it was tried"),
        pytest.param(LOST_CLAIMED_BY_OTHER, 8, "q", {}, CommitUserConflictError, id="expired, tried by other query"),
        pytest.param(LOST_CLAIMED_BY_OTHER, 0, "q", {}, CommitUserConflictError, id="expired, other query, from 0"),
        pytest.param(LAST_IS_7, 6, "q", {}, StaleBatchError, id="last > b"),
        pytest.param(LAST_IS_7, 0, "q", {}, StaleBatchError, id="last > b = 0"),
        pytest.param(LAST_IS_7, 6, "q", TAKEOVER, StaleBatchError, id="last > b, takeover is another matter"),
        pytest.param(LAST_IS_7, 6, "q", COMMIT_LOST, StaleBatchError, id="last > b, nothing was lost"),
        pytest.param(LAST_IS_7, 8, "r", {}, CommitUserConflictError, id="other query, later batch"),
        pytest.param(LAST_IS_7, 7, "r", {}, CommitUserConflictError, id="other query, same batch"),
        pytest.param(LAST_IS_7, 0, "r", {}, CommitUserConflictError, id="other query, from 0"),
        pytest.param(LAST_IS_7, 0, "r", SKIP_REWIND, CommitUserConflictError, id="other query, not a rewind"),
        pytest.param(LAST_IS_7, 8, None, {}, CommitUserConflictError, id="a query's name used outside of it"),
        pytest.param(BY_NO_QUERY, 8, "q", {}, CommitUserConflictError, id="a job's name used by a query"),
        pytest.param(JOBS_16_17, 18, None, {}, CommitUserConflictError, id="jobs' name used by a writer in order"),
    ],
)
def test_a_refused_batch_is_refused_by_the_type_of_the_error(
    ledger: Ledger, batch_id: int, query_id: str | None, policy: dict[str, Any], expected: type[RefusedError]
) -> None:
    with pytest.raises(expected) as refusal:
        verdict(ledger, batch_id, query_id, policy)

    assert type(refusal.value) is expected
    assert f"batch {batch_id}" in str(refusal.value)
    assert "sales.orders" in str(refusal.value)
    assert "'u'" in str(refusal.value)


@pytest.mark.parametrize(
    ("ledger", "batch_id", "query_id", "cures"),
    [
        pytest.param(NOTHING_EXPIRED, 1, "q", ["onLedgerLost=commit", "onLedgerLost=skip"], id="ledger lost"),
        pytest.param(LAST_IS_7, 6, "q", ["onRewind=skip", "zombie", "batch 7"], id="stale batch"),
        pytest.param(LAST_IS_7, 8, "r", ["takeover=true", "commitUser", "query q", "query r"], id="other query"),
    ],
)
def test_a_refusal_names_the_cure(ledger: Ledger, batch_id: int, query_id: str, cures: list[str]) -> None:
    with pytest.raises(RefusedError) as refusal:
        verdict(ledger, batch_id, query_id, {})

    assert [cure for cure in cures if cure not in str(refusal.value)] == []


# ---------------------------------------------------------------- batch jobs, whose identifiers come in any order


@pytest.mark.parametrize(
    ("ledger", "identifier", "policy", "expected"),
    [
        pytest.param(JOBS_16_17, 17, {}, Verdict.ALREADY_IN, id="the last one again"),
        pytest.param(JOBS_16_17, 16, {}, Verdict.ALREADY_IN, id="an earlier one again"),
        pytest.param(JOBS_16_17, 15, {}, Verdict.COMMIT, id="a backfill"),
        pytest.param(JOBS_16_17, 18, {}, Verdict.COMMIT, id="the next"),
        pytest.param(JOBS_FROM_16, 16, {}, Verdict.ALREADY_IN, id="the first that is remembered"),
        pytest.param(JOBS_AND_NONE, 16, {}, Verdict.ALREADY_IN, id="the last one, which there was no room for"),
        pytest.param(JOBS_FROM_16, 15, COMMIT_LOST, Verdict.COMMIT, id="forgotten, onLedgerLost=commit"),
        pytest.param(JOBS_FROM_16, 15, SKIP_LOST, Verdict.SKIP, id="forgotten, onLedgerLost=skip"),
        pytest.param(BY_NO_QUERY, 7, {}, Verdict.ALREADY_IN, id="an entry that names one identifier, that one"),
        pytest.param(BY_NO_QUERY, 8, {}, Verdict.COMMIT, id="an entry that names one identifier, the next"),
        pytest.param(NOTHING_COMPLETE, 20261116, {}, Verdict.COMMIT, id="a new job"),
        pytest.param(NOTHING_EXPIRED, 20261116, {}, Verdict.COMMIT, id="a new job on another engine's table"),
        pytest.param(OTHERS_CLAIMED, 20261116, {}, Verdict.COMMIT, id="a new job after others left the ledger"),
        pytest.param(JOB_CLAIMED_17, 18, {}, Verdict.COMMIT, id="expired, above all that was tried"),
        pytest.param(LAST_IS_7, 16, TAKEOVER, Verdict.COMMIT, id="a stream's name, takeover"),
    ],
)
def test_a_job_that_is_not_refused_gets_its_verdict(
    ledger: Ledger, identifier: int, policy: dict[str, Any], expected: Verdict
) -> None:
    assert decide(ledger, job(identifier), Policy(**policy)) is expected


@pytest.mark.parametrize(
    ("ledger", "identifier", "policy", "expected"),
    [
        pytest.param(JOBS_FROM_16, 15, {}, LedgerLostError, id="below what is remembered"),
        pytest.param(JOBS_FROM_16, 15, SKIP_REWIND, LedgerLostError, id="onRewind is another matter"),
        pytest.param(BY_NO_QUERY, 6, {}, LedgerLostError, id="an entry that names one identifier, a smaller one"),
        pytest.param(JOB_CLAIMED_17, 17, {}, LedgerLostError, id="expired, tried before"),
        pytest.param(JOB_CLAIMED_17, 16, {}, LedgerLostError, id="expired, below one that was tried"),
        pytest.param(CLAIMS_FORGOTTEN, 20261116, {}, LedgerLostError, id="tries were forgotten"),
        pytest.param(LAST_IS_7, 16, {}, CommitUserConflictError, id="a stream's name"),
    ],
)
def test_a_refused_job_is_spoken_to_as_a_job(
    ledger: Ledger, identifier: int, policy: dict[str, Any], expected: type[RefusedError]
) -> None:
    with pytest.raises(expected) as refusal:
        decide(ledger, job(identifier), Policy(**policy))

    said = str(refusal.value)
    assert f"commitIdentifier {identifier} to sales.orders" in said
    assert [word for word in ("zombie", "checkpoint", "onRewind", "restart") if word in said] == []


def test_a_job_that_comes_back_after_its_ledger_was_lost_knows_nothing_below_what_was_tried() -> None:
    found = identifiers_with(JOB_CLAIMED_17, job(18), now_ms=NOW_MS)

    assert (18 in found, found.is_new(19), found.is_new(16)) == (True, True, False)


def test_a_new_job_knows_that_nothing_below_it_is_in() -> None:
    assert identifiers_with(OTHERS_CLAIMED, job(18), now_ms=NOW_MS).is_new(17)


def test_a_job_let_in_where_tries_were_forgotten_vouches_for_none_below_it() -> None:
    found = identifiers_with(CLAIMS_FORGOTTEN, job(18), now_ms=NOW_MS)

    assert (found.is_new(19), found.is_new(17)) == (True, False)


def test_a_job_that_takes_a_streams_name_over_begins_anew() -> None:
    assert identifiers_with(LAST_IS_7, job(3), now_ms=NOW_MS) == Identifiers().adding(3, at_ms=NOW_MS)


def test_a_job_forgets_identifiers_that_came_in_longer_ago_than_the_retention() -> None:
    old = job_entry(*range(0, 4 * FEW_RANGES, 2), at_ms=NOW_MS - 31 * DAY_MS).identifiers
    assert old is not None
    new = replace(job_entry(9999), identifiers=old.adding(9999, at_ms=NOW_MS))

    kept = advanced(Ledger(), new).entries["u"].identifiers

    assert kept is not None
    assert len(kept.ranges) == FEW_RANGES
    assert (9999 in kept, 2 in kept, kept.is_new(2), kept.is_new(9998)) == (True, False, False, True)


# ---------------------------------------------------------------- the ledger that is carried forward


def advanced(ledger: Ledger, new: LedgerEntry | None, *, user: str = "u", retention_ms: int = 30 * DAY_MS) -> Ledger:
    return advance(ledger, commit_user=user, entry=new, now_ms=NOW_MS, retention_ms=retention_ms)


def test_the_ledger_takes_the_new_entry_and_keeps_the_others() -> None:
    found = advanced(Ledger({"v": entry(3), "u": entry(7)}), entry(8))

    assert found == Ledger({"u": entry(8), "v": entry(3)}, complete=True)


def test_the_ledger_is_written_in_the_same_order_whoever_commits() -> None:
    found = advanced(Ledger({"z": entry(1), "a": entry(1)}), entry(8), user="m")

    assert list(found.entries) == ["a", "m", "z"]


def test_a_write_without_a_batch_id_carries_the_ledger_forward_unchanged() -> None:
    assert advanced(LAST_IS_7, None, user="fresh") == LAST_IS_7


def test_an_incomplete_ledger_stays_incomplete() -> None:
    assert not advanced(NOTHING_EXPIRED, entry(0)).complete


@pytest.mark.parametrize(
    ("age_ms", "stays"),
    [pytest.param(30 * DAY_MS, True, id="as old as the retention"), pytest.param(30 * DAY_MS + 1, False, id="older")],
)
def test_a_user_leaves_the_ledger_when_it_was_silent_for_longer_than_the_retention(age_ms: int, stays: bool) -> None:
    found = advanced(Ledger({"silent": entry(3, at_ms=NOW_MS - age_ms)}), entry(8))

    assert ("silent" in found.entries) is stays
    assert found.complete is stays


def test_a_user_that_commits_is_never_trimmed_however_long_it_was_silent() -> None:
    found = advanced(Ledger({"u": entry(3, at_ms=0)}), entry(8))

    assert found == Ledger({"u": entry(8)}, complete=True)


def test_a_user_that_left_the_ledger_is_refused_where_nobody_knows_what_it_tried() -> None:
    trimmed = advanced(Ledger({"u": entry(3, at_ms=0)}), entry(8), user="v")

    with pytest.raises(LedgerLostError, match="'u'"):
        verdict(trimmed, 3, "q", {})
    with pytest.raises(LedgerLostError, match="'u'"):
        verdict(trimmed, 4, "q", {})


def test_claims_are_not_carried_forward() -> None:
    assert advanced(LOST_CLAIMED_7, entry(8)) == Ledger({"u": entry(8)}, complete=False)


def test_a_clock_that_went_back_trims_nobody() -> None:
    found = advanced(Ledger({"v": entry(3, at_ms=NOW_MS + 400 * DAY_MS)}), entry(8))

    assert found.complete
    assert set(found.entries) == {"u", "v"}
