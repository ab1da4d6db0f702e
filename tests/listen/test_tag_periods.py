"""When a tag is due and what it is called: the cases of Paimon's own tests, and the names of others."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from paimon_sink.listen.tag_periods import DAILY, DASHES, HOURLY, NO_DASHES, NO_DASHES_NO_SPACES, Periods


def periods(period: str = HOURLY, formatter: str = DASHES, delay_s: int = 0) -> Periods:
    return Periods(period, formatter, timedelta(seconds=delay_s))


@pytest.mark.parametrize(
    ("period", "delay_s", "times", "tags"),
    [
        pytest.param(
            HOURLY,
            0,
            ["12:12:00", "12:59:00", "13:00:00", "13:00:01", "14:00:00"],
            ["2023-07-18 11", None, "2023-07-18 12", None, "2023-07-18 13"],
            id="hours",
        ),
        pytest.param(HOURLY, 0, ["12:12:00", "16:30:00"], ["2023-07-18 11", "2023-07-18 15"], id="only the latest"),
        pytest.param(
            HOURLY,
            10,
            ["12:00:09", "13:00:09", "13:00:10"],
            ["2023-07-18 11", None, "2023-07-18 12"],
            id="a delay, which the first does not wait for",
        ),
        pytest.param(DAILY, 0, ["00:00:00", "23:59:59"], ["2023-07-17", None], id="days"),
        pytest.param(HOURLY, 0, ["00:30:00"], ["2023-07-17 23"], id="the hour before midnight"),
        pytest.param(HOURLY, 0, ["13:00:00", "11:00:00", "14:00:00"], ["2023-07-18 12", None, "2023-07-18 13"], id="b"),
    ],
)
def test_the_tag_of_a_period_is_due_when_it_is_over(
    period: str, delay_s: int, times: list[str], tags: list[str | None]
) -> None:
    rule = periods(period, delay_s=delay_s)
    following: datetime | None = None
    found: list[str | None] = []
    for time in times:
        due = rule.due(datetime.fromisoformat(f"2023-07-18 {time}"), following)
        found.append(None if due is None else rule.name(due))
        following = following if due is None else rule.after(due)
    assert found == tags


@pytest.mark.parametrize(
    ("period", "formatter", "name"),
    [
        (DAILY, DASHES, "2023-07-18"),
        (DAILY, NO_DASHES, "20230718"),
        (DAILY, NO_DASHES_NO_SPACES, "20230718"),
        (HOURLY, DASHES, "2023-07-18 12"),
        (HOURLY, NO_DASHES, "20230718 12"),
        (HOURLY, NO_DASHES_NO_SPACES, "2023071812"),
    ],
)
def test_a_name_is_read_as_it_is_written(period: str, formatter: str, name: str) -> None:
    rule = periods(period, formatter)
    moment = datetime(2023, 7, 18, 12 if period == HOURLY else 0)
    assert rule.name(moment) == name
    assert rule.read(name) == moment


@pytest.mark.parametrize("name", ["2023-07-18 before the move", "2023-7-18", "savepoint-11", "2023-07-18 12", ""])
def test_a_name_of_somebody_else_is_none_of_ours(name: str) -> None:
    assert periods(DAILY).read(name) is None
    assert periods(DAILY).too_many([name, "2023-07-17"], keep=1, new="2023-07-17") == []


def test_the_oldest_go_and_never_the_one_just_made() -> None:
    names = ["2023-07-20", "2023-07-17", "mine", "2023-07-19", "2023-07-18"]
    assert periods(DAILY).too_many(names, keep=2, new="2023-07-20") == ["2023-07-17", "2023-07-18"]
    assert periods(DAILY).too_many(names, keep=9, new="2023-07-20") == []
    assert periods(DAILY).too_many(["2030-01-01", "2023-07-18"], keep=1, new="2023-07-18") == []
    assert periods(DAILY).latest(names) == datetime(2023, 7, 20)
