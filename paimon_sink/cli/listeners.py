"""Listeners for people: who is fine, who waits, who fails since when, and with which error."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from paimon_sink.cli.columns import Column, fitted, lines
from paimon_sink.cli.figures import NOTHING, duration, many, state_of
from paimon_sink.cli.printable import printable
from paimon_sink.maintain.history import ListenerState

__all__ = ["listener_lines"]

_SHORT_NAME = 8


def listener_lines(
    listeners: Sequence[ListenerState], *, now_ms: int, width: int, reason_lines: int = 3
) -> Iterator[Text]:
    """A table, with the error of a failing listener below its line."""
    columns, _ = fitted(
        [
            Column(
                "listener",
                [printable(listener.name) for listener in listeners],
                is_text=True,
                shortest=2 * _SHORT_NAME,
                cuts_start=True,
            ),
            Column("user", [printable(listener.user) for listener in listeners], is_text=True, shortest=_SHORT_NAME),
            Column("state", [state_of(listener) for listener in listeners], is_text=True),
            Column("for", [_ago(listener.since_ms, now_ms) for listener in listeners]),
            Column("events owed", [f"{listener.owed:,}" for listener in listeners]),
            Column("failures", [f"{listener.failures:,}" for listener in listeners], leaves=1),
        ],
        width=width,
    )
    heading, *rows = lines(columns)
    yield Text(heading, style="dim")
    for listener, row in zip(listeners, rows, strict=True):
        yield Text(row, style="bold red" if listener.is_failing else "")
        if listener.is_failing:
            yield from (Text(line, style="red") for line in _reason(listener, now_ms, width, reason_lines))


def _reason(listener: ListenerState, now_ms: int, width: int, most: int) -> list[str]:
    last = "" if listener.failed_ms is None else f", last {_ago(listener.failed_ms, now_ms)} ago"
    error = printable(listener.error or "it did not say why")
    text = f"{many(listener.failures, 'failure')}{last}: {error}"
    return textwrap.wrap(
        text, width=max(20, width), initial_indent="  ", subsequent_indent="  ", max_lines=most, placeholder=" …"
    )


def _ago(at_ms: int | None, now_ms: int) -> str:
    return NOTHING if at_ms is None else duration(max(0, now_ms - at_ms))
