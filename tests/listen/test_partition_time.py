"""The time of a partition, read as Paimon reads it."""

from __future__ import annotations

from datetime import datetime

import pytest

from paimon_sink.core.option_values import BadValueError
from paimon_sink.listen.partition_time import PartitionTime, formatter


@pytest.mark.parametrize(
    ("value", "time"),
    [
        pytest.param("2023-01-01 20:08:08", datetime(2023, 1, 1, 20, 8, 8), id="a time"),
        pytest.param("2023-1-1 2:8:8", datetime(2023, 1, 1, 2, 8, 8), id="a time with short figures"),
        pytest.param("2023-01-01 20:08:08.5", datetime(2023, 1, 1, 20, 8, 8, 500_000), id="a fraction"),
        pytest.param("2023-01-01", datetime(2023, 1, 1), id="a date"),
        pytest.param("2023-1-1", datetime(2023, 1, 1), id="a date with short figures"),
        pytest.param("2023-02-30", datetime(2023, 3, 2), id="a day too late is carried over"),
        pytest.param("2023-13-01", datetime(2024, 1, 1), id="so is a month"),
        pytest.param("2023-12-31 24:00:00", datetime(2024, 1, 1), id="and an hour"),
        pytest.param("20230101", None, id="no dashes"),
        pytest.param("2023-01", None, id="a month"),
        pytest.param("2023-01-01 20", None, id="an hour alone"),
        pytest.param("2023-01-01 ", None, id="a blank after it"),
        pytest.param("unknown", None, id="a word"),
        pytest.param("__DEFAULT_PARTITION__", None, id="the name of the default partition"),
        pytest.param("", None, id="nothing"),
        pytest.param("0-1-1", None, id="a year before the calendar"),
        pytest.param("12345-1-1", None, id="a year after it"),
        pytest.param(None, None, id="null"),
    ],
)
def test_without_settings_the_first_value_is_a_date_or_a_time(value: str | None, time: datetime | None) -> None:
    assert PartitionTime().of({"dt": value, "region": "2020-01-01"}) == time


@pytest.mark.parametrize(
    ("pattern", "values", "time"),
    [
        ("$year-$month-$day 00:00:00", {"year": "2023", "month": "01", "day": "02"}, datetime(2023, 1, 2)),
        ("$y-$m-$d $h:00:00", {"y": "2023", "m": "1", "d": "2", "h": "3"}, datetime(2023, 1, 2, 3)),
        ("$dt", {"other": "dummy", "dt": "2023-01-01"}, datetime(2023, 1, 1)),
        ("$d $day", {"d": "2023-01-01", "day": "10:00:00"}, datetime(2023, 1, 1, 10)),
        ("$hours(ts):00:00", {"hours(ts)": "2023-01-01 04"}, datetime(2023, 1, 1, 4)),
        ("$dt", {"dt": r"\1"}, None),
        ("$dt", {"dt": None}, None),
        ("2023-01-$dt", {"day": "02"}, None),
    ],
)
def test_a_pattern_puts_the_values_together(pattern: str, values: dict[str, str | None], time: datetime | None) -> None:
    assert PartitionTime(pattern).of(values) == time


@pytest.mark.parametrize(
    ("form", "value", "time"),
    [
        ("yyyyMMdd", "20230102", datetime(2023, 1, 2)),
        ("yyyyMMddHH", "2023010203", datetime(2023, 1, 2, 3)),
        ("yyyyMMddHHmmss", "20230102030405", datetime(2023, 1, 2, 3, 4, 5)),
        ("yyyy-MM-dd-HH", "2023-01-02-03", datetime(2023, 1, 2, 3)),
        ("uuuu/M/d H:mm", "2023/1/2 3:04", datetime(2023, 1, 2, 3, 4)),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2023-01-02T03:04:05.678", datetime(2023, 1, 2, 3, 4, 5, 678_000)),
        ("yyyy''MM''dd", "2023'01'02", datetime(2023, 1, 2)),
        ("'day 'yyyyMMdd", "day 20230102", datetime(2023, 1, 2)),
        ("yyMMdd", "230102", datetime(2023, 1, 2)),
        ("yyyyMMdd", "20230230", datetime(2023, 2, 28)),
        ("yyyyMMdd", "20230232", None),
        ("yyyyMMdd", "20231301", None),
        ("yyyyMMddHH", "2023010124", None),
        ("yyyyMMdd", "2023-01-02", None),
        ("yyyyMMdd", "unknown", None),
        ("yyyyMMdd", "00000101", None),
    ],
)
def test_a_formatter_reads_them_as_java_does(form: str, value: str, time: datetime | None) -> None:
    assert PartitionTime(None, formatter(form)).of({"dt": value}) == time


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("yyyyMM", "must have a year, a month and a day"),
        ("HH:mm", "must have a year, a month and a day"),
        ("yyyy-MMM-dd", "has MMM; yyyy, MM, dd"),
        ("yyyyMMddThh", "has T; yyyy"),
        ("yyyyMMdd dd", "has d twice"),
        ("yyyyMMdd'", "has a quote that is not closed"),
    ],
)
def test_a_formatter_that_is_not_known_is_refused(form: str, said: str) -> None:
    with pytest.raises(BadValueError, match=said):
        formatter(form)
