"""Local times, as in the names of partitions and tags: they have no zone, so a setting says which one is meant."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from paimon_sink.core.events import CommitEvent
from paimon_sink.core.option_values import BadValueError, choice
from paimon_sink.listen.settings import Settings, setting

__all__ = ["PROCESS_TIME", "WATERMARK", "ClockSettings", "epoch_ms", "local_time", "now_of"]

log = logging.getLogger(__name__)

WATERMARK, PROCESS_TIME = "watermark", "process-time"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_of(event: CommitEvent, mode: str, *, so: str) -> int | None:
    """The time of an event by that clock. None, and a warning in the log, where it has no watermark."""
    if mode != WATERMARK:
        return event.at_ms
    if event.watermark_ms is None:
        log.warning(
            "Batch %d of %s has no watermark, so %s. Set watermarkColumn, or use mode=process-time.",
            *(event.batch_id, event.table, so),
        )
    return event.watermark_ms


def _zone(text: str) -> tzinfo:
    if text.strip().upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(text.strip())
    except (KeyError, ValueError, OSError) as error:
        raise BadValueError("must be the name of a time zone such as UTC or Europe/Berlin.") from error


class ClockSettings(Settings):
    """Which clock counts, and in which zone."""

    mode: str = setting(
        "mode",
        parse=choice(PROCESS_TIME, WATERMARK),
        default=PROCESS_TIME,
        doc="what time it is: `process-time`, that of the commit; `watermark`, that of event time (option "
        "`watermarkColumn`)",
        example=WATERMARK,
    )
    time_zone: tzinfo | None = setting(
        "time-zone",
        parse=_zone,
        default_note="UTC by watermark, else the driver's own",
        doc="the zone of local times: `Europe/Berlin`",
        example="Europe/Berlin",
    )

    @property
    def zone(self) -> tzinfo | None:
        """UTC for watermarks, else the driver's own, as in Paimon; None is this machine's own."""
        return UTC if self.time_zone is None and self.mode == WATERMARK else self.time_zone


def epoch_ms(local: datetime, zone: tzinfo | None) -> int:
    """The moment that a local time names; None is this machine's own zone.

    As in Java: a time that occurs twice is the first of the two, and one that the clock skips is moved past the gap.
    """
    if zone is None:
        return int(local.replace(microsecond=0).timestamp()) * 1000 + local.microsecond // 1000
    return (local.replace(tzinfo=zone) - _EPOCH) // timedelta(milliseconds=1)


def local_time(moment_ms: int, zone: tzinfo | None) -> datetime:
    moment = _EPOCH + timedelta(milliseconds=moment_ms)
    return moment.astimezone(zone).replace(tzinfo=None)
