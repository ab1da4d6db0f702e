"""The batches of a table in figures: what each brought, what it cost, and how long its user was silent before it.

Pure: what a table records of its snapshots goes in, figures come out. What a snapshot does not say is None, never zero.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from paimon_sink.commit.journal import ListenerJournal
from paimon_sink.core.properties import PREFIX, QUARANTINED, ROUTE_USER
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.values import SnapshotInfo, SnapshotKind

_MOST_DIGITS = 18
"""No figure of ours is longer, and int() refuses very long ones."""


@dataclass(frozen=True)
class BatchFigures:
    """One snapshot."""

    snapshot_id: int
    at_ms: int
    commit_user: str | None
    query_id: str | None
    kind: str
    batch_id: int | None
    """None where it is no batch of anybody's stream."""
    rows: int | None
    """Rows written: what it replaced does not count against them, and what it only rewrote is none."""
    files: int | None
    size_bytes: int | None
    small_files: int | None
    """Those of its files below a quarter of the size its tasks aimed at."""
    attempts: int | None
    """Attempts it took, lost ones included."""
    commit_ms: int | None
    """From the first look at the table until the snapshot was ready to be put."""
    lag_ms: int | None
    """Since the batch before of the same user."""
    table_rows: int | None
    """Rows in the table from here on."""
    watermark_ms: int | None = None
    rows_rewritten: int | None = None
    routed: int | None = None
    """Of a home: rows that chose other tables."""
    routed_tables: int | None = None
    carried: int | None = None
    """Of a home: rows of batches before that tables could not be given yet."""
    carried_tables: int | None = None
    routed_by: str | None = None
    """Of a table that rows chose: the commit user of the home who brought them."""
    routed_batch: int | None = None
    """And the batch there."""
    quarantined: int | None = None
    """Bad rows of the batch, which are in another table. None: it had none."""
    quarantined_by_rule: Mapping[str, int] = field(default_factory=dict)
    """Rows that were in the table already, and that it put into other files."""
    is_rewrite: bool = False
    """A compaction. It is no batch: it has no lag, and nobody's lag is counted from it."""

    @property
    def small_share(self) -> float | None:
        return _share(self.small_files, self.files)

    @property
    def rows_of_batch(self) -> int | None:
        """For what is shown batch by batch: a compaction is not one without rows."""
        return None if self.is_rewrite else self.rows

    @property
    def rows_per_s(self) -> float | None:
        """Its rows over the time since the user's snapshot before: what the stream carried meanwhile."""
        return None if self.rows is None or not self.lag_ms else self.rows * 1000 / self.lag_ms

    @property
    def watermark_lag_ms(self) -> int | None:
        """How far event time was behind the clock. Below zero where it is ahead."""
        return None if self.watermark_ms is None else self.at_ms - self.watermark_ms


@dataclass(frozen=True)
class User:
    """One commit user, and the last it did."""

    name: str | None
    """None for snapshots that name nobody."""
    snapshots: int
    """Those that stand. 0: they expired or were rolled back, and only the ledger knows the user."""
    rows: int | None
    """In those that stand, as far as they say."""
    last_batch: int | None
    last_at_ms: int
    last_query_id: str | None


@dataclass(frozen=True)
class ListenerState:
    """One listener of one commit user, as it stands."""

    name: str
    user: str
    owed: int
    """Batches, or several as one event, that it is still to be notified of."""
    failures: int
    """In a row, up to now."""
    error: str | None
    failed_ms: int | None
    """The last time."""
    since_ms: int | None
    """When the first batch was committed that it has not taken. None where it is owed nothing."""

    @property
    def is_failing(self) -> bool:
        return self.failures > 0


@dataclass(frozen=True)
class HistoryTotals:
    """Over all snapshots that stand. A sum is over those that say, and None where none says."""

    snapshots: int
    batches: int
    first_at_ms: int | None
    last_at_ms: int | None
    rows: int | None
    rows_rewritten: int | None
    files: int | None
    size_bytes: int | None
    small_files: int | None
    files_judged: int | None
    """Files of the snapshots that say how many of theirs are small."""
    lost_attempts: int | None
    commit_ms_median: float | None
    commit_ms_most: int | None
    lag_ms_median: float | None
    lag_ms_most: int | None

    @property
    def small_share(self) -> float | None:
        return _share(self.small_files, self.files_judged)


@dataclass(frozen=True)
class History:
    """Oldest first; users by their last snapshot, newest first."""

    entries: tuple[BatchFigures, ...]
    users: tuple[User, ...]
    totals: HistoryTotals
    now_ms: int
    listeners: tuple[ListenerState, ...] = ()
    """Failing ones first."""

    @property
    def since_last_ms(self) -> int | None:
        """None where nothing stands. Not below zero, should the clock of a writer be ahead."""
        return None if self.totals.last_at_ms is None else max(0, self.now_ms - self.totals.last_at_ms)

    @property
    def silent_ms(self) -> int | None:
        """Since the last commit that anybody knows of: also one whose snapshot is not among these, by the ledger."""
        last_commits_ms = [user.last_at_ms for user in self.users]
        return max(0, self.now_ms - max(last_commits_ms)) if last_commits_ms else None

    @property
    def watermark_ms(self) -> int | None:
        """As far as event time is known to have come."""
        return next((entry.watermark_ms for entry in reversed(self.entries) if entry.watermark_ms is not None), None)

    @property
    def watermark_lag_ms(self) -> int | None:
        """How far event time is behind by now: it grows while nothing is committed."""
        return None if self.watermark_ms is None else self.now_ms - self.watermark_ms


def rows_per_s(figures: History, *, over_ms: int) -> float | None:
    """Rows a second over the last so many milliseconds. None where no snapshot says how many rows it wrote."""
    if figures.totals.rows is None or figures.totals.first_at_ms is None:
        return None
    begin_ms = figures.now_ms - over_ms
    rows = _sum(entry.rows for entry in figures.entries if begin_ms < entry.at_ms) or 0
    return rows * 1000 / over_ms


def history(
    snapshots: Sequence[SnapshotInfo],
    *,
    ledger: Mapping[str, LedgerEntry],
    now_ms: int,
    user: str | None = None,
    journals: Mapping[str, ListenerJournal] | None = None,
) -> History:
    """The figures of all snapshots, or of one user's. ``ledger`` was read before the snapshots were."""
    chosen = [info for info in snapshots if user is None or info.commit_user == user]
    entries = tuple(_entries(chosen))
    chosen_ledger = {name: entry for name, entry in ledger.items() if user is None or name == user}
    chosen_journals = {name: journal for name, journal in (journals or {}).items() if user is None or name == user}
    listeners = tuple(sorted(_listeners(entries, chosen_journals), key=_urgency))
    return History(entries, tuple(_users(entries, chosen_ledger)), _totals(entries), now_ms, listeners)


def _entries(snapshots: Iterable[SnapshotInfo]) -> Iterable[BatchFigures]:
    before: dict[str, int] = {}
    for info in snapshots:
        name = info.commit_user
        last_ms = None
        if name is not None and not info.is_rewrite:
            last_ms = before.get(name)
            before[name] = info.at_ms
        yield _entry(info, lag_ms=None if last_ms is None else max(0, info.at_ms - last_ms))


def _entry(info: SnapshotInfo, *, lag_ms: int | None) -> BatchFigures:
    own: dict[str, int | None] = {}
    if info.commit_id is not None:
        own = {key: _number(info.properties.get(f"{PREFIX}{key}")) for key in _OWN}
    # Of others, an append takes nothing out, so what it added is what it wrote. Nobody can say so of the rest.
    others_rows = info.rows_added if info.effect is SnapshotKind.APPEND else None
    rows = _first(own.get("rows"), others_rows)
    return BatchFigures(
        snapshot_id=info.snapshot_id,
        at_ms=info.at_ms,
        commit_user=info.commit_user,
        query_id=info.query_id,
        kind=info.kind,
        batch_id=info.batch_id,
        rows=0 if info.is_rewrite else rows,
        files=_first(own.get("files"), info.files_added),
        size_bytes=_first(own.get("bytes"), info.bytes_added),
        small_files=own.get("small-files"),
        attempts=own.get("attempts"),
        commit_ms=own.get("commit-ms"),
        lag_ms=lag_ms,
        table_rows=info.rows,
        watermark_ms=info.watermark_ms,
        rows_rewritten=rows if info.is_rewrite else None,
        routed=own.get("routed"),
        routed_tables=own.get("routed-tables"),
        carried=own.get("carried"),
        carried_tables=own.get("carried-tables"),
        routed_by=info.properties.get(ROUTE_USER),
        routed_batch=own.get("route-batch"),
        quarantined=own.get("quarantined"),
        quarantined_by_rule=_by_rule(info.properties),
        is_rewrite=info.is_rewrite,
    )


_OWN = (
    "rows",
    "files",
    "bytes",
    "small-files",
    "attempts",
    "commit-ms",
    "quarantined",
    "routed",
    "routed-tables",
    "route-batch",
    "carried",
    "carried-tables",
)
_RULES = f"{QUARANTINED}."


def _by_rule(properties: Mapping[str, str]) -> dict[str, int]:
    rules = {key.removeprefix(_RULES): _number(text) for key, text in properties.items() if key.startswith(_RULES)}
    return {rule: rows for rule, rows in rules.items() if rows is not None}


def _users(entries: Sequence[BatchFigures], ledger: Mapping[str, LedgerEntry]) -> list[User]:
    of_user: dict[str | None, list[BatchFigures]] = {}
    for entry in entries:
        of_user.setdefault(entry.commit_user, []).append(entry)
    users = [_user(name, own) for name, own in of_user.items()]
    users += [
        User(name, 0, None, entry.batch_id, entry.at_ms, entry.query_id)
        for name, entry in ledger.items()
        if name not in of_user
    ]
    return sorted(users, key=lambda user: user.last_at_ms, reverse=True)


def _user(name: str | None, entries: Sequence[BatchFigures]) -> User:
    # Under the same name there may be work that is no batch: compaction, say.
    last = next((entry for entry in reversed(entries) if entry.batch_id is not None), entries[-1])
    rows = _sum(entry.rows for entry in entries)
    return User(name, len(entries), rows, last.batch_id, entries[-1].at_ms, last.query_id)


def _listeners(entries: Sequence[BatchFigures], journals: Mapping[str, ListenerJournal]) -> Iterable[ListenerState]:
    times = {(entry.commit_user, entry.batch_id): entry.at_ms for entry in entries}
    for user, journal in journals.items():
        for name, progress in journal.listeners.items():
            first = next(iter(journal.owed_to(name)), None)
            # An event of several batches has the time of its last one.
            since = None if first is None else times.get((user, first.first_batch_id), first.at_ms)
            yield ListenerState(name, user, progress.owed, progress.failures, progress.error, progress.failed_ms, since)


def _urgency(listener: ListenerState) -> tuple[bool, int, str, str]:
    return (not listener.is_failing, -listener.owed, listener.user, listener.name)


def _totals(entries: Sequence[BatchFigures]) -> HistoryTotals:
    times = [entry.commit_ms for entry in entries if entry.commit_ms is not None]
    lags = [entry.lag_ms for entry in entries if entry.lag_ms is not None]
    return HistoryTotals(
        snapshots=len(entries),
        batches=sum(entry.batch_id is not None for entry in entries),
        first_at_ms=entries[0].at_ms if entries else None,
        last_at_ms=max((entry.at_ms for entry in entries), default=None),
        rows=_sum(entry.rows for entry in entries),
        rows_rewritten=_sum(entry.rows_rewritten for entry in entries),
        files=_sum(entry.files for entry in entries),
        size_bytes=_sum(entry.size_bytes for entry in entries),
        small_files=_sum(entry.small_files for entry in entries),
        files_judged=_sum(entry.files for entry in entries if entry.small_files is not None),
        lost_attempts=_sum(None if entry.attempts is None else max(0, entry.attempts - 1) for entry in entries),
        commit_ms_median=statistics.median(times) if times else None,
        commit_ms_most=max(times, default=None),
        lag_ms_median=statistics.median(lags) if lags else None,
        lag_ms_most=max(lags, default=None),
    )


def _sum(figures: Iterable[int | None]) -> int | None:
    stated = [figure for figure in figures if figure is not None]
    return sum(stated) if stated else None


def _first(*figures: int | None) -> int | None:
    return next((figure for figure in figures if figure is not None), None)


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _number(text: str | None) -> int | None:
    """A property that was damaged or is another's says nothing."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        return None
    return int(text)
