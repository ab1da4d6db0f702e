"""The book of a commit user: what its listeners know, and what they are still to be told. Pure.

It rides in the ledger entry of the batch it is about, so it is published with the batch, rolls back with it, and is
read by whoever comes next. The event of the batch itself is in it, not yet told: nobody can be told before the snapshot
is in. What was told since is in a memo, or is told again.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.core.events import CommitEvent, WrittenPartition
from paimon_sink.core.strict_json import as_count, as_text, as_whole, read_json

__all__ = ["MOST_EVENTS", "MOST_STATE_BYTES", "Book", "Seat", "decode_book", "encode_book"]

MOST_EVENTS = 100
"""A listener that is further behind is told of the oldest batches together."""
MOST_STATE_BYTES = 64 << 10
_LONGEST_ERROR = 300
_VERSION = 1


@dataclass(frozen=True)
class Seat:
    """One listener."""

    state: Any = None
    owed: int = 0
    """How many of the last events it is still to be told."""
    failures: int = 0
    """Since it last went well."""
    error: str | None = None
    failed_ms: int | None = None


@dataclass(frozen=True)
class Book:
    events: tuple[CommitEvent, ...] = ()
    """Oldest first. As many as somebody is still to be told, at least."""
    seats: Mapping[str, Seat] = field(default_factory=dict)
    replays: int = 0
    """Recognised since the last event."""

    def with_event(self, event: CommitEvent, names: Iterable[str]) -> Book:
        """The book with one more event, owed to all of these. Whoever is not among them any more leaves it."""
        seats = {name: self.seats.get(name, Seat()) for name in names}
        seats = {name: replace(seat, owed=seat.owed + 1) for name, seat in seats.items()}
        return Book((*self.events, replace(event, replays=self.replays)), seats)._trimmed()

    def owed_to(self, name: str) -> tuple[CommitEvent, ...]:
        seat = self.seats.get(name)
        return () if seat is None or not seat.owed else self.events[-seat.owed :]

    def told(self, name: str, state: Any) -> Book:
        """The book after one more event was told."""
        return self._with(name, Seat(state, self.seats[name].owed - 1))

    def failed(self, name: str, error: str, *, now_ms: int) -> Book:
        seat = self.seats[name]
        said = error if len(error) <= _LONGEST_ERROR else error[: _LONGEST_ERROR - 1] + "…"
        return self._with(name, replace(seat, failures=seat.failures + 1, error=said, failed_ms=now_ms))

    def with_replay(self) -> Book:
        return replace(self, replays=self.replays + 1)

    def _with(self, name: str, seat: Seat) -> Book:
        return replace(self, seats={**self.seats, name: seat})

    def _trimmed(self) -> Book:
        """Without what all were told, and with the oldest as one where there are too many."""
        most = max((seat.owed for seat in self.seats.values()), default=0)
        events = self.events[len(self.events) - most :]
        seats = self.seats
        while len(events) > MOST_EVENTS:
            events = (_together(events[0], events[1]), *events[2:])
            # Whoever was still to be told of both is told of the two as one; nobody stands between them.
            seats = {
                name: seat if seat.owed <= len(events) else replace(seat, owed=len(events))
                for name, seat in seats.items()
            }
        return replace(self, events=events, seats=seats)


def _together(first: CommitEvent, second: CommitEvent) -> CommitEvent:
    partitions = {found.path: found for found in (*first.partitions, *second.partitions)}
    smalls = (first.small_files, second.small_files)
    return replace(
        second,
        first_batch_id=first.first_batch_id,
        rows=first.rows + second.rows,
        files=first.files + second.files,
        size_bytes=first.size_bytes + second.size_bytes,
        small_files=None if None in smalls else sum(filter(None, smalls)),
        attempts=first.attempts + second.attempts - 1,
        replays=first.replays + second.replays,
        partitions=tuple(partitions.values()),
    )


# ---------------------------------------------------------------- as text


def encode_book(book: Book) -> str:
    body = {
        "version": _VERSION,
        "replays": book.replays,
        "keys": _keys(book.events),
        "events": [_event_fields(event) for event in book.events],
        "listeners": {
            name: [seat.state, seat.owed, seat.failures, seat.error, seat.failed_ms]
            for name, seat in book.seats.items()
        },
    }
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def decode_book(text: str, *, table: str, location: str, commit_user: str) -> Book:
    """Read a book, or refuse it: guessing here would keep a batch from a listener."""
    try:
        body = read_json(text)
        if type(body["version"]) is not int or body["version"] != _VERSION:
            raise ValueError(f"its version is {reprlib.repr(body['version'])}, this paimon-sink knows {_VERSION}")
        keys = tuple(map(as_text, body["keys"]))
        events = tuple(
            _event(fields, keys, table=table, location=location, commit_user=commit_user) for fields in body["events"]
        )
        seats = {name: _seat(fields, len(events)) for name, fields in body["listeners"].items()}
        return Book(events, seats, as_count(body["replays"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptTableError(
            f"Cannot read what the listeners of {commit_user!r} on {table} know ({error}). Nothing was committed. If a "
            "newer paimon-sink wrote it, use that; else leave the option listeners out for one batch, and they start "
            "anew."
        ) from error


def _keys(events: Iterable[CommitEvent]) -> list[str]:
    """The same in all: a table's partition keys do not change."""
    return next((list(event.partitions[0].values) for event in events if event.partitions), [])


def _event_fields(event: CommitEvent) -> list[Any]:
    return [
        *(event.query_id, event.batch_id, event.first_batch_id, event.commit_id, event.snapshot_id, event.at_ms),
        *(event.rows, event.files, event.size_bytes, event.small_files, event.attempts, event.replays),
        event.watermark_ms,
        [[partition.path, *partition.values.values()] for partition in event.partitions],
    ]


def _event(fields: Any, keys: tuple[str, ...], *, table: str, location: str, commit_user: str) -> CommitEvent:
    query_id, batch, first, commit_id, snapshot_id, at_ms, *figures, watermark_ms, partitions = fields
    rows, files, size_bytes, small_files, attempts, replays = figures
    return CommitEvent(
        table=table,
        location=location,
        commit_user=commit_user,
        query_id=None if query_id is None else as_text(query_id),
        batch_id=as_count(batch),
        first_batch_id=as_count(first),
        commit_id=as_text(commit_id),
        snapshot_id=as_count(snapshot_id),
        at_ms=as_whole(at_ms),
        rows=as_count(rows),
        files=as_count(files),
        size_bytes=as_count(size_bytes),
        small_files=None if small_files is None else as_count(small_files),
        attempts=as_count(attempts),
        replays=as_count(replays),
        watermark_ms=None if watermark_ms is None else as_whole(watermark_ms),
        partitions=tuple(_partition(found, keys) for found in partitions),
    )


def _partition(fields: Any, keys: tuple[str, ...]) -> WrittenPartition:
    path, *said = fields
    values = (None if value is None else as_text(value) for value in said)
    return WrittenPartition(as_text(path), dict(zip(keys, values, strict=True)))


def _seat(fields: Any, events: int) -> Seat:
    state, owed, failures, error, failed_ms = fields
    if as_count(owed) > events:
        raise ValueError(f"{owed} events are owed, and {events} are there")
    return Seat(
        state=state,
        owed=owed,
        failures=as_count(failures),
        error=None if error is None else as_text(error),
        failed_ms=None if failed_ms is None else as_whole(failed_ms),
    )
