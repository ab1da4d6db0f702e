"""The book: who is owed what, and how it stays small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paimon_sink.commit.book import MOST_EVENT_BYTES, MOST_EVENTS, Book, decode_book, encode_book
from paimon_sink.core.events import CommitEvent, WrittenPartition
from paimon_sink.errors import CorruptTableError

EVENT = CommitEvent("t", "/t", "u", "q", 0, 0, "c", 1, 1, 10, 1, 100, 1, 1, 0, None)


def event(batch: int, *partitions: WrittenPartition) -> CommitEvent:
    return replace(EVENT, batch_id=batch, first_batch_id=batch, commit_id=f"c-{batch}", partitions=partitions)


def part(day: str, key: str = "day") -> WrittenPartition:
    return WrittenPartition(f"{key}={day}", {key: day})


def again(book: Book) -> Book:
    return decode_book(encode_book(book), table="t", location="/t", commit_user="u")


def told_of(book: Book, name: str) -> list[int]:
    """The batches that somebody would hear of now, one by one."""
    return [batch for owed in book.owed_to(name) for batch in range(owed.first_batch_id, owed.batch_id + 1)]


def test_what_is_written_down_is_read_as_it_was() -> None:
    book = Book().with_event(event(0, part("monday")), ["a", "b"]).told("a", {"x": [1, None]}).with_replay()
    book = book.failed("b", "no", now_ms=7)
    assert again(book) == book


def test_partitions_are_told_by_the_names_they_had_then() -> None:
    """Somebody may change the partitioning of an Iceberg table while events are owed."""
    book = Book().with_event(event(0, part("1")), ["a"])
    wider = WrittenPartition("day=1/hour=2", {"day": "1", "hour": "2"})
    book = book.with_event(event(1, wider, part("3", key="hour")), ["a"])
    assert again(book) == book


@pytest.mark.parametrize("late", [1, 2, 40])
def test_nobody_hears_of_a_batch_again_because_others_are_further_behind(late: int) -> None:
    book = Book()
    for batch in range(MOST_EVENTS * 2):
        book = book.with_event(event(batch), ["first", "second"])
        if batch < late:
            book = book.told("second", None)
    assert len(book.events) == MOST_EVENTS
    assert told_of(book, "first") == list(range(MOST_EVENTS * 2))
    assert told_of(book, "second") == list(range(late, MOST_EVENTS * 2))
    assert sum(found.batches for found in book.owed_to("second")) == MOST_EVENTS * 2 - late
    assert sum(found.rows for found in book.owed_to("first")) == 10 * MOST_EVENTS * 2


def test_many_partitions_do_not_make_it_large() -> None:
    days = [part(f"{number:020}") for number in range(1_000)]
    book = Book()
    for batch in range(50):
        book = book.with_event(event(batch, *days), ["a"])
    assert len(encode_book(book)) < 2 * MOST_EVENT_BYTES
    assert told_of(book, "a") == list(range(50))
    assert {found.path for owed in book.owed_to("a") for found in owed.partitions} == {day.path for day in days}


def test_an_error_with_half_a_character_can_be_kept() -> None:
    book = Book().with_event(event(0), ["a"]).failed("a", "cannot open /data/\udcff.csv", now_ms=1)
    assert again(book).seats["a"].error == "cannot open /data/?.csv"


@pytest.mark.parametrize("damage", ['"version":1', '"owed"', "[", '"keys":[]'])
def test_a_damaged_one_is_refused_by_a_sentence(damage: str) -> None:
    text = encode_book(Book().with_event(event(0, part("monday")), ["a"]))
    broken = {
        '"version":1': text.replace('"version":1', '"version":2'),
        '"owed"': text.replace('"a":[null,1', '"a":[null,9'),
        "[": text[:-3],
        '"keys":[]': text.replace('"keys":[["day"]]', '"keys":[]'),
    }[damage]
    assert broken != text
    with pytest.raises(CorruptTableError, match="leave the option listeners out for one batch"):
        decode_book(broken, table="t", location="/t", commit_user="u")
