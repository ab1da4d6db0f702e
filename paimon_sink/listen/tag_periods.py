"""Decides when a tag is due and what its name is, by the rules of Paimon's automatic tags. Pure.

A tag has the name of a period that is over. The first is due at once; the next once the following period has ended and
the delay has passed. After a pause only the latest period gets a tag: there is no snapshot of those in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

__all__ = ["DAILY", "DASHES", "HOURLY", "NO_DASHES", "NO_DASHES_NO_SPACES", "Periods"]

DAILY, HOURLY = "daily", "hourly"
DASHES, NO_DASHES, NO_DASHES_NO_SPACES = "with_dashes", "without_dashes", "without_dashes_and_spaces"

_LENGTHS = {DAILY: timedelta(days=1), HOURLY: timedelta(hours=1)}
_FORMS = {
    (DAILY, DASHES): "%Y-%m-%d",
    (DAILY, NO_DASHES): "%Y%m%d",
    (DAILY, NO_DASHES_NO_SPACES): "%Y%m%d",
    (HOURLY, DASHES): "%Y-%m-%d %H",
    (HOURLY, NO_DASHES): "%Y%m%d %H",
    (HOURLY, NO_DASHES_NO_SPACES): "%Y%m%d%H",
}


@dataclass(frozen=True)
class Periods:
    period: str
    formatter: str
    delay: timedelta

    @property
    def length(self) -> timedelta:
        return _LENGTHS[self.period]

    def due(self, now: datetime, following: datetime | None) -> datetime | None:
        """The period to tag, or None. ``following`` is the one after the last that has a tag."""
        if following is not None and now - self.delay < following + self.length:
            return None
        begun = now.replace(minute=0, second=0, microsecond=0)
        return (begun.replace(hour=0) if self.period == DAILY else begun) - self.length

    def after(self, period: datetime) -> datetime:
        return period + self.length

    def name(self, period: datetime) -> str:
        # Years below 1000 keep their leading zeros, which not every platform writes.
        return period.strftime(_FORMS[self.period, self.formatter].replace("%Y", f"{period.year:04}"))

    def read(self, name: str) -> datetime | None:
        """The period of a tag that this listener may have made. A name with more in it is somebody else's."""
        try:
            period = datetime.strptime(name, _FORMS[self.period, self.formatter])
        except ValueError:
            return None
        return period if self.name(period) == name else None

    def latest(self, names: Iterable[str]) -> datetime | None:
        return max((period for period in map(self.read, names) if period is not None), default=None)

    def too_many(self, names: Iterable[str], *, keep: int, new: str) -> list[str]:
        """The oldest beyond ``keep``, but never the one that was just made."""
        own = sorted((period, name) for name in names if (period := self.read(name)) is not None)
        return [name for _, name in own[: max(len(own) - keep, 0)] if name != new]
