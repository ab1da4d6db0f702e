"""Consumers of an Iceberg table: a tag, which keeps the snapshot itself from every engine, and a property beside it.

The property says whose it is and when it was written. By it our own expiry also keeps what came after the tagged
snapshot; other engines keep that one alone. Each change is a commit of the catalog.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyiceberg.table import Table as NativeTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

from paimon_sink.core.clock import Backoff, SystemClock
from paimon_sink.core.errors import CommitConflictError, CorruptTableError
from paimon_sink.core.properties import CONSUMER_OF
from paimon_sink.core.strict_json import as_count, as_text, read_json
from paimon_sink.formats.iceberg.catalogs import CatalogConflictError
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.kept import ancestors
from paimon_sink.formats.lineage import Consumer, Consumers

_TAG = "pwc-consumer-"
_ATTEMPTS = 20
_FIVE_MINUTES_MS = 5 * 60 * 1000


def consumers_in(metadata: TableMetadata) -> list[Consumer]:
    """All that the metadata names. Raises ``CorruptTableError`` at one that cannot be read."""
    names = sorted(key.removeprefix(CONSUMER_OF) for key in metadata.properties if key.startswith(CONSUMER_OF))
    return [_consumer(name, metadata.properties[f"{CONSUMER_OF}{name}"]) for name in names]


def consumer_tag(consumer: Consumer) -> str:
    return f"{_TAG}{consumer.name}"


def consumer_of(tag: str) -> str | None:
    """The consumer that a tag is of. None: it is anybody's."""
    return tag.removeprefix(_TAG) if tag.startswith(_TAG) else None


def needed_in(metadata: TableMetadata, *, now_ms: int | None = None) -> set[int]:
    """The snapshots that consumers need: the one that each has come to, and all that were built on it.

    Without those that are dead by then.
    """
    needed: set[int] = set()
    consumers = consumers_in(metadata)
    held = {each.snapshot_id for each in consumers if now_ms is None or not each.is_dead(now_ms)}
    if not held:
        return needed
    for ref in metadata.refs.values():
        if ref.snapshot_ref_type == SnapshotRefType.BRANCH:
            line = [each.snapshot_id for each in ancestors(metadata, metadata.snapshot_by_id(ref.snapshot_id))]
            oldest = max((place for place, number in enumerate(line) if number in held), default=-1)
            needed |= set(line[: oldest + 1])
    return needed


class IcebergConsumers(Consumers):
    moves_every_ms = _FIVE_MINUTES_MS

    def __init__(self, handle: IcebergHandle) -> None:
        self._handle = handle
        self._clock = SystemClock()
        self._backoff = Backoff()

    def all(self) -> list[Consumer]:
        return consumers_in(self._handle.load().metadata)

    def find(self, name: str) -> Consumer | None:
        text = self._handle.load().metadata.properties.get(f"{CONSUMER_OF}{name}")
        try:
            return None if text is None else _consumer(name, text)
        except CorruptTableError:
            return None

    def put(self, consumer: Consumer) -> bool:
        tag = {"ref-name": f"{_TAG}{consumer.name}", "type": SnapshotRefType.TAG, "snapshot-id": consumer.snapshot_id}
        body = {
            "snapshot": str(consumer.snapshot_id),
            "key": consumer.key,
            "atMs": consumer.at_ms,
            "keepMs": consumer.keep_ms,
        }
        updates = (
            SetSnapshotRefUpdate.model_validate(tag),
            SetPropertiesUpdate(updates={f"{CONSUMER_OF}{consumer.name}": json.dumps(body)}),
        )
        for attempt in range(1, _ATTEMPTS + 1):
            native = self._load()
            if native.metadata.snapshot_by_id(consumer.snapshot_id) is None:
                return False
            if self._commit(native, consumer.name, updates):
                return True
            self._backoff.wait(self._clock, attempt)
        raise self._overtaken(consumer.name)

    def drop(self, name: str) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            native = self._load()
            updates: list[TableUpdate] = []
            if f"{_TAG}{name}" in native.metadata.refs:
                updates.append(RemoveSnapshotRefUpdate.model_validate({"ref-name": f"{_TAG}{name}"}))
            if f"{CONSUMER_OF}{name}" in native.metadata.properties:
                updates.append(RemovePropertiesUpdate(removals=[f"{CONSUMER_OF}{name}"]))
            if not updates or self._commit(native, name, updates):
                return
            self._backoff.wait(self._clock, attempt)
        raise self._overtaken(name)

    def _load(self) -> NativeTable:
        # What the last commit answered does not know of consumers.
        self._handle.last_answer.forget()
        return self._handle.load()

    def _commit(self, native: NativeTable, name: str, updates: Sequence[TableUpdate]) -> bool:
        """Whether it is in. If not, others were first."""
        ref = native.metadata.refs.get(f"{_TAG}{name}")
        stands_at = None if ref is None else ref.snapshot_id
        as_it_was = AssertRefSnapshotId.model_validate({"ref": f"{_TAG}{name}", "snapshot-id": stands_at})
        tables = self._handle.tables
        try:
            after = tables.commit(native, (AssertTableUUID(uuid=native.metadata.table_uuid), as_it_was), tuple(updates))
        except CatalogConflictError as conflict:
            # May go: the catalog does not point to them, and did not.
            self._handle.delete(tables.unused(conflict))
            return False
        self._handle.delete_old_metadata(native.metadata, after)
        return True

    def _overtaken(self, name: str) -> CommitConflictError:
        return CommitConflictError(
            f"Could not write the consumer {name!r} of {self._handle.label}: other writers won all {_ATTEMPTS} "
            "attempts."
        )


def _consumer(name: str, text: str) -> Consumer:
    try:
        body = read_json(text)
        return Consumer(
            name,
            int(as_text(body["snapshot"])),
            as_text(body["key"]),
            as_count(body["atMs"]),
            as_count(body["keepMs"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptTableError(
            f"Cannot read the consumer {name} in the table's property {CONSUMER_OF}{name} ({error!r}), so nobody knows "
            "what it still needs. No snapshot was removed. Remove the consumer: pwc expire … --consumer"
        ) from error
