"""The listener ``tags``: gives the first snapshot after each day or hour a name, which keeps it from expiring.

That a tag is there is what counts, so being told twice does no harm: a name that is taken stays what it is.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from paimon_sink.core.events import CommitEvent
from paimon_sink.formats.contract import Table
from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.local_time import local_time, mode_and_zone, now_of
from paimon_sink.listen.settings import Settings
from paimon_sink.listen.tag_periods import DAILY, DASHES, HOURLY, NO_DASHES, NO_DASHES_NO_SPACES, Periods

__all__ = ["Tags"]

log = logging.getLogger(__name__)


class Tags:
    def __init__(self, context: ListenerContext) -> None:
        settings = Settings(context)
        self._mode, self._zone = mode_and_zone(settings)
        delay_ms = settings.duration_ms("delay", 0)
        self._periods = Periods(
            settings.choice("period", DAILY, HOURLY),
            settings.choice("period-formatter", DASHES, NO_DASHES, NO_DASHES_NO_SPACES),
            timedelta(milliseconds=delay_ms),
        )
        self._keep = settings.count("keep", None, at_least=1)
        if self._periods.delay >= self._periods.length:
            settings.problem("delay", f"must be shorter than the period, which is {self._periods.period}.")
        settings.finish()
        self._table = context.table

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        assert self._table is not None, "told without a table"
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
        if not self._table.refs.tag(name, event.snapshot_id):
            log.warning(
                "Snapshot %d of %s is gone or about to go, so the next one gets the tag %s",
                *(event.snapshot_id, event.table, name),
            )
            return self._state(following)
        log.info("Snapshot %d of %s has the tag %s", event.snapshot_id, event.table, name)
        self._drop_old(self._table, name)
        return self._state(self._periods.after(period))

    def _following(self, state: Any, table: Table) -> datetime | None:
        """The period after the last that has a tag: as noted, or as the tags themselves tell."""
        noted = state.get(self._periods.period) if isinstance(state, dict) else None
        if isinstance(noted, str):
            return datetime.fromisoformat(noted)
        latest = self._periods.latest(table.refs.tag_names())
        return None if latest is None else self._periods.after(latest)

    def _state(self, following: datetime | None) -> Any:
        return None if following is None else {self._periods.period: following.isoformat()}

    def _drop_old(self, table: Table, new: str) -> None:
        if self._keep is None:
            return
        for name in self._periods.too_many(table.refs.tag_names(), keep=self._keep, new=new):
            table.refs.drop_tag(name)
            log.info("The tag %s of %s is gone: %d are kept", name, table.label, self._keep)
