"""Spark's progress of a query beside what its batches became in the table.

Spark calls a listener on a bus that all listeners share. So nothing is done there: events are laid down, and a thread
of our own looks at the table and hands them on.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import TableNotFoundError
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.maintain.history import BatchFigures, history

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        SourceProgress,
        StateOperatorProgress,
        StreamingQueryProgress,
    )

__all__ = ["PwcProgress"]

log = logging.getLogger(__name__)

_SNAPSHOTS = 20
"""How far back a batch is looked for. A progress comes right after its batch."""
_MOST_WAITING = 100
_OPERATOR = ("numRowsTotal", "numRowsUpdated", "numRowsRemoved", "numRowsDroppedByWatermark", "memoryUsedBytes")

Report = dict[str, Any]


class PwcProgress(StreamingQueryListener):
    """Hands on each progress of a query with the figures of its batch.

    For ``spark.streams.addListener``, classic and Spark Connect. Whatever fails here is logged, and no query notices.

    Args:
        options: Those that the query writes with.
        callback: Gets one dict an event, on a thread of its own. Without one, each is a line of JSON in the log of
            ``paimon_sink.spark.progress``.
        query: The name or the id of the query to listen to. Without one, all of the session are handed on, those that
            write elsewhere without figures.

    Raises:
        OptionError: An option is missing, unknown or wrong; all problems are named.

    Example:
        ```python
        listener = paimon_sink.PwcProgress({"warehouse": "/tmp/lake", "table": "demo.numbers"}, print)
        spark.streams.addListener(listener)
        spark.streams.removeListener(listener)
        listener.close()
        ```
    """

    def __init__(
        self,
        options: Mapping[str, str],
        callback: Callable[[Report], object] | None = None,
        *,
        query: str | None = None,
    ) -> None:
        self._look = _Look(parse_options(dict(options), purpose=Purpose.READ))
        self._callback = callback
        self._query = query
        self._names: dict[str, str | None] = {}
        self._waiting: deque[_Noted] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._dropped = 0

    # ------------------------------------------------------------ Spark calls

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self._guarded(lambda: self._names.update({str(event.id): event.name}))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self._guarded(lambda: self._lay_down(_progress(event.progress)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        self._guarded(
            lambda: self._lay_down(_Noted("idle", str(event.id), str(event.runId), None, event.timestamp, None))
        )

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._guarded(lambda: self._names.pop(str(event.id), None))

    # ------------------------------------------------------------ and the one who made it

    def close(self, timeout_s: float | None = 30) -> bool:
        """Wait until all that came was handed on. False when that took longer. Take it off the session before."""
        with self._changed:
            thread = self._thread
            if thread is None or not thread.is_alive():
                return True
            self._waiting.append(_END)
            self._changed.notify()
        thread.join(timeout_s)
        return not thread.is_alive()

    # ------------------------------------------------------------ inside

    @staticmethod
    def _guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - it must not get into Spark's bus
            log.warning("A progress of Spark could not be taken: %r", error)

    def _lay_down(self, noted: _Noted) -> None:
        # An idle event does not say it.
        name = self._names[noted.query] = noted.name or self._names.get(noted.query)
        if self._query is not None and self._query not in (noted.query, name):
            return
        with self._changed:
            if len(self._waiting) >= _MOST_WAITING:
                # Whoever is this far behind is not helped by the oldest.
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(replace(noted, name=name))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="pwc-progress", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                noted = self._waiting.popleft()
                dropped, self._dropped = self._dropped, 0
            if noted is _END:
                return
            try:
                self._hand_on({**self._look.report(noted), "dropped": dropped})
            except Exception as error:  # noqa: BLE001 - it must not end the thread
                log.warning("A progress of the query %s could not be handed on: %r", noted.query, error)

    def _hand_on(self, report: Report) -> None:
        if self._callback is not None:
            self._callback(report)
        else:
            log.info("%s", json.dumps(report, ensure_ascii=False, default=str))


@dataclass(frozen=True)
class _Noted:
    """An event, in values of our own."""

    event: str
    query: str
    run: str
    name: str | None
    at: str
    spark: Mapping[str, Any] | None


_END = _Noted("end", "", "", None, "", None)


def _progress(progress: StreamingQueryProgress) -> _Noted:
    figures = {
        "batchId": progress.batchId,
        "numInputRows": progress.numInputRows,
        "inputRowsPerSecond": _finite(progress.inputRowsPerSecond),
        "processedRowsPerSecond": _finite(progress.processedRowsPerSecond),
        "batchDuration": progress.batchDuration,
        "durationMs": dict(progress.durationMs),
        "stateOperators": [_operator(operator) for operator in progress.stateOperators],
        "sources": [_source(source) for source in progress.sources],
    }
    return _Noted("progress", str(progress.id), str(progress.runId), progress.name, progress.timestamp, figures)


def _operator(operator: StateOperatorProgress) -> dict[str, Any]:
    return {"operatorName": operator.operatorName, **{key: getattr(operator, key) for key in _OPERATOR}}


def _source(source: SourceProgress) -> dict[str, Any]:
    """What a source says of how far its table has come. One of ours tells how many snapshots it is behind."""
    try:
        latest = json.loads(source.latestOffset or "null")
    except ValueError:
        latest = source.latestOffset
    return {"description": source.description, "numInputRows": source.numInputRows, "latestOffset": latest}


def _finite(value: float | None) -> float | None:
    """Spark divides by a time that may be nothing, and JSON has no word for that."""
    return value if value is not None and math.isfinite(value) else None


# ---------------------------------------------------------------- the table's side


@dataclass
class _Look:
    """Finds what became of a batch among the newest snapshots. What a look before saw is not read again."""

    options: Options
    clock: Clock = field(default_factory=SystemClock)
    table: Table | None = None
    seen: Sequence[SnapshotInfo] = ()

    def report(self, noted: _Noted) -> Report:
        commit, last_ms, error = None, None, None
        try:
            commit, last_ms = self._find(noted.query, None if noted.spark is None else noted.spark["batchId"])
        except TableNotFoundError:
            # Created with the first batch.
            self.table = None
        except Exception as failure:  # noqa: BLE001 - Spark's half is still worth having
            self.table, self.seen = None, ()
            error = str(failure) or repr(failure)
        since = None if last_ms is None else max(0, self.clock.now_ms() - last_ms) / 1000
        return {
            "event": noted.event,
            "table": self.options.table.label,
            "query": noted.query,
            "run": noted.run,
            "name": noted.name,
            "at": noted.at,
            "spark": noted.spark,
            "commit": commit,
            "seconds_since_commit": since,
            "error": error,
        }

    def _find(self, query: str, batch_id: int | None) -> tuple[Report | None, int | None]:
        """The figures of a batch if it is there, and when the query committed last."""
        self.table = self.table or open_table(self.options.table)
        self.seen = self.table.upkeep.history(cached=self.seen, newest=_SNAPSHOTS)
        own = [info for info in self.seen if info.query_id == query and info.batch_id is not None]
        if not own:
            return None, self._last_ms(self.table, query)
        entries = history(own, ledger={}, now_ms=self.clock.now_ms()).entries
        entry = next((figures for figures in reversed(entries) if figures.batch_id == batch_id), None)
        return (None if entry is None else _commit(entry, own)), own[-1].at_ms

    def _last_ms(self, table: Table, query: str) -> int | None:
        """As the ledger knows it, where only others wrote lately."""
        user = self.options.commit.commit_user or query
        entry = table.commits.load_head(commit_user=user).ledger.entries.get(user)
        return entry.at_ms if entry is not None and entry.query_id == query else None


def _commit(entry: BatchFigures, snapshots: Sequence[SnapshotInfo]) -> Report:
    """With the names of the line that the listener ``metrics`` writes."""
    info = next(info for info in snapshots if info.snapshot_id == entry.snapshot_id)
    watermark_ms = info.watermark_ms
    return {
        "user": entry.commit_user,
        "batch": entry.batch_id,
        "snapshot": entry.snapshot_id,
        "commit": info.commit_id,
        "at_ms": entry.at_ms,
        "rows": entry.rows,
        "files": entry.files,
        "bytes": entry.size_bytes,
        "commit_ms": entry.commit_ms,
        "attempts": entry.attempts,
        "conflicts": None if entry.attempts is None else entry.attempts - 1,
        "watermark_ms": watermark_ms,
        "watermark_lag_ms": None if watermark_ms is None else entry.at_ms - watermark_ms,
        "small_files": entry.small_files,
        "small_share": entry.small_share,
        "seconds_since_commit_before": None if entry.lag_ms is None else entry.lag_ms / 1000,
    }
