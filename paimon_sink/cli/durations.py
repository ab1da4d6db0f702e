"""Durations on the command line, spelled as in options."""

from __future__ import annotations

import click

from paimon_sink.core.units import parse_duration_ms

__all__ = ["duration_ms"]

_LONGEST_MS = 100 * 365 * 24 * 3600 * 1000


def duration_ms(flag: str, text: str) -> int:
    found = parse_duration_ms(text)
    if found is None or found > _LONGEST_MS:
        raise click.UsageError(f"{flag} takes a duration with its unit, such as 30d, 12h, 15m or 90s, not {text!r}.")
    return found
