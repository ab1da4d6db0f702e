"""Outboxes and what messages and ledgers say of them: values, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paimon_sink.core.errors import MessageError
from paimon_sink.core.identifiers import Identifiers
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.outbox import Carried, Outbox, OutboxPart, next_outbox, receiving_user
from paimon_sink.core.rejected import RejectedRows, counted_by_rule, in_words
from paimon_sink.formats.ledger import LedgerEntry, extras_of, with_extras

PART = OutboxPart("sales.bad", "pwc/clean/.outbox.0.tmp", 2, 4158)
ENTRY = LedgerEntry(7, "query", "c-1", 9, 100)


def test_a_user_who_never_owed_anything_has_no_outbox() -> None:
    assert next_outbox(None, []) is None


def test_the_number_goes_up_with_what_is_owed_and_stays_where_nothing_is() -> None:
    first = next_outbox(None, [PART])
    nothing = next_outbox(first, [])
    second = next_outbox(nothing, [PART])

    assert first == Outbox(0, (PART,))
    assert nothing == Outbox(0)
    assert second == Outbox(1, (PART,))


def test_a_number_that_the_receiving_table_has_is_never_given_again() -> None:
    assert next_outbox(Outbox(3), [PART], taken=8) == Outbox(9, (PART,))


def test_a_receiving_table_tells_users_and_tables_apart() -> None:
    users = {receiving_user(table, user) for table in ("a", "b") for user in ("x", "y")}

    assert len(users) == 4


@pytest.mark.parametrize("journal", [None, "{}"], ids=["silent", "with listeners"])
@pytest.mark.parametrize("identifiers", [None, Identifiers(floor=3)], ids=["stream", "job"])
@pytest.mark.parametrize("outbox", [None, Outbox(4), Outbox(4, (PART,))], ids=["nothing", "empty", "full"])
def test_an_entry_is_read_as_it_was_written(
    journal: str | None, identifiers: Identifiers | None, outbox: Outbox | None
) -> None:
    entry = replace(ENTRY, journal=journal, identifiers=identifiers, outbox=outbox)

    assert with_extras(ENTRY, extras_of(entry)) == entry


def test_an_entry_without_an_outbox_is_written_as_it_always_was() -> None:
    assert extras_of(ENTRY) == []
    assert extras_of(replace(ENTRY, journal="{}")) == ["{}"]
    assert len(extras_of(replace(ENTRY, identifiers=Identifiers(floor=3)))) == 2


@pytest.mark.parametrize(
    "fields", [[None], [None, None], [None, None, None], ["{}", None, [0]], [1], [None, None, [0, []], 1]], ids=str
)
def test_a_damaged_entry_is_refused(fields: list[object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        with_extras(ENTRY, fields)


def test_a_message_without_bad_rows_is_of_the_version_that_earlier_releases_read() -> None:
    plain, judged = TaskMessage("t", 0), TaskMessage("t", 0, rejected=RejectedRows({"not null": 2}, "f", 2))

    assert TaskMessage.from_bytes(plain.to_bytes()) == plain
    assert TaskMessage.from_bytes(judged.to_bytes()) == judged


@pytest.mark.parametrize("fields", [[{}], [{"a": -1}, None, 0], [[], None, 0], [{"a": 2}, "f", 1], [{"a": 2}, None, 2]])
def test_a_message_that_counts_its_bad_rows_wrongly_is_refused(fields: list[object]) -> None:
    class Lying(RejectedRows):
        def to_fields(self) -> list[object]:
            return fields

    message = TaskMessage("t", 0, rejected=Lying({"a": 1}))

    with pytest.raises(MessageError, match="damaged"):
        TaskMessage.from_bytes(message.to_bytes())


def test_bad_rows_are_told_by_rule_and_by_count_alone() -> None:
    rules = counted_by_rule([RejectedRows({"not null": 1}), RejectedRows({"not null": 1999, "check.a": 3})])

    assert in_words(rules) == "check.a: 3, not null: 2,000"


def test_what_is_carried_is_read_as_it_was_written() -> None:
    carried = Carried(3, "a-commit", 17, ("shop.a", "shop.b"))
    outbox = Outbox(5, (OutboxPart("shop.home", "a", 1, 2, carried), OutboxPart("shop.home", "b", 3, 4)), widest=7)

    assert Outbox.from_fields(outbox.to_fields()) == outbox


@pytest.mark.parametrize(
    "fields", [[1, [], 2, 3], [1, [["t", "f", 1, 2, [1, "c", 0, []], 6]]], [1, [["t", "f", 1, 2, 7]]]]
)
def test_more_than_there_is_in_an_outbox_is_refused(fields: list[object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Outbox.from_fields(fields)


def test_an_outbox_of_what_is_only_carried_has_a_number_of_its_own() -> None:
    carried = OutboxPart("shop.home", "a", 1, 2, Carried(3, "a-commit", 17, ("shop.a",)))

    found = next_outbox(Outbox(5, widest=2), (carried,), at_least=9, widest=1)

    assert found == Outbox(9, (carried,), widest=2)
