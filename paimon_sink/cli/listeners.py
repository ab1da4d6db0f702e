"""Listeners for people: who is fine, who waits, who fails since when, and what it said."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from paimon_sink.cli.columns import Column, fitted, lines
from paimon_sink.cli.figures import NOTHING, duration, many
from paimon_sink.cli.terminal import printable
from paimon_sink.maintain.history import ListenerState

__all__ = ["listener_lines", "state_of"]

_SHORT_NAME = 8


def listener_lines(
    listeners: Sequence[ListenerState], *, now_ms: int, width: int, reason_lines: int = 3
) -> Iterator[Text]:
    """A table, with what a failing one said below its line."""
    columns, _ = fitted(
        [
            Column(
                "listener",
                [printable(one.name) for one in listeners],
                is_text=True,
                shortest=2 * _SHORT_NAME,
                cuts_start=True,
            ),
            Column("user", [printable(one.user) for one in listeners], is_text=True, shortest=_SHORT_NAME),
            Column("state", [state_of(one) for one in listeners], is_text=True),
            Column("for", [_ago(one.since_ms, now_ms) for one in listeners]),
            Column("events owed", [f"{one.owed:,}" for one in listeners]),
            Column("failures", [f"{one.failures:,}" for one in listeners], leaves=1),
        ],
        width=width,
    )
    heading, *rows = lines(columns)
    yield Text(heading, style="dim")
    for one, row in zip(listeners, rows, strict=True):
        yield Text(row, style="bold red" if one.is_failing else "")
        if one.is_failing:
            yield from (Text(line, style="red") for line in _reason(one, now_ms, width, reason_lines))


def state_of(listener: ListenerState) -> str:
    if listener.is_failing:
        return "failing"
    return "fine" if listener.owed == 0 else "waiting"


def _reason(listener: ListenerState, now_ms: int, width: int, most: int) -> list[str]:
    last = "" if listener.failed_ms is None else f", last {_ago(listener.failed_ms, now_ms)} ago"
    said = printable(listener.error or "it did not say why")
    text = f"{many(listener.failures, 'failure')}{last}: {said}"
    return textwrap.wrap(
        text, width=max(20, width), initial_indent="  ", subsequent_indent="  ", max_lines=most, placeholder=" …"
    )


def _ago(at_ms: int | None, now_ms: int) -> str:
    return NOTHING if at_ms is None else duration(max(0, now_ms - at_ms))
