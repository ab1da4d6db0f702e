"""Paimon's snapshot files: find the newest, read the ledger out of it, write the next one.

The ledger is one snapshot property, carried forward in each of our snapshots. Snapshots of other engines do not have
it; they are walked over, and their own commit user and identifier are believed.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pypaimon.common.json_util import JSON
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot

from paimon_sink.core.errors import CorruptTableError
from paimon_sink.core.properties import BASE, COMMIT_ID, LEDGER, NEWEST_FOREIGN, QUERY_ID
from paimon_sink.core.strict_json import is_text, is_whole, read_json
from paimon_sink.core.together import for_each, together
from paimon_sink.formats.ledger import Ledger, LedgerEntry, extras_of, with_extras
from paimon_sink.formats.paimon.numbered import number, numbers
from paimon_sink.formats.values import SnapshotInfo, SnapshotKind
from paimon_sink.storage.store import Store

_NO_BASE = "none"
_NO_WATERMARK = -(2**63)
_LEDGER_VERSION = 1
_EFFECTS = {
    "APPEND": SnapshotKind.APPEND,
    "OVERWRITE": SnapshotKind.OVERWRITE,
    "COMPACT": SnapshotKind.REWRITE,
}
"""By Paimon's commit kind. Others, such as ANALYZE, change no rows."""


class Guess:
    """What LATEST said when the table was opened, for the first who asks for the newest: that spares a round trip.

    It may be wrong by then. So may LATEST itself: the files decide.
    """

    def __init__(self) -> None:
        self._snapshot_id: int | None = None

    def keep(self, snapshot_id: int | None) -> None:
        self._snapshot_id = snapshot_id

    def take(self) -> int | None:
        """Once: whoever looks again wants to see what changed."""
        snapshot_id, self._snapshot_id = self._snapshot_id, None
        return snapshot_id


@dataclass(frozen=True)
class SnapshotFiles:
    """The ``snapshot/`` directory of a table."""

    store: Store
    location: str
    guess: Guess = field(default_factory=Guess, compare=False, kw_only=True)

    compares_base = False
    """Whether publishing compares with the base itself, so that nobody has to look afterwards."""

    def path(self, snapshot_id: int) -> str:
        return self.store.join(self.location, "snapshot", f"snapshot-{snapshot_id}")

    def read(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot, or None when there is no such file. An unreadable one is an error that names it."""
        snapshot = self.read_file(self.path(snapshot_id))
        if snapshot is not None and snapshot.id != snapshot_id:
            raise CorruptTableError(
                f"Cannot read the snapshot {self.path(snapshot_id)} (it calls itself {snapshot.id}). Nothing was "
                "committed. Restore the file, or roll the table back to the snapshot before it."
            )
        return snapshot

    def read_file(self, path: str) -> Snapshot | None:
        """The snapshot in any file that holds one: a tag, or one of a changelog."""
        try:
            raw = self.store.read(path)
        except FileNotFoundError:
            return None
        try:
            read_json(raw)
            return _checked(JSON.from_json(raw.decode("utf-8"), Snapshot))
        except Exception as error:
            raise CorruptTableError(
                f"Cannot read the snapshot {path} ({error!r}). Nothing was committed. Restore the file, or roll the "
                "table back to the snapshot before it."
            ) from error

    def newest(self) -> Snapshot | None:
        """The newest snapshot. LATEST is only a hint, and a listing may lag: both are checked against the files."""
        guessed = self.guess.take()
        return (None if guessed is None else self._if_newest(guessed)) or self._newest_by_hint()

    def _newest_by_hint(self) -> Snapshot | None:
        hinted = self.hint()
        standing = None if hinted is None else self._if_newest(hinted)
        if standing is not None:
            return standing
        newest = self._read(max(self.ids(), default=None))
        while newest is not None and (following := self._read(newest.id + 1)) is not None:
            newest = following
        return newest

    def _if_newest(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot, if it is there and the next one is not."""
        # From afar beside each other: should the next one come just after it was looked for, it came after this look.
        standing, following = self.read_all([snapshot_id, snapshot_id + 1])
        return standing if following is None else None

    def read_all(self, snapshot_ids: Iterable[int]) -> list[Snapshot | None]:
        """Each of them, as :meth:`read` does it."""
        return for_each(self.read, snapshot_ids, far=self.store.is_far)

    def earliest(self) -> Snapshot | None:
        """The oldest snapshot. EARLIEST is only a hint, and a table that was never expired begins with 1."""
        hinted, first = together(
            self.earliest_hint, lambda: self.read(1) if self.store.is_far else None, far=self.store.is_far
        )
        guess = hinted or 1
        if guess == 1 and first is not None:
            return first
        guessed, below = together(
            lambda: self.read(guess), lambda: self.read(guess - 1) if guess > 1 else None, far=self.store.is_far
        )
        if guessed is not None and below is None:
            return guessed
        return next((snapshot for snapshot in map(self.read, self.ids()) if snapshot is not None), None)

    def ids(self) -> list[int]:
        return numbers(self.store, self.store.join(self.location, "snapshot"), "snapshot-")

    def publish(self, snapshot: Snapshot, *, base: Snapshot | None, entries: Sequence[ManifestEntry]) -> bool:
        """Put the snapshot unless one of that id is there. ``base`` and ``entries`` are for catalogs that compare."""
        return self.store.put_if_absent(self.path(snapshot.id), JSON.to_json(snapshot, indent=2).encode("utf-8"))

    def write_hint(self, snapshot_id: int) -> None:
        """Tell readers where to start. On a local disk they list the snapshots when a power cut took it."""
        self.store.write_cache(self._hint_path("LATEST"), str(snapshot_id).encode("utf-8"))

    def ledger_in(self, snapshot: Snapshot) -> Ledger | None:
        """The ledger a snapshot of ours carries, together with the snapshot itself; other engines' ones have none."""
        stated = self.stated_ledger(snapshot)
        return None if stated is None else _agreed(stated, snapshot)

    def stated_ledger(self, snapshot: Snapshot) -> Ledger | None:
        """The ledger to the letter, for those who check it."""
        text = (snapshot.properties or {}).get(LEDGER)
        return None if text is None else decode_ledger(text, source=self.path(snapshot.id))

    def write_earliest_hint(self, snapshot_id: int) -> None:
        """Tell readers where history begins."""
        self.store.write(self._hint_path("EARLIEST"), str(snapshot_id).encode("utf-8"))

    def _hint_path(self, name: str) -> str:
        return self.store.join(self.location, "snapshot", name)

    def hint(self) -> int | None:
        """What LATEST says, which need not be so."""
        return self._read_hint("LATEST")

    def earliest_hint(self) -> int | None:
        """What EARLIEST says, which need not be so."""
        return self._read_hint("EARLIEST")

    def _read_hint(self, name: str) -> int | None:
        try:
            text = self.store.read(self._hint_path(name)).decode("utf-8", "replace").strip()
        except FileNotFoundError:
            return None
        return number(text)

    def _read(self, snapshot_id: int | None) -> Snapshot | None:
        return None if snapshot_id is None else self.read(snapshot_id)


@dataclass(frozen=True, kw_only=True)
class PaimonSnapshotInfo(SnapshotInfo):
    """A snapshot in the words of the contract, with the snapshot as it was read."""

    snapshot: Snapshot


def snapshot_info(snapshot: Snapshot) -> PaimonSnapshotInfo:
    """The snapshot in the words of the contract."""
    properties = snapshot.properties or {}
    is_batch_write = snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
    return PaimonSnapshotInfo(
        snapshot_id=snapshot.id,
        kind=snapshot.commit_kind.lower(),
        effect=_EFFECTS.get(snapshot.commit_kind.upper(), SnapshotKind.OTHER),
        commit_user=snapshot.commit_user,
        batch_id=None if is_batch_write else snapshot.commit_identifier,
        query_id=properties.get(QUERY_ID),
        commit_id=properties.get(COMMIT_ID),
        at_ms=snapshot.time_millis,
        rows=snapshot.total_record_count,
        rows_added=snapshot.delta_record_count,
        properties=properties,
        watermark_ms=watermark_of(snapshot),
        schema_id=snapshot.schema_id,
        snapshot=snapshot,
    )


def watermark_of(snapshot: Snapshot) -> int | None:
    """Every engine carries it forward. Java has a number for none."""
    return None if snapshot.watermark == _NO_WATERMARK else snapshot.watermark


def of_base(base: Snapshot | None) -> dict[str, str]:
    """What a snapshot says of the one that it is built on."""
    return {BASE: _name_of_base(base), NEWEST_FOREIGN: str(newest_foreign(base))}


def is_ours(snapshot: Snapshot) -> bool:
    """A copy of our properties in a snapshot of another engine has another uuid beside it."""
    return snapshot.uuid is not None and (snapshot.properties or {}).get(COMMIT_ID) == snapshot.uuid


def newest_foreign(snapshot: Snapshot | None) -> int:
    """The newest of this snapshot and those that it goes back to that is not known to be ours. 0: there is none."""
    if snapshot is None:
        return 0
    stated = (snapshot.properties or {}).get(NEWEST_FOREIGN, "") if is_ours(snapshot) else ""
    return int(stated) if stated.isascii() and stated.isdigit() else int(snapshot.id)


def _name_of_base(base: Snapshot | None) -> str:
    """What tells a base from every other: its own list of changes, which each commit writes anew."""
    return _NO_BASE if base is None else str(base.delta_manifest_list)


def is_stated_base(above: Snapshot, below: Snapshot) -> bool | None:
    """Whether a snapshot says that it was built on the other. None where it does not say: not ours, or of 0.1.0."""
    properties = above.properties or {}
    return properties[BASE] == _name_of_base(below) if is_ours(above) and BASE in properties else None


def stated_base(snapshot: Snapshot) -> str | None:
    """The list of changes of the snapshot that it was built on. None where it does not say, or was built on none."""
    properties = snapshot.properties or {}
    base = properties.get(BASE) if is_ours(snapshot) else None
    return None if base == _NO_BASE else base


def encode_ledger(ledger: Ledger) -> str:
    body: dict[str, Any] = {
        "version": _LEDGER_VERSION,
        "complete": ledger.complete,
        "users": {
            user: [
                *(entry.batch_id, entry.query_id, entry.commit_id, entry.snapshot_id, entry.at_ms),
                *extras_of(entry),
            ]
            for user, entry in ledger.entries.items()
        },
    }
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def decode_ledger(text: str, *, source: str) -> Ledger:
    """Read a ledger, or refuse it: guessing here would double or lose a batch."""
    try:
        body = read_json(text)
        if type(body["version"]) is not int or body["version"] != _LEDGER_VERSION:
            raise ValueError(
                f"its version is {reprlib.repr(body['version'])}, this paimon-sink knows {_LEDGER_VERSION}"
            )
        if type(body["complete"]) is not bool:
            raise ValueError(f"whether it is complete reads {reprlib.repr(body['complete'])}")
        return Ledger({user: _entry(fields) for user, fields in body["users"].items()}, body["complete"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptTableError(
            f"Cannot read the ledger in {source} ({error}). Nothing was committed. If a newer paimon-sink wrote it, "
            "use that; else restore the file or roll the table back to the snapshot before it."
        ) from error


def _entry(fields: Any) -> LedgerEntry:
    batch_id, query_id, commit_id, snapshot_id, at_ms, *extras = fields
    texts = (text is None or is_text(text) for text in (query_id, commit_id))
    if not (all(texts) and all(map(is_whole, (batch_id, snapshot_id, at_ms)))):
        raise ValueError(f"an entry reads {reprlib.repr(fields)}")
    return with_extras(LedgerEntry(batch_id, query_id, commit_id, snapshot_id, at_ms), extras)


def _agreed(ledger: Ledger, snapshot: Snapshot) -> Ledger:
    """The ledger, if it says of its own snapshot what that says itself: one of them decides which files may go."""
    own = snapshot_info(snapshot)
    if own.batch_id is None or own.commit_user is None:
        return ledger
    of_snapshot = LedgerEntry(own.batch_id, own.query_id, own.commit_id, own.snapshot_id, own.at_ms)
    entry = ledger.entries.get(own.commit_user, of_snapshot)
    if (entry.batch_id, entry.snapshot_id) != (of_snapshot.batch_id, of_snapshot.snapshot_id):
        raise CorruptTableError(
            f"The ledger in snapshot {snapshot.id} says that its user wrote batch {entry.batch_id} last, the snapshot "
            f"itself says batch {of_snapshot.batch_id}. Nothing was committed. Restore the file "
            f"snapshot-{snapshot.id}, or roll the table back to the snapshot before it."
        )
    return Ledger({**ledger.entries, own.commit_user: entry}, ledger.complete)


def _checked(snapshot: Snapshot) -> Snapshot:
    """The snapshot, if its types are right and its names stay in their directory. pypaimon takes any JSON."""
    for name, is_right, required in _CHECKS:
        value = getattr(snapshot, name)
        if not (is_right(value) if required or value is not None else True):
            raise ValueError(f"{name} reads {reprlib.repr(value)}")
    return snapshot


def _is_plain_name(value: object) -> bool:
    return is_text(value) and str(value) not in ("", ".", "..") and not set(str(value)) & {"/", "\\", "\0"}


def _is_properties(value: object) -> bool:
    return isinstance(value, dict) and all(map(is_text, value)) and all(map(is_text, value.values()))


_CHECKS: list[tuple[str, Callable[[object], bool], bool]] = [
    ("id", is_whole, True),
    ("schema_id", is_whole, True),
    ("base_manifest_list", _is_plain_name, True),
    ("delta_manifest_list", _is_plain_name, True),
    ("commit_user", is_text, True),
    ("commit_identifier", is_whole, True),
    ("commit_kind", is_text, True),
    ("time_millis", is_whole, True),
    ("base_manifest_list_size", is_whole, False),
    ("delta_manifest_list_size", is_whole, False),
    ("total_record_count", is_whole, False),
    ("delta_record_count", is_whole, False),
    ("changelog_manifest_list", _is_plain_name, False),
    ("index_manifest", _is_plain_name, False),
    ("statistics", _is_plain_name, False),
    ("watermark", is_whole, False),
    ("uuid", is_text, False),
    ("properties", _is_properties, False),
]
"""Field, check, and whether it must be there: snapshots of old versions lack some."""
