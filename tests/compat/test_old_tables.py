"""Tables that an earlier version wrote are read and continued: nothing lost, nothing doubled, nobody forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.errors import CommitUserConflictError, LedgerLostError, StaleBatchError
from tests.compat import samples
from tests.compat.samples import FORMATS, KEPT, LISTENER, NOWHERE, START_MS, VERSIONS, Row, Shop, rows

OF_NIGHTLY: list[Row] = [(10, "mon"), (11, "tue"), (12, "mon")]
OF_ORDERS: list[Row] = [(20, "mon"), (21, "tue"), (22, "mon"), (23, "tue")]
ALL: list[Row] = [*OF_NIGHTLY, *OF_ORDERS, (30, "wed")]
STANDING = {"paimon": 11, "iceberg": 9}
"""Snapshots. Of the Iceberg table pyiceberg expired those of the silent user."""
TIMED = {"watermarkColumn": "at"}

with_claims = pytest.mark.parametrize("shop", list(product(VERSIONS, ["paimon"])), indirect=True, ids="-".join)
"""Iceberg needs none: its catalog keeps the ledger."""
in_iceberg = pytest.mark.parametrize("shop", list(product(VERSIONS, ["iceberg"])), indirect=True, ids="-".join)
"""Where the ledger stands beside the snapshots, and is not rolled back with them."""


@pytest.fixture(params=list(product(VERSIONS, FORMATS)), ids="-".join)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    """The table of each version and format. Whatever a test does to it, it is whole afterwards."""
    version, table_format = request.param
    samples.unpack(version, table_format, tmp_path)
    samples.empty_memory()
    samples.fill_memory(tmp_path / "store")
    found = Shop(table_format, tmp_path)
    yield found
    assert found.pwc("verify", "--deep")["problems"] == []
    samples.empty_memory()


def with_new(*new: Row) -> list[Row]:
    return sorted([*ALL, *new], key=lambda row: row[0])


def snapshots(shop: Shop) -> list[int]:
    return [found["snapshot"] for found in shop.pwc("history")["snapshots"]]


# ---------------------------------------------------------------- reading


def test_the_rows_are_read(shop: Shop) -> None:
    assert shop.rows() == ALL


def test_every_snapshot_and_file_is_what_the_metadata_says(shop: Shop) -> None:
    found = shop.pwc("verify", "--deep")

    assert (found["good"], found["problems"], found["unchecked_files"]) == (True, [], 0)
    assert (found["snapshots"], found["rows"]) == (STANDING[shop.format], 8)


def test_the_history_is_told_with_batches_identifiers_and_the_watermark(shop: Shop) -> None:
    found = shop.pwc("history")

    told = [(one["user"], one["batch"]) for one in found["snapshots"] if one["user"] in ("nightly", "orders")]
    jobs = [("nightly", 20260101), ("nightly", 20260103), ("nightly", 20260105)]
    assert told == [*jobs, *(("orders", batch) for batch in range(4))]
    assert found["watermark_ms"] == START_MS + 3 * 60_000
    assert [one["rows_rewritten"] for one in found["snapshots"] if one["rows_rewritten"]] == [5]


# ---------------------------------------------------------------- a stream goes on


@pytest.mark.parametrize("written_by", ["the old version", "this one"])
def test_a_replay_of_the_last_batch_is_recognised(shop: Shop, written_by: str) -> None:
    before = snapshots(shop)
    again = rows((23, "tue"), minute=3)
    is_old = written_by == "the old version"
    message = shop.message("replay") if is_old else shop.write_stream("orders", 3, again, {**TIMED, **KEPT})

    shop.commit_stream("orders", 3, [message], {**TIMED, **KEPT})

    assert shop.rows() == ALL
    assert snapshots(shop) == before


def test_the_next_batches_go_in(shop: Shop) -> None:
    shop.stream("orders", 4, rows((24, "mon"), minute=4), **TIMED)
    shop.stream("orders", 5, rows((25, None), minute=5), **TIMED)
    shop.stream("orders", 5, rows((25, None), minute=5), **TIMED)

    assert shop.rows() == with_new((24, "mon"), (25, None))
    assert shop.pwc("history")["watermark_ms"] == START_MS + 5 * 60_000


def test_a_stream_goes_on_with_a_quarantine_and_without_it_again(shop: Shop) -> None:
    judging = {"quarantine": "sales.bad", "quarantine__maxShare": "1", "check__known": "id < 90"}
    for _ in range(2):
        shop.stream("orders", 4, rows((24, "mon"), (94, "mon"), minute=4), **judging, **TIMED)
    shop.stream("orders", 5, rows((25, None), minute=5), **TIMED)

    assert shop.rows() == with_new((24, "mon"), (25, None))
    counted = {one["batch"]: one["quarantined"] for one in shop.pwc("history")["snapshots"] if one["user"] == "orders"}
    assert counted == {0: None, 1: None, 2: None, 3: None, 4: 1, 5: None}


def test_the_watermark_does_not_go_back(shop: Shop) -> None:
    shop.stream("orders", 4, rows((24, "mon"), minute=1), **TIMED)

    assert shop.pwc("history")["watermark_ms"] == START_MS + 3 * 60_000


def test_an_earlier_batch_is_refused(shop: Shop) -> None:
    with pytest.raises(StaleBatchError):
        shop.stream("orders", 2, rows((22, "mon"), minute=2), **TIMED)

    assert shop.rows() == ALL


def test_the_name_of_the_stream_is_not_free_for_a_job(shop: Shop) -> None:
    with pytest.raises(CommitUserConflictError):
        shop.commit_job(shop.message("job"), user="orders", extra={**KEPT, "commitIdentifier": "9"})

    assert shop.rows() == ALL


# ---------------------------------------------------------------- a job goes on


@pytest.mark.parametrize("identifier", [20260101, 20260103, 20260105])
def test_a_rerun_of_a_job_is_recognised(shop: Shop, identifier: int) -> None:
    before = snapshots(shop)

    shop.job(rows((99, "mon")), identifier=identifier)

    assert shop.rows() == ALL
    assert snapshots(shop) == before


def test_a_job_fills_the_gaps_between_its_identifiers(shop: Shop) -> None:
    for identifier in (20260102, 20260106, 20260102, 20260103):
        shop.job(rows((identifier, "mon")), identifier=identifier)

    assert shop.rows() == with_new((20260102, "mon"), (20260106, "mon"))


# ---------------------------------------------------------------- listeners


def test_events_that_are_owed_are_told_in_order_and_with_the_state(shop: Shop) -> None:
    [listener] = shop.pwc("history")["listeners"]
    notes = shop.directory / "notes"
    heard = {"listeners": LISTENER, f"listener.{LISTENER}.file": str(notes)}

    shop.stream("orders", 4, rows((24, "wed"), minute=4), **TIMED, **heard)

    # How often it failed is known from the memo beside the table.
    assert (listener["owed"], listener["failures"], listener["error"]) == (2, 2, "RuntimeError: nobody home")
    minutes: list[Any] = [json.loads(line) for line in notes.read_text().splitlines()]
    assert minutes == [
        [2, 1, START_MS + 120_000, ["mon"], [0, 1]],
        [3, 1, START_MS + 180_000, ["tue"], [0, 1, 2]],
        [4, 1, START_MS + 240_000, ["wed"], [0, 1, 2, 3]],
    ]
    assert [one["owed"] for one in shop.pwc("history")["listeners"]] == [0]


def test_a_replay_is_enough_to_tell_what_is_owed(shop: Shop) -> None:
    notes = shop.directory / "notes"
    heard = {"listeners": LISTENER, f"listener.{LISTENER}.file": str(notes)}

    shop.stream("orders", 3, rows((23, "tue"), minute=3), **TIMED, **heard)

    assert [json.loads(line)[0] for line in notes.read_text().splitlines()] == [2, 3]


# ---------------------------------------------------------------- a ledger that is not complete


def test_a_batch_of_a_user_that_left_the_ledger_is_refused(shop: Shop) -> None:
    with pytest.raises(LedgerLostError, match="silent"):
        shop.stream("silent", 1, rows((2, "mon")))

    assert shop.rows() == ALL


def test_what_is_left_of_such_a_user_tells_its_next_batch_from_its_last(shop: Shop) -> None:
    shop.stream("silent", 2, rows((3, "mon")))

    assert shop.rows() == with_new((3, "mon"))


@with_claims
def test_a_claim_of_a_commit_that_was_killed_lets_the_batch_in(shop: Shop) -> None:
    shop.stream("killed", 0, rows((40, "mon")))
    shop.stream("killed", 0, rows((40, "mon")))

    assert shop.rows() == with_new((40, "mon"))


# ---------------------------------------------------------------- rolled back: only its snapshots know


def roll_back_to(shop: Shop, user: str, batch: int) -> None:
    history = shop.pwc("history")["snapshots"]
    [found] = [one["snapshot"] for one in history if (one["user"], one["batch"]) == (user, batch)]
    with samples.in_pyiceberg(shop) as table:
        table.manage_snapshots().rollback_to_snapshot(found).commit()


@in_iceberg
def test_a_job_knows_its_identifiers_after_a_rollback(shop: Shop) -> None:
    roll_back_to(shop, "nightly", 20260103)

    for identifier in (20260101, 20260102, 20260103, 20260105):
        shop.job(rows((identifier, "mon")), identifier=identifier)

    assert shop.rows() == [*OF_NIGHTLY, (20260102, "mon"), (20260105, "mon")]


@in_iceberg
def test_a_listener_is_told_with_the_state_of_before_the_rollback(shop: Shop) -> None:
    roll_back_to(shop, "orders", 2)
    notes = shop.directory / "notes"
    heard = {"listeners": LISTENER, f"listener.{LISTENER}.file": str(notes)}

    shop.stream("orders", 3, rows((23, "tue"), minute=3), **TIMED, **heard)

    told = [json.loads(line) for line in notes.read_text().splitlines()]
    assert [(batch, state) for batch, *_, state in told] == [(2, [0, 1]), (3, [0, 1, 2])]


# ---------------------------------------------------------------- looking after it


def test_expiry_and_compaction_forget_nobody(shop: Shop) -> None:
    shop.pwc("compact", "--in-process")
    shop.pwc("expire", "--keep-last", "1", "--older-than", "0s")

    shop.stream("orders", 3, rows((23, "tue"), minute=3), **TIMED)
    shop.job(rows((99, "mon")), identifier=20260103)

    assert shop.rows() == ALL
    assert len(snapshots(shop)) < STANDING[shop.format]


# ---------------------------------------------------------------- messages


def test_a_batch_of_a_stream_that_was_only_written_is_committed(shop: Shop) -> None:
    messages = [shop.message("stream"), shop.message("stream-empty")]

    shop.commit_stream("orders", 4, messages, {**TIMED, **KEPT})

    assert shop.rows() == with_new((24, "mon"), (25, None))
    newest = shop.pwc("history")["snapshots"][-1]
    assert (newest["user"], newest["batch"], newest["watermark_ms"]) == ("orders", 4, START_MS + 4 * 60_000)


def test_a_message_beside_one_of_this_version_makes_one_batch(shop: Shop) -> None:
    new = shop.write_stream("orders", 4, rows((26, "mon"), minute=4), {**TIMED, **KEPT})

    shop.commit_stream("orders", 4, [shop.message("stream"), new], {**TIMED, **KEPT})

    assert shop.rows() == with_new((24, "mon"), (25, None), (26, "mon"))


def test_a_job_that_was_only_written_is_committed_once(shop: Shop) -> None:
    for _ in range(2):
        shop.commit_job(shop.message("job"), user="nightly", extra={**KEPT, "commitIdentifier": "20260104"})

    assert shop.rows() == with_new((14, "mon"))


def test_a_job_without_a_name_is_committed(shop: Shop) -> None:
    shop.commit_job(shop.message("job"))

    assert shop.rows() == with_new((14, "mon"))


def test_an_overwrite_replaces_only_the_partitions_that_its_message_names(shop: Shop) -> None:
    shop.commit_job(shop.message("dynamic"), overwrite=True)

    assert shop.rows() == [row for row in with_new((31, "wed")) if row != (30, "wed")]


# ---------------------------------------------------------------- the catalog in a local warehouse


@pytest.mark.parametrize("version", VERSIONS)
def test_the_catalog_beside_an_iceberg_table_is_found(version: str, tmp_path: Path) -> None:
    samples.unpack(version, "embedded", tmp_path)
    samples.move_embedded(tmp_path, NOWHERE, str(tmp_path))
    shop = samples.local_iceberg(tmp_path)

    shop.stream("orders", 0, rows((1, "mon")), createTable="false")

    assert shop.rows() == [(1, "mon")]
    assert shop.pwc("verify", "--deep")["problems"] == []
