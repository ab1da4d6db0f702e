"""Users that left the ledger of an Iceberg table: what is kept of each, and how much of it."""

from __future__ import annotations

from paimon_sink.core.identifiers import Identifiers
from paimon_sink.formats.iceberg.silent import MOST_SILENT, SilentUsers
from paimon_sink.formats.ledger import Claim, LedgerEntry


def entry(batch_id: int, query_id: str | None = None, identifiers: Identifiers | None = None) -> LedgerEntry:
    return LedgerEntry(batch_id, query_id, "commit", 1, 1, identifiers=identifiers)


def test_what_is_written_down_is_read_again() -> None:
    left = {"stream": entry(7, "stream"), "named": entry(8, "a query: with = signs"), "job": entry(9)}

    read = SilentUsers.from_text(SilentUsers().changed(left=left, came_back=()).to_text())

    assert [read.claim_of(user) for user in (*left, "nobody")] == [
        Claim("stream", 7, "stream", ""),
        Claim("named", 8, "a query: with = signs", ""),
        Claim("job", 9, None, ""),
        None,
    ]
    assert not read.forgot_some


def test_the_highest_identifier_of_a_job_is_kept_and_not_the_last() -> None:
    known = Identifiers().adding(17, at_ms=0).adding(15, at_ms=0)

    kept = SilentUsers().changed(left={"job": entry(15, None, known)}, came_back=())

    assert kept.claim_of("job") == Claim("job", 17, None, "")


def test_a_stream_takes_few_characters() -> None:
    query = "2f1c7a52-1a53-4b8e-9d0e-6a0a7a5f8c11"

    assert len(SilentUsers().changed(left={query: entry(1234, query)}, came_back=()).to_text()) < 20


def test_there_is_an_end_to_them_and_it_is_told() -> None:
    many = {f"user {number}": entry(number) for number in range(MOST_SILENT + 1)}

    kept = SilentUsers.from_text(SilentUsers().changed(left=many, came_back=()).to_text())

    assert len(kept.lines) == MOST_SILENT
    assert kept.forgot_some
    assert kept.claim_of("user 0") is None
    assert kept.claim_of(f"user {MOST_SILENT}") is not None
