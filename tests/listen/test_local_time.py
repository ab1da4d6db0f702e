"""Local times and the moments they name, also in zones whose clocks are turned."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.local_time import ClockSettings, epoch_ms, local_time

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def driver_in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("zone", [BERLIN, None], ids=["named", "the driver's own"])
@pytest.mark.parametrize(
    ("local", "utc"),
    [
        pytest.param("2024-02-02 00:00", "2024-02-01 23:00", id="winter"),
        pytest.param("2024-07-02 00:00", "2024-07-01 22:00", id="summer"),
        pytest.param("2024-03-31 02:30", "2024-03-31 01:30", id="an hour that is left out"),
        pytest.param("2024-10-27 02:30", "2024-10-27 00:30", id="an hour that comes twice: the first"),
    ],
)
def test_a_local_time_names_a_moment(driver_in_berlin: None, local: str, utc: str, zone: tzinfo | None) -> None:
    moment_ms = epoch_ms(datetime.fromisoformat(local), zone)
    assert moment_ms == epoch_ms(datetime.fromisoformat(utc), UTC)
    assert local_time(moment_ms, UTC) == datetime.fromisoformat(utc)
    if local != "2024-03-31 02:30":
        assert local_time(moment_ms, zone) == datetime.fromisoformat(local)


def test_milliseconds_are_not_lost() -> None:
    assert epoch_ms(local_time(1_700_000_000_123, BERLIN), BERLIN) == 1_700_000_000_123
    assert epoch_ms(local_time(-1, UTC), UTC) == -1


@pytest.mark.parametrize(
    ("settings", "mode", "zone"),
    [
        ({}, "process-time", None),
        ({"mode": "watermark"}, "watermark", UTC),
        ({"mode": "watermark", "time-zone": "Europe/Berlin"}, "watermark", BERLIN),
        ({"time-zone": "utc"}, "process-time", UTC),
    ],
)
def test_watermarks_are_read_as_utc_and_the_clock_as_the_drivers_own(
    settings: dict[str, str], mode: str, zone: tzinfo | None
) -> None:
    read = ClockSettings.of(ListenerContext("x", settings))

    assert (read.mode, read.zone) == (mode, zone)
