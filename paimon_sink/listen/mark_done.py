"""The listener ``mark-done``: marks a partition complete once its time is over.

Partitions that are not done yet are kept in the listener's state, so they survive a crash. An event that was delivered
and not acknowledged is delivered again: the same partitions are then marked again, by idempotent actions.
"""

from __future__ import annotations

import logging
from typing import Any

from paimon_sink.core.errors import OptionError, PwcError
from paimon_sink.core.events import CommitEvent, WrittenPartition
from paimon_sink.listen.done_actions import Action, DonePartition, SuccessFile, UnavailableError, custom_action
from paimon_sink.listen.done_settings import CUSTOM, DONE_PARTITION, HTTP_REPORT, SUCCESS_FILE, MarkDoneSettings
from paimon_sink.listen.done_trigger import decode, encode
from paimon_sink.listen.http_report import HttpReport
from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.local_time import epoch_ms, now_of
from paimon_sink.listen.partition_time import PartitionTime
from paimon_sink.listen.table import ListenerTable

__all__ = ["MarkDone"]

log = logging.getLogger(__name__)

_MOST_SHOWN = 5


class MarkDone:
    SETTINGS = MarkDoneSettings

    def __init__(self, context: ListenerContext) -> None:
        settings = MarkDoneSettings.of(context)
        self._mode, self._zone = settings.mode, settings.zone
        self._interval_ms, self._idle_ms = settings.time_interval_ms, settings.idle_time_ms
        self._times = PartitionTime(settings.timestamp_pattern, settings.timestamp_formatter)
        self._table = context.table
        self._actions: dict[str, Action] = {}
        if CUSTOM in settings.actions and settings.custom_class is not None:
            self._actions[CUSTOM] = custom_action(settings.custom_class, context, settings.custom)
        if self._table is not None:
            _check_partitioned(self._table)
            if SUCCESS_FILE in settings.actions:
                self._actions[SUCCESS_FILE] = SuccessFile(self._table)
            if DONE_PARTITION in settings.actions:
                self._actions[DONE_PARTITION] = DonePartition(self._table)
            if HTTP_REPORT in settings.actions and settings.http_url is not None:
                self._actions[HTTP_REPORT] = HttpReport(
                    self._table,
                    settings.http_url,
                    settings.http_timeout_ms,
                    settings.http_retries,
                    settings.http_params,
                )

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        assert self._table is not None, "notified without a table"
        now_ms = now_of(event, self._mode, so="no partition is done by it")
        pending = decode(state).written(event.partitions, now_ms)
        pending, done, skipped = pending.split(
            now_ms, start_ms=self._start_ms, interval_ms=self._interval_ms, idle_ms=self._idle_ms
        )
        for path in skipped:
            log.warning(
                "The partition %s of %s names no time, so it is never marked done. See timestamp-pattern and "
                "timestamp-formatter.",
                *(path, event.table),
            )
        after = encode(pending)
        self._mark(done)
        if done:
            log.info("%d partitions of %s are done, such as %s", len(done), event.table, done[0].path)
        return after

    def _start_ms(self, partition: WrittenPartition) -> int | None:
        local = self._times.of(partition.values)
        try:
            return None if local is None else epoch_ms(local, self._zone)
        except (OverflowError, ValueError, OSError):
            # At the ends of the calendar a zone cannot be applied.
            return None

    def _mark(self, done: list[WrittenPartition]) -> None:
        """Run all actions for all partitions, then raise what failed: one failure must not hold up the others."""
        problems: list[str] = []
        for kind, action in self._actions.items():
            for partition in done:
                try:
                    action.mark_done(partition)
                except UnavailableError as error:
                    problems.append(f"{kind}: {error}")
                    break
                except PwcError as error:
                    problems.append(f"{kind}: {error}")
                except Exception as error:  # noqa: BLE001 - an action of the user's may raise anything
                    problems.append(f"{kind} of {partition.path}: {type(error).__name__}: {error}")
        if problems:
            more = f" And {len(problems) - _MOST_SHOWN} more." if len(problems) > _MOST_SHOWN else ""
            raise PwcError(" ".join(problems[:_MOST_SHOWN]) + more)


def _check_partitioned(table: ListenerTable) -> None:
    if not table.partition_spec:
        raise OptionError(
            f"Nothing of {table.label} can be marked done: it has no partitions. Leave mark-done out of the option "
            "listeners, or write to a table that is partitioned by a time."
        )
