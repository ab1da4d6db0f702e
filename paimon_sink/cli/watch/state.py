"""What ``pwc watch`` knows: the last reading, what went wrong since it began, and how to read only what is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import PwcError, TableChangedError, TableNotFoundError
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.maintain.consumers import ConsumerLag
from paimon_sink.maintain.history import History
from paimon_sink.maintain.reading import Reading, read_table

__all__ = ["Outage", "View", "Watcher"]

_MOST_OUTAGES = 5


@dataclass(frozen=True)
class Outage:
    """Something that kept the table from being read, for one reading or for many in a row."""

    reason: str
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
    consumers: tuple[ConsumerLag, ...] = ()
    outages: tuple[Outage, ...] = ()
    """The newest first."""

    @property
    def outage(self) -> Outage | None:
        """What keeps the table from being read now."""
        return next((outage for outage in self.outages if outage.over_ms is None), None)

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
    _snapshots: Sequence[SnapshotInfo] = ()
    _table: Table | None = None

    def first(self) -> tuple[View, Reading]:
        self._table = self.opened()
        reading = self._read(self._table)
        now_ms = self.clock.now_ms()
        return View(self._table, self._history(reading, now_ms), now_ms, tuple(reading.lags(now_ms=now_ms))), reading

    def again(self, before: View) -> View:
        """The view after one more reading, or after one more that failed."""
        try:
            table = self._table = self._table or self.opened()
            reading = self._read(table)
        except (TableChangedError, TableNotFoundError):
            # Somebody may create it again: then it is another table, of which nothing is known yet.
            self._table, self._snapshots = None, ()
            return self._failed(before, f"The table {before.table.label} was dropped. These are its last figures.")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown, and the next reading may go well
            reason = str(error) if isinstance(error, PwcError) else f"{type(error).__name__}: {error}"
            return self._failed(before, reason)
        now_ms = self.clock.now_ms()
        is_new = table.identity != before.table.identity
        outages = tuple(_over(outage, now_ms, created_again=is_new) for outage in before.outages)
        return View(table, self._history(reading, now_ms), now_ms, tuple(reading.lags(now_ms=now_ms)), outages)

    def _read(self, table: Table) -> Reading:
        reading = read_table(table, user=self.user, cached=self._snapshots, newest=self.window, with_consumers=True)
        self._snapshots = reading.snapshots
        return reading

    def _history(self, reading: Reading, now_ms: int) -> History:
        return reading.history(now_ms=now_ms, user=self.user)

    def _failed(self, before: View, reason: str) -> View:
        now_ms = self.clock.now_ms()
        current = before.outage
        if current is not None and current.reason == reason:
            longer = replace(current, last_ms=now_ms, times=current.times + 1)
            return replace(before, outages=tuple(longer if each is current else each for each in before.outages))
        over = (_over(outage, now_ms, created_again=False) for outage in before.outages)
        return replace(before, outages=(Outage(reason, now_ms, now_ms), *over)[:_MOST_OUTAGES])


def _over(outage: Outage, now_ms: int, *, created_again: bool) -> Outage:
    if outage.over_ms is not None:
        return outage
    later = outage.reason.replace("These are its last figures", "Another one stands there now")
    return replace(outage, over_ms=now_ms, reason=later if created_again else outage.reason)
