"""Whether the rows of each routed batch add up: those it was sent are those in the tables and in the quarantine, and
those that are still to be delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from paimon_sink.core.errors import PwcError, TableNotFoundError
from paimon_sink.core.messages import RoutedFiles
from paimon_sink.core.options import Options
from paimon_sink.core.outbox import Outbox
from paimon_sink.core.properties import OUTBOX_OF, QUARANTINED, ROUTED, ROWS, ROWS_SENT
from paimon_sink.formats.audit import Problem, ProblemKind
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.route.deliver import last_taken, receiver_of
from paimon_sink.route.manifest import Manifest, is_manifest, read_manifest
from paimon_sink.route.tables import Tables

__all__ = ["RouteSums"]


@dataclass(frozen=True)
class RouteSums:
    """Adds up the batches of a home that is known by these options."""

    options: Options

    def __call__(self, home: Table, snapshots: Sequence[SnapshotInfo]) -> Iterator[Problem]:
        """A line for each batch that does not add up, or that a table does not have and nobody carries."""
        opened: dict[str, _Receiver] = {}
        carried = _carried(home)
        for snapshot in snapshots:
            if ROUTED not in snapshot.properties:
                continue
            where = f"snapshot {snapshot.snapshot_id}"
            yield from _figures(where, snapshot.properties)
            if self.options.table.name is None:
                # Which no table beside it can be found by.
                continue
            try:
                number, manifest = _owed(home, snapshot)
            except (PwcError, FileNotFoundError) as error:
                lost = f"has rows for other tables, and which goes where cannot be read: {error}"
                yield Problem(ProblemKind.OWED, where, lost)
                continue
            if str(manifest.rows) != snapshot.properties[ROUTED]:
                what = f"says {snapshot.properties[ROUTED]} rows chose their tables, its manifest has {manifest.rows:,}"
                yield Problem(ProblemKind.WRONG_COUNT, where, what)
            for part in manifest.tables:
                if part.table not in opened:
                    opened[part.table] = _Receiver.of(self.options, part.table)
                is_carried = (snapshot.commit_id, part.table) in carried
                complaint = opened[part.table].complaint(home, snapshot, number, part, is_carried=is_carried)
                if complaint is not None:
                    yield Problem(ProblemKind.OWED, where, complaint)
        for name in sorted(opened):
            yield from opened[name].wrong_counts()


def _carried(home: Table) -> set[tuple[str | None, str]]:
    """What is carried for which table, by the commit that decided it."""
    found: set[tuple[str | None, str]] = set()
    for entry in home.commits.load_head(commit_user="").ledger.entries.values():
        for part in () if entry.outbox is None else entry.outbox.parts:
            if part.carried is not None:
                found |= {(part.carried.commit_id, table) for table in part.carried.tables}
            elif entry.outbox is not None and entry.outbox.widest and is_manifest(home, part.file):
                # Of the last batch of a regional stream, any table may lack it.
                with suppress(PwcError, FileNotFoundError):
                    found |= {(entry.commit_id, each.table) for each in read_manifest(home, part.file).tables}
    return found


def _figures(where: str, properties: Mapping[str, str]) -> Iterator[Problem]:
    texts = [properties.get(key, "0") for key in (ROWS_SENT, ROWS, ROUTED, QUARANTINED)]
    if not all(text.isascii() and text.isdigit() for text in texts):
        yield Problem(ProblemKind.WRONG_COUNT, where, "has figures of routed rows that cannot be read")
        return
    sent, own, routed, bad = map(int, texts)
    if sent != own + routed + bad:
        what = f"was sent {sent:,} rows, and says {routed:,} went to tables and {bad:,} to the quarantine"
        yield Problem(ProblemKind.WRONG_COUNT, where, what)


def _owed(home: Table, snapshot: SnapshotInfo) -> tuple[int, Manifest]:
    user = snapshot.commit_user or ""
    entry = home.commits.ledger_at(snapshot.snapshot_id, commit_user=user).entries.get(user)
    outbox: Outbox | None = None if entry is None else entry.outbox
    parts = () if outbox is None else outbox.parts
    files = [part.file for part in parts if part.carried is None and is_manifest(home, part.file)]
    if outbox is None or len(files) != 1:
        raise FileNotFoundError("its ledger names no manifest")
    return outbox.number, read_manifest(home, files[0])


@dataclass(frozen=True)
class _Receiver:
    """A table, and what it got of which commit. Several that were carried are one snapshot."""

    name: str
    table: Table | None
    by_commit: Mapping[str, SnapshotInfo]
    expected: dict[int, dict[str, int]] = field(default_factory=dict)
    """By snapshot: the rows of each commit in it that the home still knows."""

    @classmethod
    def of(cls, options: Options, name: str) -> _Receiver:
        try:
            table = Tables(options).existing(name)
        except TableNotFoundError:
            return cls(name, None, {})
        history = table.upkeep.history()
        return cls(name, table, {each: info for info in history for each in _commits_in(info)})

    def complaint(
        self, home: Table, snapshot: SnapshotInfo, number: int, part: RoutedFiles, *, is_carried: bool
    ) -> str | None:
        if self.table is not None and self.table.identity != part.table_identity:
            # It was dropped, and what it had went with it.
            return None
        found = self.by_commit.get(snapshot.commit_id or "")
        if found is not None:
            self.expected.setdefault(found.snapshot_id, {})[snapshot.commit_id or ""] = part.rows
            return None
        if self.table is not None:
            # Its snapshot there has expired, or it never came.
            if last_taken(self.table, receiver_of(home, snapshot.commit_user or "")) >= number:
                return None
        elif not _is_newest(home, snapshot):
            # It was delivered before the next one was put, and the table was dropped since.
            return None
        if is_carried:
            return None
        return (
            f"has {part.rows:,} rows that are not in {self.name}. They are kept: restart the query, or run the job "
            "again, or pwc deliver, and they are brought there"
        )

    def wrong_counts(self) -> Iterator[Problem]:
        """Snapshots with other rows than all that is in them had."""
        for info in {info.snapshot_id: info for info in self.by_commit.values()}.values():
            known = self.expected.get(info.snapshot_id, {})
            if known.keys() == set(_commits_in(info)) and info.rows_added != sum(known.values()):
                what = f"was to bring {sum(known.values()):,} rows, and brought {info.rows_added or 0:,}"
                yield Problem(ProblemKind.WRONG_COUNT, f"snapshot {info.snapshot_id} of {self.name}", what)


def _commits_in(info: SnapshotInfo) -> list[str]:
    return [each for each in info.properties.get(OUTBOX_OF, "").split(",") if each]


def _is_newest(home: Table, snapshot: SnapshotInfo) -> bool:
    """Whether it is the last batch of its user, which alone may not be delivered yet."""
    user = snapshot.commit_user or ""
    entry = home.commits.load_head(commit_user=user).ledger.entries.get(user)
    return entry is not None and entry.commit_id == snapshot.commit_id
