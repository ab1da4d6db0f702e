"""Whether the rows of each batch add up: those it was sent are those in the table and those in the quarantine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache

from paimon_sink.core.errors import OptionError, TableNotFoundError
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.outbox import receiving_user
from paimon_sink.core.properties import OUTBOX_NUMBER, OUTBOX_OF, QUARANTINE, QUARANTINED, ROUTED, ROWS, ROWS_SENT
from paimon_sink.formats.audit import Problem, ProblemKind
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.maintain.quarantine import quarantine_options

__all__ = ["OpenQuarantine", "batches_with_bad_rows", "opener", "sum_problems"]

OpenQuarantine = Callable[[str], Table | None]
"""Opens a quarantine by the name that batches were written with. None: it is not there."""


def opener(home: TableOptions) -> OpenQuarantine:
    """Opens the quarantines of a table that is known by these options."""

    def opened(name: str) -> Table | None:
        try:
            return open_table(quarantine_options(home, name))
        except TableNotFoundError:
            return None

    return opened


def batches_with_bad_rows(snapshots: Sequence[SnapshotInfo]) -> list[SnapshotInfo]:
    return [snapshot for snapshot in snapshots if QUARANTINED in snapshot.properties]


def sum_problems(table: Table, snapshots: Sequence[SnapshotInfo], opened: OpenQuarantine) -> Iterator[Problem]:
    """A line for each batch that does not add up, or whose bad rows are not in their table."""
    quarantines = cache(lambda name: _Quarantine.of(opened(name)))
    for snapshot in batches_with_bad_rows(snapshots):
        where = f"snapshot {snapshot.snapshot_id}"
        figures = _figures(snapshot.properties)
        if figures is None:
            yield Problem(ProblemKind.WRONG_COUNT, where, "has figures of bad rows that cannot be read")
            continue
        sent, good, bad, by_rule = figures
        if sent != good + bad or bad != by_rule:
            what = f"was sent {sent:,} rows, and says {good:,} are good and {bad:,} bad, {by_rule:,} by their rules"
            yield Problem(ProblemKind.WRONG_COUNT, where, what)
        name = snapshot.properties.get(QUARANTINE)
        if name is not None:
            with suppress(OptionError):
                # Which no quarantine can be opened by, when the table was named by its location alone.
                yield from quarantines(name).problems(table, snapshot, name, bad)


def _figures(properties: Mapping[str, str]) -> tuple[int, int, int, int] | None:
    rules = [text for key, text in properties.items() if key.startswith(f"{QUARANTINED}.")]
    own = [properties.get(ROWS, ""), properties.get(ROUTED, "0")]
    texts = [properties.get(ROWS_SENT, ""), *own, properties[QUARANTINED], *rules]
    if not all(text.isascii() and text.isdigit() for text in texts):
        return None
    sent, good, routed, bad, *by_rule = map(int, texts)
    return sent, good + routed, bad, sum(by_rule)


class _Quarantine:
    """What it says of the commits of others that owed it rows."""

    def __init__(self, table: Table | None, by_commit: Mapping[str, SnapshotInfo]) -> None:
        self._table = table
        self._by_commit = by_commit

    @classmethod
    def of(cls, table: Table | None) -> _Quarantine:
        history = [] if table is None else table.upkeep.history()
        return cls(table, {snapshot.properties.get(OUTBOX_OF, ""): snapshot for snapshot in history})

    def problems(self, home: Table, snapshot: SnapshotInfo, name: str, bad: int) -> Iterator[Problem]:
        where = f"snapshot {snapshot.snapshot_id}"
        if self._table is None:
            yield Problem(ProblemKind.OWED, where, f"has {bad:,} bad rows for {name}, which is not there")
            return
        found = self._by_commit.get(snapshot.commit_id or "")
        if found is not None:
            if found.rows_added != bad:
                what = f"has {bad:,} bad rows, snapshot {found.snapshot_id} of {name} brought {found.rows_added or 0:,}"
                yield Problem(ProblemKind.WRONG_COUNT, where, what)
            return
        # Its snapshot there has expired, or it never came.
        user = receiving_user(home.identity, snapshot.commit_user or "")
        entry = self._table.commits.load_head(commit_user=user).ledger.entries.get(user)
        number = snapshot.properties.get(OUTBOX_NUMBER, "")
        if entry is None or not number.isdigit() or entry.batch_id < int(number):
            yield Problem(
                ProblemKind.OWED,
                where,
                f"has {bad:,} bad rows that are not in {name}. Restart the query, or run the job again: they are kept, "
                "and are brought there",
            )
