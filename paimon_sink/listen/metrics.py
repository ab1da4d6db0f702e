"""The listener ``metrics``: the figures of each batch as a line of JSON, and as text for Prometheus.

It runs where commits run, in a process beside Spark's driver: files are written on that machine.
"""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from paimon_sink.core.events import CommitEvent
from paimon_sink.core.option_values import BadValueError, plain_text
from paimon_sink.core.strict_json import as_count, as_text, as_whole
from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.prometheus import SUFFIX, Sample, exposition, own_file
from paimon_sink.listen.settings import Settings, setting
from paimon_sink.storage.local import replace_file

__all__ = ["MetricTotals", "Metrics", "MetricsSettings", "figures", "samples"]

log = logging.getLogger(__name__)

_CURE = "Create it on the machine of the driver, for the user that Spark runs as"


def _file(text: str) -> Path:
    """A file to append to: in a directory that is there."""
    path = Path(text)
    if not path.is_absolute():
        raise BadValueError("must be an absolute path: the process that commits has a working directory of its own.")
    if not path.parent.is_dir():
        raise BadValueError(f"is in {path.parent}, which is no directory here. {_CURE}.")
    if path.is_dir():
        raise BadValueError(f"is the directory {path}; give the path of a file in it.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise BadValueError(f"is in {path.parent}, where this user may not write. {_CURE}.")
    if path.exists() and not os.access(path, os.W_OK):
        raise BadValueError(f"is {path}, which this user may not write to.")
    return path


def _prometheus_file(text: str) -> Path:
    if not text.endswith(SUFFIX):
        raise BadValueError(f"must end in {SUFFIX}: the textfile collector reads no other files.")
    return _file(text)


class MetricsSettings(Settings):
    file: Path | None = setting(
        "file",
        parse=_file,
        doc="appends a line of JSON for each batch. The file is opened and closed each time, so it may be rotated",
        example="/var/log/pwc/orders.jsonl",
    )
    logger: str | None = setting(
        "logger",
        parse=plain_text,
        doc=(
            "logs the same line at INFO under this name. Where logging is not configured, as in Spark's Python "
            "workers, it goes to the standard error"
        ),
        example="orders",
    )
    prometheus: Path | None = setting(
        "prometheus",
        parse=_prometheus_file,
        doc="writes figures for the textfile collector of node_exporter; the path must end in `.prom`",
        example="/var/lib/node_exporter/pwc.prom",
    )

    def problems(self, given: Collection[str]) -> Iterator[tuple[str, str]]:
        if not {"file", "logger", "prometheus"} & set(given):
            yield "file", "is not set, and neither are logger and prometheus: say where figures go."


class Metrics:
    """Writes the figures of each batch to where its settings say."""

    SETTINGS = MetricsSettings

    def __init__(self, context: ListenerContext) -> None:
        settings = MetricsSettings.of(context)
        self._file = settings.file
        self._logger = settings.logger
        self._prometheus = settings.prometheus

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        before = MetricTotals.of(state)
        if before.commit == event.commit_id:
            # Counted already.
            return state
        totals = before.after(event)
        # The idempotent write comes first: if it fails, the retry appends no second line.
        if self._prometheus is not None:
            self._expose(event, totals)
        line = json.dumps(figures(event, since_ms=before.at_ms), ensure_ascii=False)
        if self._file is not None:
            _append(self._file, line)
        if self._logger is not None:
            _logger(self._logger).info("%s", line)
        return totals.to_state()

    def _expose(self, event: CommitEvent, totals: MetricTotals) -> None:
        assert self._prometheus is not None
        path = own_file(self._prometheus, table=event.table, location=event.location, commit_user=event.commit_user)
        # Atomic: the collector may read at any moment.
        replace_file(str(path), exposition(samples(event, totals)).encode("utf-8", "replace"))


# ---------------------------------------------------------------- figures


@dataclass(frozen=True)
class MetricTotals:
    """The listener's state: running totals of a commit user, and the last commit in them."""

    commit: str | None = None
    at_ms: int | None = None
    batches: int = 0
    rows: int = 0
    files: int = 0
    bytes: int = 0
    conflicts: int = 0
    replays: int = 0
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """By rule."""

    @classmethod
    def of(cls, state: Any) -> MetricTotals:
        if state is None:
            return cls()
        try:
            counts = {name: as_count(state[name]) for name in _COUNTS}
            quarantined = {as_text(rule): as_count(rows) for rule, rows in state.get("quarantined", {}).items()}
            return cls(as_text(state["commit"]), as_whole(state["at_ms"]), **counts, quarantined=quarantined)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # For example the state of another version. An error here would repeat with every batch.
            log.warning("The totals of the listener metrics cannot be read and start again at zero: %r", error)
            return cls()

    def after(self, event: CommitEvent) -> MetricTotals:
        return replace(
            self,
            commit=event.commit_id,
            at_ms=event.at_ms,
            # An event may cover several batches. Batch ids do not count them: after a takeover they start again at 0.
            batches=self.batches + event.batches,
            rows=self.rows + event.rows,
            files=self.files + event.files,
            bytes=self.bytes + event.size_bytes,
            conflicts=self.conflicts + event.attempts - 1,
            replays=self.replays + event.replays,
            quarantined=dict(Counter(self.quarantined) + Counter(event.quarantined)),
        )

    def to_state(self) -> dict[str, Any]:
        """Where no row was ever bad, what earlier releases kept."""
        state = asdict(self)
        return state if self.quarantined else {name: value for name, value in state.items() if name != "quarantined"}


_COUNTS = ("batches", "rows", "files", "bytes", "conflicts", "replays")


def figures(event: CommitEvent, *, since_ms: int | None) -> dict[str, Any]:
    """The line. An unknown value is null, never zero. ``since_ms``: when the user committed before."""
    return {
        "table": event.table,
        "location": event.location,
        "user": event.commit_user,
        "query": event.query_id,
        "batch": event.batch_id,
        "first_batch": event.first_batch_id,
        "snapshot": event.snapshot_id,
        "commit": event.commit_id,
        "at_ms": event.at_ms,
        "rows": event.rows,
        "files": event.files,
        "bytes": event.size_bytes,
        "commit_ms": {phase: event.timings_ms.get(phase) for phase in _PHASES},
        "attempts": event.attempts,
        "conflicts": event.attempts - 1,
        "replays": event.replays,
        "watermark_ms": event.watermark_ms,
        "watermark_lag_ms": _watermark_lag_ms(event),
        "small_files": event.small_files,
        "small_share": _small_share(event),
        "seconds_since_commit_before": None if since_ms is None else max(0, event.at_ms - since_ms) / 1000,
        **({"quarantined": dict(event.quarantined)} if event.quarantined else {}),
    }


_PHASES = ("look", "build", "put", "all")


def _watermark_lag_ms(event: CommitEvent) -> int | None:
    """Below zero where event time runs ahead of the clock."""
    return None if event.watermark_ms is None else event.at_ms - event.watermark_ms


def _small_share(event: CommitEvent) -> float | None:
    return None if event.small_files is None or not event.files else event.small_files / event.files


# ---------------------------------------------------------------- for Prometheus

_COUNTERS = {
    "batches": "Batches committed by this user.",
    "rows": "Rows committed.",
    "files": "Data files committed.",
    "bytes": "Bytes of the data files committed.",
    "conflicts": "Attempts of a commit that were lost to other writers.",
    "replays": "Replayed batches that were recognised as already committed.",
}


def samples(event: CommitEvent, totals: MetricTotals) -> Iterator[Sample]:
    """Counters and gauges of one user of one table. Unknown values are left out."""
    labels = {"table": event.table, "user": event.commit_user, "location": event.location}
    for name, text in _COUNTERS.items():
        yield Sample(f"pwc_{name}_total", "counter", text, getattr(totals, name), labels)
    for rule, rows in sorted(totals.quarantined.items()):
        text = "Bad rows that went into the quarantine, by the rule they broke."
        yield Sample("pwc_quarantined_rows_total", "counter", text, rows, {**labels, "rule": rule})
    yield Sample("pwc_last_batch", "gauge", "Number of the last batch that was committed.", event.batch_id, labels)
    yield Sample(
        "pwc_last_commit_timestamp_seconds",
        "gauge",
        "When the last commit succeeded. time() - pwc_last_commit_timestamp_seconds is how long ago that was.",
        event.at_ms / 1000,
        labels,
    )
    for phase in _PHASES:
        if phase in event.timings_ms:
            yield Sample(
                "pwc_commit_duration_seconds",
                "gauge",
                "How long the last commit took, by phase, lost attempts included.",
                event.timings_ms[phase] / 1000,
                {**labels, "phase": phase},
            )
    yield from _watermark_samples(event, labels)
    small_share = _small_share(event)
    if small_share is not None:
        yield Sample(
            "pwc_small_files_ratio",
            "gauge",
            "Share of the last batch's files below a quarter of the size its tasks aimed at.",
            small_share,
            labels,
        )


def _watermark_samples(event: CommitEvent, labels: dict[str, str]) -> Iterator[Sample]:
    lag_ms = _watermark_lag_ms(event)
    if lag_ms is None or event.watermark_ms is None:
        return
    yield Sample(
        "pwc_watermark_timestamp_seconds",
        "gauge",
        "The watermark. time() - pwc_watermark_timestamp_seconds is how far event time is behind by now.",
        event.watermark_ms / 1000,
        labels,
    )
    yield Sample(
        "pwc_watermark_lag_seconds",
        "gauge",
        "How far event time was behind the clock at the last commit.",
        lag_ms / 1000,
        labels,
    )


# ---------------------------------------------------------------- where figures go


def _append(path: Path, line: str) -> None:
    """Opened and closed each time, so that a rotated file is left alone. One write, so that lines do not mix."""
    data = line.encode("utf-8", "replace") + b"\n"
    with path.open("ab+", buffering=0) as file:
        # A line that was cut off, for example by a full disk, must not corrupt this one.
        if file.tell():
            file.seek(-1, os.SEEK_END)
            data = data if file.read(1) == b"\n" else b"\n" + data
        written = file.write(data)
    if written != len(data):
        raise OSError(f"Only {written} of {len(data)} bytes could be appended to {path}.")


def _logger(name: str) -> logging.Logger:
    """By name. Where logging is not configured, as in Spark's Python workers, its lines go to the standard error."""
    logger = logging.getLogger(name)
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(logging.INFO)
    return logger
