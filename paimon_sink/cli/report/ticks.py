"""Where an axis has its ticks, and what they are called. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paimon_sink.cli.figures import clock_time

__all__ = ["Axis", "count_axis", "duration_axis", "share_axis", "time_axis"]

_MOST_TICKS = 5
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_DURATIONS = (
    *(step * 10**zeros for zeros in range(3) for step in (1, 2, 5)),
    *(step * _SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * _MINUTE for step in (1, 2, 5, 10, 15, 30)),
    *(step * _HOUR for step in (1, 2, 3, 6, 12)),
)
_TIMES = tuple(step for step in _DURATIONS if step >= _SECOND)


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    """Values with their names."""

    def place(self, value: float) -> float:
        """From 0 at the low end to 1 at the high one."""
        return (value - self.low) / (self.high - self.low)


def count_axis(values: Sequence[float]) -> Axis:
    return _from_zero(values, lambda span: max(1, _round_step(span)), _count)


def duration_axis(values: Sequence[float]) -> Axis:
    """In milliseconds, with steps that people know from clocks."""
    return _from_zero(values, lambda span: _clock_step(span, _DURATIONS), _duration)


def share_axis(values: Sequence[float]) -> Axis:
    return Axis(0, 1, [(part / 4, f"{part * 25}%") for part in range(5)])


def time_axis(first_ms: int, last_ms: int) -> Axis:
    """Ticks at full minutes, hours or days of UTC, as the span asks for."""
    if first_ms == last_ms:
        first_ms, last_ms = first_ms - _SECOND, last_ms + _SECOND
    step = int(_clock_step(last_ms - first_ms, _TIMES))
    begin = -(-first_ms // step) * step
    ticks = [(float(at), _time(at, step)) for at in range(begin, last_ms + 1, step)]
    return Axis(first_ms, last_ms, ticks)


def _from_zero(values: Sequence[float], step_of: Callable[[float], float], name: Callable[[float], str]) -> Axis:
    low, high = min(0.0, *values), max(0.0, *values)
    step = step_of((high - low) or 1)
    first, last = math.floor(low / step), max(1, math.ceil(high / step))
    ticks = [(number * step, name(number * step)) for number in range(first, last + 1)]
    return Axis(first * step, last * step, ticks)


def _round_step(span: float) -> float:
    """1, 2 or 5 and zeros: as few as give no more than five ticks."""
    least = span / (_MOST_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


def _clock_step(span: float, steps: Sequence[float]) -> float:
    least = span / (_MOST_TICKS - 1)
    clock_step = next((step for step in steps if step >= least), None)
    return clock_step if clock_step is not None else max(1, _round_step(span / _DAY)) * _DAY


def _count(value: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size * 10 or (abs(value) >= size and unit != "k"):
            return f"{value / size:g}{unit}"
    return f"{value:,.0f}"


def _duration(value: float) -> str:
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", _SECOND)):
        if abs(value) >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} ms" if value else "0"


def _time(at_ms: int, step: int) -> str:
    if step >= _DAY or at_ms % _DAY == 0:
        return clock_time(at_ms, "%m-%d" if step < 365 * _DAY else "%Y-%m")
    return clock_time(at_ms, "%H:%M" if step >= _MINUTE else "%H:%M:%S")
