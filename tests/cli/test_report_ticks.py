"""Axes: ticks at round places, named so that they can be told apart."""

from __future__ import annotations

import pytest

from paimon_sink.cli.report.ticks import Axis, count_axis, duration_axis, time_axis

NOON = 1_763_294_400_000
"""2025-11-16 12:00:00 UTC."""
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


def names(axis: Axis) -> list[str]:
    return [name for _, name in axis.ticks]


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (0, ["0", "1"]),
        (1, ["0", "1"]),
        (3, ["0", "1", "2", "3"]),
        (4, ["0", "1", "2", "3", "4"]),
        (21_999, ["0", "10k", "20k", "30k"]),
        (9_000, ["0", "5,000", "10k"]),
        (1_138_379, ["0", "500k", "1M", "1.5M"]),
        (7_000_000_000, ["0", "2G", "4G", "6G", "8G"]),
    ],
)
def test_counts_have_round_ticks(most: int, ticks: list[str]) -> None:
    assert names(count_axis([most])) == ticks


@pytest.mark.parametrize(
    ("most_ms", "ticks"),
    [
        (229, ["0", "100 ms", "200 ms", "300 ms"]),
        (7_800, ["0", "2 s", "4 s", "6 s", "8 s"]),
        (100 * SECOND, ["0", "30 s", "1 min", "1.5 min", "2 min"]),
        (3 * HOUR, ["0", "1 h", "2 h", "3 h"]),
        (40 * DAY, ["0", "10 d", "20 d", "30 d", "40 d"]),
    ],
)
def test_durations_have_ticks_as_clocks_do(most_ms: int, ticks: list[str]) -> None:
    assert names(duration_axis([most_ms])) == ticks


def test_what_is_below_zero_is_in_the_axis() -> None:
    axis = duration_axis([-1500, 3000])

    assert axis.low <= -1500
    assert axis.high >= 3000
    assert 0 in [value for value, _ in axis.ticks]


@pytest.mark.parametrize(
    ("span_ms", "ticks"),
    [
        (40 * SECOND, ["12:00:00", "12:00:10", "12:00:20", "12:00:30", "12:00:40"]),
        (50 * MINUTE, ["12:00", "12:15", "12:30", "12:45"]),
        (20 * HOUR, ["12:00", "18:00", "11-17", "06:00"]),
        (6 * DAY, ["11-18", "11-20", "11-22"]),
    ],
)
def test_times_have_ticks_at_full_hours_and_days(span_ms: int, ticks: list[str]) -> None:
    assert names(time_axis(NOON, NOON + span_ms)) == ticks


@pytest.mark.parametrize("span", [10**power * step for power in range(14) for step in (1, 3, 7)])
def test_there_are_neither_too_many_ticks_nor_too_few(span: int) -> None:
    assert 2 <= len(duration_axis([span]).ticks) <= 6
    assert 2 <= len(count_axis([span]).ticks) <= 6
    assert len(time_axis(NOON, NOON + span).ticks) <= 6


def test_one_moment_is_in_the_middle_of_its_axis() -> None:
    assert time_axis(NOON, NOON).place(NOON) == 0.5
