"""The ledger: one table property a user and branch, set in the same commit as the batch it tells of.

Properties survive the expiry of snapshots. They do not roll back with the table, and branches share them; so what a
property says is checked against the snapshots the branch stands on, as far as those are still there.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from itertools import tee
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.core.identifiers import Identifiers
from paimon_sink.core.outbox import Outbox
from paimon_sink.core.properties import (
    BATCH_ID,
    COMMIT_ID,
    COMMIT_USER,
    IDENTIFIERS,
    LISTENERS,
    OUTBOX,
    QUERY_ID,
    SILENT_USERS_OF,
    USERS_OF,
    WATERMARK,
    WATERMARK_OF,
)
from paimon_sink.core.strict_json import is_text, is_whole, read_json
from paimon_sink.formats.iceberg.kept import (
    ancestor_ids,
    ancestors,
    lowest_number,
    mentions,
    standing,
)
from paimon_sink.formats.iceberg.silent import SilentUsers
from paimon_sink.formats.ledger import Claim, Ledger, LedgerEntry, Register, extras_of, with_extras

T = TypeVar("T")

_WHOLE = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_ROLLED_BACK = 2**63 - 1
"""In place of a sequence number: no line ever begins above it, so that the entry is never taken for an expired one."""


def read_ledger(metadata: TableMetadata, *, branch: str, head: Snapshot | None, commit_user: str, table: str) -> Ledger:
    """Who wrote last, with the user in question checked against the branch itself."""
    stored = stored_ledger(metadata.properties, branch=branch, table=table)
    entries = dict(stored.entries)
    own = entries.pop(commit_user, None)
    newest = _newest_of(_line_with(metadata, head, commit_user, own), commit_user, own)
    if newest is not None:
        return Ledger({**entries, commit_user: newest})
    lowest = lowest_number(metadata, head)
    if own is not None:
        number = _sequence_number(metadata.properties[ledger_key(branch, commit_user)])
        is_cut_off = number < 0 or metadata.snapshot_by_id(own.snapshot_id) is None
        if is_cut_off and (lowest is None or abs(number) < lowest):
            # Expired from below the line, not rolled back: only the property still knows.
            return Ledger({**entries, commit_user: own})
    # Rolled back to before the user's batches, silent for long, or only other branches know the user. Nothing is lost
    # if the line goes back to the table's first snapshot.
    goes_back = lowest is None or lowest <= 1
    if goes_back:
        return Ledger(entries)
    # What they say was tried, and may have been in what expired.
    claims = _tried_anywhere(metadata.properties, commit_user, table=table)
    silent = _all_silent(metadata.properties, table=table)
    register = Register.CUT if any(branch.forgot_some for branch in silent) else Register.WHOLE
    return Ledger(entries, complete=False, claims=claims, register=register)


def _line_with(
    metadata: TableMetadata, head: Snapshot | None, user: str, own: LedgerEntry | None
) -> Iterator[Snapshot]:
    """The snapshots of a line, unless none of them can be the user's."""
    is_in_sight = own is not None and metadata.snapshot_by_id(own.snapshot_id) is not None
    return ancestors(metadata, head) if is_in_sight or mentions(metadata, user) else iter(())


def stored_ledger(properties: Mapping[str, str], *, branch: str, table: str) -> Ledger:
    """What the properties say of a branch."""
    prefix = f"{USERS_OF}{_quoted(branch)}."
    entries = {
        _user(key, prefix, table=table): _entry(text, key=key, table=table)
        for key, text in properties.items()
        if key.startswith(prefix)
    }
    _silent(properties, SILENT_USERS_OF + _quoted(branch), table=table)
    return Ledger(entries)


def owed_files(properties: Mapping[str, str], *, table: str) -> frozenset[str]:
    """Files with rows that batches of any branch owe to other tables."""
    lines = (_entry(text, key=key, table=table) for key, text in properties.items() if key.startswith(USERS_OF))
    outboxes = (entry.outbox for entry in lines if entry.outbox is not None)
    return frozenset(part.file for outbox in outboxes for part in outbox.parts)


def ledger_changes(
    before: Ledger,
    after: Ledger,
    *,
    branch: str,
    metadata: TableMetadata,
    table: str,
    next_snapshot_id: int | None = None,
) -> tuple[dict[str, str], list[str]]:
    """Properties to set and to remove for ``after`` to stand where ``before`` stood.

    ``next_snapshot_id`` is that of the snapshot they are set with, which nobody has to look for.
    """
    left = {user: entry for user, entry in before.entries.items() if user not in after.entries}
    gone = {ledger_key(branch, user) for user in left}
    to_set, to_remove = _after_rollback(metadata, branch=branch, table=table)
    to_set = {key: text for key, text in to_set.items() if key not in gone}
    for user, entry in after.entries.items():
        if before.entries.get(user) != entry:
            number = metadata.next_sequence_number() if entry.snapshot_id == next_snapshot_id else None
            to_set[ledger_key(branch, user)] = _encoded(entry, metadata, number=number)
    key = SILENT_USERS_OF + _quoted(branch)
    silent = _silent(metadata.properties, key, table=table)
    changed = silent.changed(left=left, came_back=after.entries.keys() - before.entries.keys())
    if changed.lines or changed.forgot_some:
        if changed != silent:
            to_set[key] = changed.to_text()
    elif silent.lines:
        gone.add(key)
    return to_set, sorted(gone.union(to_remove) - to_set.keys())


def ledger_after_expiry(
    metadata: TableMetadata, snapshot_ids: Set[int], *, table: str
) -> tuple[dict[str, str], list[str]]:
    """Properties to set and to remove with these snapshots, so that each branch knows afterwards what it knows now.

    What only snapshots tell is written down before they go: a batch that a branch grew out of, the last one before a
    rollback. What was rolled back is taken out or marked, or else it would pass for expired once its snapshot is gone.
    """
    to_set: dict[str, str] = {}
    to_remove: list[str] = []
    named = [key.removeprefix(USERS_OF).split(".") for key in metadata.properties if key.startswith(USERS_OF)]
    users = {unquote(parts[-1]) for parts in named}
    # Of some users only their snapshots tell: another engine signed them.
    expiring = [properties_of(each) for each in metadata.snapshots if each.snapshot_id in snapshot_ids]
    users |= {signed[COMMIT_USER] for signed in expiring if {COMMIT_USER, BATCH_ID} <= signed.keys()}
    branches = {unquote(parts[0]) for parts in named}
    branches |= {name for name, ref in metadata.refs.items() if ref.snapshot_ref_type == SnapshotRefType.BRANCH}
    for branch in sorted(branches):
        set_here, removed_here = _branch_after(metadata, branch, sorted(users), snapshot_ids, table=table)
        to_set |= set_here
        to_remove += removed_here
    return to_set, to_remove


def ledger_after_move(
    metadata: TableMetadata, *, branch: str, users: Iterable[str], table: str
) -> tuple[dict[str, str], list[str]]:
    """Properties to set and to remove because a branch was moved, back or on, to where it stands in ``metadata``.

    ``users`` wrote what it gained: it knows from now on what they wrote, whatever expires.
    """
    to_set, to_remove = _after_rollback(metadata, branch=branch, table=table)
    head = _head(metadata, branch)
    stored = stored_ledger(metadata.properties, branch=branch, table=table)
    for user in users:
        ledger = read_ledger(metadata, branch=branch, head=head, commit_user=user, table=table)
        entry = ledger.entries.get(user)
        if entry is not None and entry != stored.entries.get(user):
            to_set[ledger_key(branch, user)] = _encoded(entry, metadata)
    return to_set, [key for key in to_remove if key not in to_set]


def _after_rollback(metadata: TableMetadata, *, branch: str, table: str) -> tuple[dict[str, str], list[str]]:
    """Properties to set and to remove because the branch was rolled back below what they tell of.

    While the snapshots are there, they show it. They may expire, and what was rolled back would pass for expired.
    """
    stored = stored_ledger(metadata.properties, branch=branch, table=table).entries
    head = _head(metadata, branch)
    # The last writer stands at the head; for one writer alone nothing has to be looked up.
    others = {entry.snapshot_id for entry in stored.values()} - ({head.snapshot_id} if head is not None else set())
    there = standing(metadata, others)
    aside = there - set(ancestor_ids(metadata, head)) if there else set()
    beside = {user for user, entry in stored.items() if entry.snapshot_id in aside}
    return _branch_after(metadata, branch, sorted(beside), frozenset(), table=table) if beside else ({}, [])


def _branch_after(
    metadata: TableMetadata, branch: str, users: Iterable[str], snapshot_ids: Set[int], *, table: str
) -> tuple[dict[str, str], list[str]]:
    to_set: dict[str, str] = {}
    to_remove: list[str] = []
    head = _head(metadata, branch)
    stored = stored_ledger(metadata.properties, branch=branch, table=table)
    for user in users:
        ledger = read_ledger(metadata, branch=branch, head=head, commit_user=user, table=table)
        entry, stored_entry, key = ledger.entries.get(user), stored.entries.get(user), ledger_key(branch, user)
        if entry is not None:
            if (text := _text_below(entry, stored_entry, head, snapshot_ids, metadata)) is not None:
                to_set[key] = text
        elif stored_entry is not None and ledger.complete and not _has_other_branches(metadata, branch):
            to_remove.append(key)
        elif stored_entry is not None:
            to_set[key] = _encoded(stored_entry, metadata, number=_ROLLED_BACK)
    return to_set, to_remove


def _has_other_branches(metadata: TableMetadata, branch: str) -> bool:
    """Then what was rolled back here may stand there, and is to be remembered for when it has expired."""
    return any(ref.snapshot_ref_type == SnapshotRefType.BRANCH for name, ref in metadata.refs.items() if name != branch)


def _head(metadata: TableMetadata, branch: str) -> Snapshot | None:
    ref = metadata.refs.get(branch)
    return metadata.current_snapshot() if ref is None else metadata.snapshot_by_id(ref.snapshot_id)


def _text_below(
    entry: LedgerEntry,
    stored_entry: LedgerEntry | None,
    head: Snapshot | None,
    snapshot_ids: Set[int],
    metadata: TableMetadata,
) -> str | None:
    """What the property has to say of an entry that its line loses sight of; None where it says so, or need not."""
    snapshot = metadata.snapshot_by_id(entry.snapshot_id)
    if snapshot is None:
        # Out of sight already, and believed because of what the property says.
        return None
    is_gone = entry.snapshot_id in snapshot_ids
    for ancestor in ancestors(metadata, head):
        if ancestor.snapshot_id in snapshot_ids:
            break
        if ancestor.snapshot_id == entry.snapshot_id:
            # In sight. A property that tells of another batch was rolled back, and would be believed once all expired.
            return None if stored_entry in (None, entry) else _encoded(entry, metadata)
    if is_gone:
        return None if entry == stored_entry else _encoded(entry, metadata)
    # A tag keeps the snapshot, and what led to it goes: it would look like one that was rolled back.
    return _encoded(entry, metadata, number=-(snapshot.sequence_number or 0))


def ledger_key(branch: str, user: str) -> str:
    return f"{USERS_OF}{_quoted(branch)}.{_quoted(user)}"


def is_untouched(before: Mapping[str, str], now: Mapping[str, str], *, branch: str, user: str) -> bool:
    """Whether the properties show that no batch of the user came in: each replaces the line of the one before."""
    key = ledger_key(branch, user)
    if key in before:
        return now.get(key) == before[key]
    return key not in now and _never_left(now.get(SILENT_USERS_OF + _quoted(branch)), user)


def _never_left(silent: str | None, user: str) -> bool:
    try:
        users = SilentUsers.from_text(silent)
    except ValueError:
        return False
    return users.claim_of(user) is None and not users.forgot_some


def watermark_on(metadata: TableMetadata, head: Snapshot | None, *, branch: str) -> int | None:
    """How far the newest snapshot says that event time has come, of those that say so."""
    # Whatever snapshot first said so set a property of its branch, too.
    was_ever_said = any(key.startswith(WATERMARK_OF) for key in metadata.properties)
    line = ancestors(metadata, head) if was_ever_said and mentions(metadata, WATERMARK) else iter(())
    for snapshot in line:
        if (watermark_ms := watermark_of(properties_of(snapshot))) is not None:
            return watermark_ms
    stored, _, number = metadata.properties.get(watermark_key(branch), "").partition("@")
    if _watermark(stored) is None:
        return None
    # Expired from below the line, not rolled back: only the property still knows.
    lowest = lowest_number(metadata, head)
    return _watermark(stored) if lowest is None or (_watermark(number) or 0) < lowest else None


def watermark_of(properties: Mapping[str, str]) -> int | None:
    return _watermark(properties.get(WATERMARK))


def watermark_property(watermark_ms: int, *, branch: str, metadata: TableMetadata) -> dict[str, str]:
    """With the sequence number of the snapshot that says it, which tells where that stood once it has expired."""
    return {watermark_key(branch): f"{watermark_ms}@{metadata.next_sequence_number()}"}


def watermark_key(branch: str) -> str:
    return WATERMARK_OF + _quoted(branch)


def _watermark(text: str | None) -> int | None:
    """A property that was damaged says nothing."""
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None


def properties_of(snapshot: Snapshot) -> dict[str, str]:
    return {} if snapshot.summary is None else dict(snapshot.summary.additional_properties)


def _tried_anywhere(properties: Mapping[str, str], user: str, *, table: str) -> list[Claim]:
    """What the lines of all branches say of a user, the silent ones among them."""
    ending = f".{_quoted(user)}"
    entries = [
        _entry(text, key=key, table=table)
        for key, text in properties.items()
        if key.startswith(USERS_OF) and key.endswith(ending)
    ]
    silent = [branch.claim_of(user) for branch in _all_silent(properties, table=table)]
    return [
        *(Claim(user, entry.highest, entry.query_id, entry.commit_id or "") for entry in entries),
        *(claim for claim in silent if claim is not None),
    ]


def _all_silent(properties: Mapping[str, str], *, table: str) -> list[SilentUsers]:
    return [_silent(properties, key, table=table) for key in properties if key.startswith(SILENT_USERS_OF)]


def _silent(properties: Mapping[str, str], key: str, *, table: str) -> SilentUsers:
    try:
        return SilentUsers.from_text(properties.get(key))
    except ValueError as error:
        raise _unreadable(key, table, error) from error


def _user(key: str, prefix: str, *, table: str) -> str:
    user = unquote(key.removeprefix(prefix))
    if prefix + _quoted(user) != key:
        raise CorruptTableError(
            f"The table property {key} of {table} is no ledger line of ours: its name is spelt otherwise. Nothing was "
            "committed. Remove it, or name it as it was."
        )
    return user


def _newest_of(line: Iterable[Snapshot], user: str, own: LedgerEntry | None) -> LedgerEntry | None:
    """The user's newest batch on a line. A job's identifiers go on from the last snapshot that has them."""
    entries: Iterator[LedgerEntry] = (e for snapshot in line if (e := _written_by(snapshot, user, own)))
    newest = next(entries, None)
    if newest is not None and newest.commit_id is None and own is not None and own.outbox is not None:
        # Another engine signed with the name. What is owed to other tables is owed all the same.
        entries, ahead = tee(entries)
        newest = replace(newest, outbox=next((entry.outbox for entry in ahead if entry.commit_id is not None), None))
    if newest is None or newest.identifiers is not None or own is None or own.identifiers is None:
        return newest
    # Another engine signed with the name of our job.
    passed = [newest]
    for entry in entries:
        if entry.identifiers is not None:
            identifiers = entry.identifiers
            break
        passed.append(entry)
    else:
        identifiers = Identifiers(floor=max(entry.batch_id for entry in passed))
    for entry in passed:
        identifiers = identifiers.adding(entry.batch_id, at_ms=entry.at_ms)
    return replace(newest, identifiers=identifiers)


def _written_by(snapshot: Snapshot, user: str, own: LedgerEntry | None) -> LedgerEntry | None:
    if own is not None and snapshot.snapshot_id == own.snapshot_id:
        return own
    properties = properties_of(snapshot)
    batch = properties.get(BATCH_ID, "")
    if properties.get(COMMIT_USER) != user or not batch.isdecimal():
        return None
    return LedgerEntry(
        batch_id=int(batch),
        query_id=properties.get(QUERY_ID),
        commit_id=properties.get(COMMIT_ID),
        snapshot_id=snapshot.snapshot_id,
        at_ms=snapshot.timestamp_ms,
        journal=properties.get(LISTENERS),
        identifiers=_stated(snapshot, IDENTIFIERS, Identifiers.from_fields),
        outbox=_stated(snapshot, OUTBOX, Outbox.from_fields),
    )


def _stated(snapshot: Snapshot, key: str, read: Callable[[Any], T]) -> T | None:
    text = properties_of(snapshot).get(key)
    try:
        return None if text is None else read(read_json(text))
    except (ValueError, TypeError) as error:
        raise CorruptTableError(
            f"Cannot read {key} in the summary of snapshot {snapshot.snapshot_id} ({error}). Nothing was "
            "committed. If a newer paimon-sink wrote it, use that; else roll the table back to the snapshot before it."
        ) from error


def _quoted(text: str) -> str:
    return quote(text, safe="").replace(".", "%2E")


def _encoded(entry: LedgerEntry, metadata: TableMetadata, *, number: int | None = None) -> str:
    """With the sequence number of its snapshot, which says where it stood once it has expired."""
    if number is None:
        snapshot = metadata.snapshot_by_id(entry.snapshot_id)
        # One that is not there is the next.
        number = metadata.next_sequence_number() if snapshot is None else snapshot.sequence_number
    fields = [entry.batch_id, entry.query_id, entry.commit_id, entry.snapshot_id, entry.at_ms, number]
    return json.dumps([*fields, *extras_of(entry)], separators=(",", ":"))


def _sequence_number(text: str) -> int:
    return int(read_json(text)[5])


def _entry(text: str, *, key: str, table: str) -> LedgerEntry:
    """Read an entry, or refuse it: guessing here would double or lose a batch."""
    try:
        fields: Any = read_json(text)
        batch_id, query_id, commit_id, snapshot_id, at_ms, number, *extras = fields
        texts = (value is None or is_text(value) for value in (query_id, commit_id))
        if not (all(texts) and all(map(is_whole, (batch_id, snapshot_id, at_ms, number)))):
            raise ValueError(f"it reads {reprlib.repr(fields)}")
        return with_extras(LedgerEntry(batch_id, query_id, commit_id, snapshot_id, at_ms), extras)
    except (ValueError, TypeError) as error:
        raise _unreadable(key, table, error) from error


def _unreadable(key: str, table: str, error: Exception) -> CorruptTableError:
    return CorruptTableError(
        f"Cannot read the ledger in the table property {key} of {table} ({error}). Nothing was committed. If a newer "
        "paimon-sink wrote it, use that; else set it right, or remove it if its user is gone."
    )
