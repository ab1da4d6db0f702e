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
from paimon_sink.listen.done_trigger import decode, encode
from paimon_sink.listen.http_report import HttpReport, http_url
from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.local_time import epoch_ms, mode_and_zone, now_of
from paimon_sink.listen.partition_time import PartitionTime, formatter
from paimon_sink.listen.settings import Settings
from paimon_sink.listen.table import ListenerTable

__all__ = ["MarkDone"]

log = logging.getLogger(__name__)

_SUCCESS, _DONE, _HTTP, _CUSTOM = "success-file", "done-partition", "http-report", "custom"
_MOST_SHOWN = 5


class MarkDone:
    def __init__(self, context: ListenerContext) -> None:
        settings = Settings(context)
        self._mode, self._zone = mode_and_zone(settings)
        self._interval_ms = _needed(settings, "time-interval", "how long the time of a partition lasts, such as 1d")
        self._idle_ms = _needed(settings, "idle-time", "how long after its end a partition is waited for, such as 15m")
        self._times = PartitionTime(
            settings.text("timestamp-pattern", None), settings.parsed("timestamp-formatter", None, formatter)
        )
        kinds = settings.words("actions", (_SUCCESS,), _SUCCESS, _DONE, _HTTP, _CUSTOM)
        url = settings.parsed("http.url", None, http_url)
        timeout_ms = settings.duration_ms("http.timeout", 10_000, at_least="1ms", at_most="10m")
        retries = settings.count("http.retries", 2, at_most=20)
        params = settings.text("http.params", None)
        path = settings.parsed("custom.class", None, str.strip)
        own = {key: value for key, value in settings.group("custom.").items() if key != "class"}
        for kind, key, prefix in ((_HTTP, "http.url", "http."), (_CUSTOM, "custom.class", "custom.")):
            if kind in kinds and not settings.has(key):
                settings.problem(key, f"is missing; the action {kind} needs it.")
            for unused in settings.below(prefix) if kind not in kinds else ():
                settings.problem(unused, f"is for the action {kind}, which is not among the actions.")
        settings.finish()
        self._table = context.table
        self._actions: dict[str, Action] = {}
        if _CUSTOM in kinds and path is not None:
            self._actions[_CUSTOM] = custom_action(path, context, own)
        if self._table is not None:
            _check_partitioned(self._table)
            if _SUCCESS in kinds:
                self._actions[_SUCCESS] = SuccessFile(self._table)
            if _DONE in kinds:
                self._actions[_DONE] = DonePartition(self._table)
            if _HTTP in kinds and url is not None:
                self._actions[_HTTP] = HttpReport(self._table, url, timeout_ms, retries, params)

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


def _needed(settings: Settings, key: str, what: str) -> int:
    if not settings.has(key):
        settings.problem(key, f"is missing; it says {what}.")
    return settings.duration_ms(key, 0)


def _check_partitioned(table: ListenerTable) -> None:
    if not table.partition_spec:
        raise OptionError(
            f"Nothing of {table.label} can be marked done: it has no partitions. Leave mark-done out of the option "
            "listeners, or write to a table that is partitioned by a time."
        )
