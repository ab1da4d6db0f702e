"""The listener ``tags``: tags the first snapshot after each day or hour, which keeps it from expiring.

It is idempotent: a tag that exists is never moved, so an event may be delivered twice.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Any

from paimon_sink.core.events import CommitEvent
from paimon_sink.core.option_values import choice, count, duration_ms
from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.local_time import ClockSettings, local_time, now_of
from paimon_sink.listen.settings import setting
from paimon_sink.listen.table import ListenerTable
from paimon_sink.listen.tag_periods import DAILY, DASHES, HOURLY, NO_DASHES, NO_DASHES_NO_SPACES, Periods

__all__ = ["Tags", "TagsSettings"]

log = logging.getLogger(__name__)


class TagsSettings(ClockSettings):
    period: str = setting(
        "period",
        parse=choice(DAILY, HOURLY),
        default=DAILY,
        doc="how long a period is: `daily`, `hourly`",
        example=HOURLY,
    )
    delay_ms: int = setting(
        "delay",
        parse=duration_ms(at_least="0ms", at_most="36500d"),
        default="0ms",
        doc="how long after the end of the period; shorter than the period",
        example="10m",
    )
    keep: int | None = setting(
        "keep",
        parse=count(at_least=1, at_most=1_000_000),
        default_note="all",
        doc="keep this many tags of this form; the oldest are dropped",
        example="30",
    )
    period_formatter: str = setting(
        "period-formatter",
        parse=choice(DASHES, NO_DASHES, NO_DASHES_NO_SPACES),
        default=DASHES,
        doc=(
            "`with_dashes`: `2023-07-18`, `2023-07-18 12`. `without_dashes`: `20230718`, `20230718 12`. "
            "`without_dashes_and_spaces`: `20230718`, `2023071812`"
        ),
        example=NO_DASHES,
    )

    @property
    def periods(self) -> Periods:
        return Periods(self.period, self.period_formatter, timedelta(milliseconds=self.delay_ms))

    def problems(self, given: Collection[str]) -> Iterator[tuple[str, str]]:
        if self.periods.delay >= self.periods.length:
            yield "delay", f"must be shorter than the period, which is {self.period}."


class Tags:
    SETTINGS = TagsSettings

    def __init__(self, context: ListenerContext) -> None:
        settings = TagsSettings.of(context)
        self._mode, self._zone = settings.mode, settings.zone
        self._periods = settings.periods
        self._keep = settings.keep
        self._table = context.table

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        assert self._table is not None, "notified without a table"
        now_ms = now_of(event, self._mode, so="no tag is due by it")
        if now_ms is None:
            return state
        following = self._following(state, self._table)
        try:
            period = self._periods.due(local_time(now_ms, self._zone), following)
        except (OverflowError, ValueError, OSError):
            # At the ends of the calendar there is no day before or after.
            return self._state(following)
        if period is None:
            return self._state(following)
        name = self._periods.name(period)
        if not self._table.tag(name, event.snapshot_id):
            log.warning(
                "Snapshot %d of %s has expired or is about to, so the next one gets the tag %s",
                *(event.snapshot_id, event.table, name),
            )
            return self._state(following)
        log.info("Snapshot %d of %s has the tag %s", event.snapshot_id, event.table, name)
        self._drop_old(self._table, name)
        return self._state(self._periods.after(period))

    def _following(self, state: Any, table: ListenerTable) -> datetime | None:
        """The period after the last that has a tag: from the state, or else from the tags themselves."""
        following = state.get(self._periods.period) if isinstance(state, dict) else None
        if isinstance(following, str):
            return datetime.fromisoformat(following)
        latest = self._periods.latest(table.tag_names())
        return None if latest is None else self._periods.after(latest)

    def _state(self, following: datetime | None) -> Any:
        return None if following is None else {self._periods.period: following.isoformat()}

    def _drop_old(self, table: ListenerTable, new: str) -> None:
        if self._keep is None:
            return
        for name in self._periods.too_many(table.tag_names(), keep=self._keep, new=new):
            table.drop_tag(name)
            log.info("Dropped the tag %s of %s: %d are kept", name, table.label, self._keep)
