"""Notifying listeners of a batch that is in: in order, each at least once, and never at the batch's cost."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paimon_sink.commit.journal import (
    MOST_STATE_BYTES,
    MOST_STATE_DEPTH,
    ListenerJournal,
    decode_journal,
    encode_journal,
)
from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import PwcError
from paimon_sink.core.events import CommitEvent, CommitListener, WrittenPartition
from paimon_sink.core.rejected import counted_by_rule
from paimon_sink.core.strict_json import as_text, read_json
from paimon_sink.formats.contract import Table
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.values import Plan

log = logging.getLogger(__name__)


def current_journal(table: Table, commit_user: str, entry: LedgerEntry | None) -> ListenerJournal:
    """What the listeners of a user know by now: as the ledger has it, or as they were notified since.

    The cache is of one snapshot. Whoever lost it, or finds that of another, notifies again; nobody is left out.
    """
    if entry is None or entry.journal is None:
        return ListenerJournal()
    cached = _cached_journal(table, commit_user, entry)
    return cached or decode_journal(entry.journal, table=table.label, location=table.location, commit_user=commit_user)


def event_of(
    plan: Plan,
    table: Table,
    entry: LedgerEntry,
    *,
    watermark_ms: int | None,
    attempts: int,
    small_files: int | None,
) -> CommitEvent:
    """The batch as its listeners will be notified of it."""
    files = table.files
    partitions = {files.partition_path(file.path): file for file in plan.files if table.partition_source_columns}
    return CommitEvent(
        table=table.label,
        location=table.location,
        commit_user=plan.commit_user,
        query_id=plan.query_id,
        batch_id=entry.batch_id,
        first_batch_id=entry.batch_id,
        commit_id=entry.commit_id or "",
        snapshot_id=entry.snapshot_id,
        at_ms=entry.at_ms,
        rows=plan.rows_come,
        files=len(plan.files),
        size_bytes=plan.size_bytes,
        small_files=small_files,
        attempts=attempts,
        replays=0,
        watermark_ms=watermark_ms,
        partitions=tuple(
            WrittenPartition(
                path, dict(zip(table.partition_spec, files.partition_labels(partitions[path]), strict=True))
            )
            for path in sorted(partitions)
        ),
        quarantined=counted_by_rule(plan.rejected),
    )


@dataclass(frozen=True)
class ListenerDispatch:
    """The listeners of one writer."""

    table: Table
    listeners: Mapping[str, CommitListener] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)

    def with_event(self, before: LedgerEntry | None, event: CommitEvent) -> str:
        """The journal to publish with a batch, after the one that stands."""
        journal = current_journal(self.table, event.commit_user, before)
        for name in journal.listeners.keys() - self.listeners.keys():
            log.info("%s is no listener of %s any more: what it knew goes", name, self.table.label)
        return encode_journal(journal.with_event(event, self.listeners))

    def notify(
        self, commit_user: str, entry: LedgerEntry | None, *, replayed: bool, timings_ms: Mapping[str, int]
    ) -> None:
        """Notify of what is still owed. The batch is in: whatever goes wrong here is logged and tried again."""
        if not self.listeners or entry is None or entry.journal is None:
            return
        try:
            before = current_journal(self.table, commit_user, entry)
            after = before.with_replay() if replayed else before
            for name in self.listeners:
                after = self._notify_one(after, name, entry.commit_id, timings_ms)
            if after != before:
                self._remember(commit_user, entry, after)
        except Exception as error:  # noqa: BLE001 - the batch is in, whatever becomes of this
            log.warning(
                "Could not finish notifying the listeners of %s, the next batch goes on: %s", self.table.label, error
            )

    def _notify_one(
        self, journal: ListenerJournal, name: str, commit_id: str | None, timings_ms: Mapping[str, int]
    ) -> ListenerJournal:
        for event in journal.owed_to(name):
            is_new = event.commit_id == commit_id
            try:
                state = self.listeners[name].on_commit(
                    replace(event, timings_ms=timings_ms) if is_new else event, journal.listeners[name].state
                )
                journal = journal.acknowledged(name, _checked(state))
            except (Exception, SystemExit) as error:
                # Whatever a listener does, the batch is in.
                log.warning(
                    "The listener %s of %s failed at batch %d, it is notified again with the next: %s",
                    *(name, self.table.label, event.batch_id, error),
                    exc_info=not isinstance(error, PwcError),
                )
                reason = str(error) if isinstance(error, PwcError) else f"{type(error).__name__}: {error}"
                return journal.failed(name, reason, now_ms=self.clock.now_ms())
        return journal

    def _remember(self, commit_user: str, entry: LedgerEntry, journal: ListenerJournal) -> None:
        body = {"commit": entry.commit_id, "book": encode_journal(journal)}
        self.table.side_files.write_cache(_cache_name(commit_user), json.dumps(body).encode("utf-8"))


def _checked(state: Any) -> Any:
    """The state as it will be read again."""
    text = json.dumps(state, ensure_ascii=False, allow_nan=False)
    if _is_deeper(state, MOST_STATE_DEPTH):
        raise ValueError(f"its state is nested more than {MOST_STATE_DEPTH} deep")
    if len(text.encode("utf-8")) > MOST_STATE_BYTES:
        raise ValueError(f"its state takes {len(text)} characters; at most {MOST_STATE_BYTES} bytes are kept")
    return read_json(text)


def _is_deeper(value: Any, most: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return most < 0 or any(_is_deeper(inner, most - 1) for inner in inside)


def _cached_journal(table: Table, commit_user: str, entry: LedgerEntry) -> ListenerJournal | None:
    name = _cache_name(commit_user)
    try:
        body = read_json(table.side_files.read_cache(name))
        if body["commit"] != entry.commit_id:
            return None
        return decode_journal(
            as_text(body["book"]), table=table.label, location=table.location, commit_user=commit_user
        )
    except FileNotFoundError:
        return None
    except (PwcError, OSError, ValueError, TypeError, KeyError) as error:
        path = table.side_files.cache_path(name)
        log.warning("Cannot read the cache %s, listeners are notified again: %s", path, error)
        return None


def _cache_name(commit_user: str) -> str:
    return f"told/{hashlib.sha256(commit_user.encode('utf-8')).hexdigest()[:32]}"
