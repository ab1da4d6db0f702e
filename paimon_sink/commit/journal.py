"""The journal of a commit user: what its listeners know, and what they are still to be notified of. Pure.

It rides in the ledger entry of the batch it is about, so it is published with the batch, rolls back with it, and is
read by whoever comes next. The event of the batch itself is in it, still owed: no listener can be notified before the
snapshot is in. What was delivered since is in a cache; without the cache it is delivered again.
"""

from __future__ import annotations

import json
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.core.events import CommitEvent, WrittenPartition
from paimon_sink.core.strict_json import as_count, as_text, as_whole, read_json

MOST_EVENTS = 100
"""A listener that is further behind is notified of the oldest batches together."""
MOST_STATE_BYTES = 64 << 10
MOST_STATE_DEPTH = 50
MOST_EVENT_BYTES = 256 << 10
"""About. What is owed beyond that is notified together too, as long as there are events to put together."""
_EVENT_BYTES = 250
"""What an event takes without its partitions, about."""
_LONGEST_ERROR = 300
_VERSION = 1


@dataclass(frozen=True)
class ListenerProgress:
    """One listener."""

    state: Any = None
    owed: int = 0
    """How many of the last events it is still to be notified of."""
    failures: int = 0
    """Since it last went well."""
    error: str | None = None
    failed_ms: int | None = None


@dataclass(frozen=True)
class ListenerJournal:
    events: tuple[CommitEvent, ...] = ()
    """Oldest first. As many as some listener is still owed, at least."""
    listeners: Mapping[str, ListenerProgress] = field(default_factory=dict)
    replays: int = 0
    """Recognised since the last event."""

    def with_event(self, event: CommitEvent, names: Iterable[str]) -> ListenerJournal:
        """The journal with one more event, owed to all of these. Listeners that are not among them leave it."""
        listeners = {name: self.listeners.get(name, ListenerProgress()) for name in names}
        listeners = {name: replace(progress, owed=progress.owed + 1) for name, progress in listeners.items()}
        return ListenerJournal((*self.events, replace(event, replays=self.replays)), listeners)._trimmed()

    def owed_to(self, name: str) -> tuple[CommitEvent, ...]:
        progress = self.listeners.get(name)
        return () if progress is None or not progress.owed else self.events[-progress.owed :]

    def acknowledged(self, name: str, state: Any) -> ListenerJournal:
        """The journal after one more event was delivered."""
        return self._with(name, ListenerProgress(state, self.listeners[name].owed - 1))

    def failed(self, name: str, error: str, *, now_ms: int) -> ListenerJournal:
        progress = self.listeners[name]
        shortened = error.encode("utf-8", "replace").decode("utf-8")
        shortened = shortened if len(shortened) <= _LONGEST_ERROR else shortened[: _LONGEST_ERROR - 1] + "…"
        return self._with(name, replace(progress, failures=progress.failures + 1, error=shortened, failed_ms=now_ms))

    def with_replay(self) -> ListenerJournal:
        return replace(self, replays=self.replays + 1)

    def _with(self, name: str, progress: ListenerProgress) -> ListenerJournal:
        return replace(self, listeners={**self.listeners, name: progress})

    def _trimmed(self) -> ListenerJournal:
        """Without what is owed to nobody, and with the oldest as one where there are too many."""
        most = max((progress.owed for progress in self.listeners.values()), default=0)
        journal = replace(self, events=self.events[len(self.events) - most :])
        while len(journal.events) > MOST_EVENTS or sum(map(_weight, journal.events)) > MOST_EVENT_BYTES:
            if (shorter := journal._with_two_as_one()) is None:
                break
            journal = shorter
        return journal

    def _with_two_as_one(self) -> ListenerJournal | None:
        """The oldest two neighbours as one. No listener may stand between them: it would get the first again."""
        begins = {len(self.events) - progress.owed for progress in self.listeners.values()}
        at = next((at for at in range(len(self.events) - 1) if at + 1 not in begins), None)
        if at is None:
            return None
        events = (*self.events[:at], _together(*self.events[at : at + 2]), *self.events[at + 2 :])
        listeners = {
            name: replace(progress, owed=progress.owed - 1) if len(self.events) - progress.owed <= at else progress
            for name, progress in self.listeners.items()
        }
        return replace(self, events=events, listeners=listeners)


def _weight(event: CommitEvent) -> int:
    return _EVENT_BYTES + sum(
        len(partition.path) + sum(len(value or "") for value in partition.values.values()) + 8
        for partition in event.partitions
    )


def _together(first: CommitEvent, second: CommitEvent) -> CommitEvent:
    partitions = {partition.path: partition for partition in (*first.partitions, *second.partitions)}
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
        batches=first.batches + second.batches,
        partitions=tuple(partitions.values()),
        quarantined=dict(Counter(first.quarantined) + Counter(second.quarantined)),
    )


# ---------------------------------------------------------------- as text


def encode_journal(journal: ListenerJournal) -> str:
    all_keys = _keys(journal.events)
    body = {
        "version": _VERSION,
        "replays": journal.replays,
        "keys": [list(keys) for keys in all_keys],
        "events": [_event_fields(event, all_keys) for event in journal.events],
        "listeners": {
            name: [progress.state, progress.owed, progress.failures, progress.error, progress.failed_ms]
            for name, progress in journal.listeners.items()
        },
    }
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def decode_journal(text: str, *, table: str, location: str, commit_user: str) -> ListenerJournal:
    """Read a journal, or refuse it: guessing here would keep a batch from a listener."""
    try:
        body = read_json(text)
        if type(body["version"]) is not int or body["version"] != _VERSION:
            raise ValueError(f"its version is {reprlib.repr(body['version'])}, this paimon-sink knows {_VERSION}")
        all_keys = [tuple(map(as_text, keys)) for keys in body["keys"]]
        events = tuple(
            _event(fields, all_keys, table=table, location=location, commit_user=commit_user)
            for fields in body["events"]
        )
        listeners = {name: _progress(fields, len(events)) for name, fields in body["listeners"].items()}
        return ListenerJournal(events, listeners, as_count(body["replays"]))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise CorruptTableError(
            f"Cannot read what the listeners of {commit_user!r} on {table} know ({error}). Nothing was committed. If a "
            "newer paimon-sink wrote it, use that; else leave the option listeners out for one batch, and they start "
            "anew."
        ) from error


def _keys(events: Iterable[CommitEvent]) -> list[tuple[str, ...]]:
    """The names of partition columns: mostly one set of them, unless somebody changed the partitioning."""
    return list(dict.fromkeys(tuple(partition.values) for event in events for partition in event.partitions))


def _event_fields(event: CommitEvent, all_keys: list[tuple[str, ...]]) -> list[Any]:
    return [
        *(event.query_id, event.batch_id, event.first_batch_id, event.commit_id, event.snapshot_id, event.at_ms),
        *(event.rows, event.files, event.size_bytes, event.small_files, event.attempts, event.replays),
        *(event.batches, event.watermark_ms),
        [[all_keys.index(tuple(part.values)), part.path, *part.values.values()] for part in event.partitions],
        *([dict(event.quarantined)] if event.quarantined else []),
    ]


def _event(fields: Any, all_keys: list[tuple[str, ...]], *, table: str, location: str, commit_user: str) -> CommitEvent:
    quarantined = {}
    if isinstance(fields[-1], dict):
        *fields, quarantined = fields
    query_id, batch, first, commit_id, snapshot_id, at_ms, *figures, batches, watermark_ms, partitions = fields
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
        partitions=tuple(_partition(partition_fields, all_keys) for partition_fields in partitions),
        batches=as_count(batches),
        quarantined={as_text(rule): as_count(count) for rule, count in quarantined.items()},
    )


def _partition(fields: Any, all_keys: list[tuple[str, ...]]) -> WrittenPartition:
    keys, path, *labels = fields
    values = (None if value is None else as_text(value) for value in labels)
    return WrittenPartition(as_text(path), dict(zip(all_keys[as_count(keys)], values, strict=True)))


def _progress(fields: Any, events: int) -> ListenerProgress:
    state, owed, failures, error, failed_ms = fields
    if as_count(owed) > events:
        raise ValueError(f"{owed} events are owed, and {events} are there")
    return ListenerProgress(
        state=state,
        owed=owed,
        failures=as_count(failures),
        error=None if error is None else as_text(error),
        failed_ms=None if failed_ms is None else as_whole(failed_ms),
    )
