"""Local times, as in the names of partitions and tags: they have no zone, so a setting says which one is meant."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from paimon_sink.core.events import CommitEvent
from paimon_sink.core.option_values import BadValueError
from paimon_sink.listen.settings import Settings

__all__ = ["PROCESS_TIME", "WATERMARK", "epoch_ms", "local_time", "mode_and_zone", "now_of"]

log = logging.getLogger(__name__)

WATERMARK, PROCESS_TIME = "watermark", "process-time"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def mode_and_zone(settings: Settings) -> tuple[str, tzinfo | None]:
    """Which clock counts, and in which zone: UTC for watermarks, else the driver's own, as in Paimon."""
    mode = settings.choice("mode", PROCESS_TIME, WATERMARK)
    return mode, settings.parsed("time-zone", UTC if mode == WATERMARK else None, _zone)


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
