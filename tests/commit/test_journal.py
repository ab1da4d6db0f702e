"""The book: who is owed what, and how it stays small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paimon_sink.commit.journal import MOST_EVENT_BYTES, MOST_EVENTS, ListenerJournal, decode_journal, encode_journal
from paimon_sink.core.events import CommitEvent, WrittenPartition
from paimon_sink.errors import CorruptTableError

EVENT = CommitEvent("t", "/t", "u", "q", 0, 0, "c", 1, 1, 10, 1, 100, 1, 1, 0, None)


def event(batch: int, *partitions: WrittenPartition) -> CommitEvent:
    return replace(EVENT, batch_id=batch, first_batch_id=batch, commit_id=f"c-{batch}", partitions=partitions)


def part(day: str, key: str = "day") -> WrittenPartition:
    return WrittenPartition(f"{key}={day}", {key: day})


def again(journal: ListenerJournal) -> ListenerJournal:
    return decode_journal(encode_journal(journal), table="t", location="/t", commit_user="u")


def told_of(journal: ListenerJournal, name: str) -> list[int]:
    """The batches that somebody would hear of now, one by one."""
    return [batch for owed in journal.owed_to(name) for batch in range(owed.first_batch_id, owed.batch_id + 1)]


def test_what_is_written_down_is_read_as_it_was() -> None:
    journal = (
        ListenerJournal()
        .with_event(event(0, part("monday")), ["a", "b"])
        .acknowledged("a", {"x": [1, None]})
        .with_replay()
    )
    journal = journal.failed("b", "no", now_ms=7)
    assert again(journal) == journal


def test_partitions_are_told_by_the_names_they_had_then() -> None:
    """Somebody may change the partitioning of an Iceberg table while events are owed."""
    journal = ListenerJournal().with_event(event(0, part("1")), ["a"])
    wider = WrittenPartition("day=1/hour=2", {"day": "1", "hour": "2"})
    journal = journal.with_event(event(1, wider, part("3", key="hour")), ["a"])
    assert again(journal) == journal


@pytest.mark.parametrize("late", [1, 2, 40])
def test_nobody_hears_of_a_batch_again_because_others_are_further_behind(late: int) -> None:
    journal = ListenerJournal()
    for batch in range(MOST_EVENTS * 2):
        journal = journal.with_event(event(batch), ["first", "second"])
        if batch < late:
            journal = journal.acknowledged("second", None)
    assert len(journal.events) == MOST_EVENTS
    assert told_of(journal, "first") == list(range(MOST_EVENTS * 2))
    assert told_of(journal, "second") == list(range(late, MOST_EVENTS * 2))
    assert sum(found.batches for found in journal.owed_to("second")) == MOST_EVENTS * 2 - late
    assert sum(found.rows for found in journal.owed_to("first")) == 10 * MOST_EVENTS * 2


def test_many_partitions_do_not_make_it_large() -> None:
    days = [part(f"{number:020}") for number in range(1_000)]
    journal = ListenerJournal()
    for batch in range(50):
        journal = journal.with_event(event(batch, *days), ["a"])
    assert len(encode_journal(journal)) < 2 * MOST_EVENT_BYTES
    assert told_of(journal, "a") == list(range(50))
    assert {found.path for owed in journal.owed_to("a") for found in owed.partitions} == {day.path for day in days}


def test_an_error_with_half_a_character_can_be_kept() -> None:
    journal = ListenerJournal().with_event(event(0), ["a"]).failed("a", "cannot open /data/\udcff.csv", now_ms=1)
    assert again(journal).listeners["a"].error == "cannot open /data/?.csv"


@pytest.mark.parametrize("damage", ['"version":1', '"owed"', "[", '"keys":[]'])
def test_a_damaged_one_is_refused_by_a_sentence(damage: str) -> None:
    text = encode_journal(ListenerJournal().with_event(event(0, part("monday")), ["a"]))
    broken = {
        '"version":1': text.replace('"version":1', '"version":2'),
        '"owed"': text.replace('"a":[null,1', '"a":[null,9'),
        "[": text[:-3],
        '"keys":[]': text.replace('"keys":[["day"]]', '"keys":[]'),
    }[damage]
    assert broken != text
    with pytest.raises(CorruptTableError, match="leave the option listeners out for one batch"):
        decode_journal(broken, table="t", location="/t", commit_user="u")
