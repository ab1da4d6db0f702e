"""What ``pwc watch`` knows: the last reading, what went wrong since it began, and how to read only what is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import PwcError, TableChangedError, TableNotFoundError
from paimon_sink.formats.base import SnapshotInfo, Table
from paimon_sink.maintain.history import History
from paimon_sink.maintain.reading import Reading, read_table

__all__ = ["ProblemKind", "View", "Watcher"]

_MOST_TROUBLES = 5


@dataclass(frozen=True)
class ProblemKind:
    """Something that kept the table from being read, for one reading or for many in a row."""

    said: str
    since_ms: int
    last_ms: int
    times: int = 1
    over_ms: int | None = None
    """When the table was read again. None while it lasts."""


@dataclass(frozen=True)
class View:
    """What is to be seen. ``history`` is as of the last reading that went well."""

    table: Table
    history: History
    read_ms: int
    troubles: tuple[ProblemKind, ...] = ()
    """The newest first."""

    @property
    def kind(self) -> ProblemKind | None:
        """What keeps the table from being read now."""
        return next((one for one in self.troubles if one.over_ms is None), None)

    def at(self, now_ms: int) -> History:
        """The same history, looked at later: silence grows by itself."""
        return replace(self.history, now_ms=max(now_ms, self.history.now_ms))


@dataclass
class Watcher:
    """Reads a table again and again. Only the first reading may raise: whoever watches wants to go on."""

    opened: Callable[[], Table]
    user: str | None
    window: int
    """How many snapshots are kept in view."""
    clock: Clock = field(default_factory=SystemClock)
    _known: Sequence[SnapshotInfo] = ()
    _table: Table | None = None

    def first(self) -> tuple[View, Reading]:
        self._table = self.opened()
        reading = self._read(self._table)
        now_ms = self.clock.now_ms()
        return View(self._table, self._history(reading, now_ms), now_ms), reading

    def again(self, before: View) -> View:
        """The view after one more reading, or after one more that failed."""
        try:
            table = self._table = self._table or self.opened()
            reading = self._read(table)
        except (TableChangedError, TableNotFoundError):
            # Somebody may create it again: then it is another table, of which nothing is known yet.
            self._table, self._known = None, ()
            return self._failed(before, f"The table {before.table.label} was dropped. These are its last figures.")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown, and the next reading may go well
            said = str(error) if isinstance(error, PwcError) else f"{type(error).__name__}: {error}"
            return self._failed(before, said)
        now_ms = self.clock.now_ms()
        is_new = table.identity != before.table.identity
        over = tuple(_over(one, now_ms, created_again=is_new) for one in before.troubles)
        return View(table, self._history(reading, now_ms), now_ms, over)

    def _read(self, table: Table) -> Reading:
        reading = read_table(table, user=self.user, known=self._known, newest=self.window)
        self._known = reading.snapshot_infos
        return reading

    def _history(self, reading: Reading, now_ms: int) -> History:
        return reading.history(now_ms=now_ms, user=self.user)

    def _failed(self, before: View, said: str) -> View:
        now_ms = self.clock.now_ms()
        first = before.kind
        if first is not None and first.said == said:
            same = replace(first, last_ms=now_ms, times=first.times + 1)
            return replace(before, troubles=tuple(same if one is first else one for one in before.troubles))
        over = (one if one.over_ms is not None else replace(one, over_ms=now_ms) for one in before.troubles)
        return replace(before, troubles=(ProblemKind(said, now_ms, now_ms), *over)[:_MOST_TROUBLES])


def _over(kind: ProblemKind, now_ms: int, *, created_again: bool) -> ProblemKind:
    if kind.over_ms is not None:
        return kind
    said = kind.said.replace("These are its last figures", "Another one stands there now")
    return replace(kind, over_ms=now_ms, said=said if created_again else kind.said)
