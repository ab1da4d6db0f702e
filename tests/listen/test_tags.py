"""The listener tags on real tables: tags that every engine reads, that expiry respects, and that races do not spoil."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from paimon_sink.core.errors import PwcError, StorageError
from paimon_sink.core.steps import Step
from paimon_sink.errors import OptionError
from paimon_sink.formats.iceberg.catalogs import CatalogConflictError, Tables
from paimon_sink.formats.paimon.expiry import PaimonExpiry
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.verify import verify
from tests.support.clock import FakeClock
from tests.support.compaction import compact
from tests.support.lake import Lake, rows
from tests.support.listeners import seat_of, with_listener
from tests.support.time_travel import time_travel
from tests.support.victims import RETURNED, Batch, killed_driver

FAR = 40 * 24 * 3600 * 1000
HOURLY = {"mode": "watermark", "period": "hourly"}


def tagging(lake: Lake, settings: dict[str, str] = HOURLY, **extra: str) -> Lake:
    """Event time is the column ``id``, in milliseconds."""
    return with_listener(lake, "tags", settings, **{"watermarkColumn": "id", **extra})


def ms(time: str) -> int:
    return int(datetime.fromisoformat(f"2023-07-18 {time}").replace(tzinfo=UTC).timestamp() * 1000)


def tags(lake: Lake) -> list[str]:
    return sorted(lake.open().refs.tag_names())


def expire_all(lake: Lake) -> None:
    """All snapshots but the newest, as if it were long after."""
    later = max(found.at_ms for found in lake.history()) + FAR
    expire(lake.open(), Retention(1, 1, None), clock=FakeClock(later))


def test_hours_get_their_tags_and_so_many_stay(lake: Lake) -> None:
    told = tagging(lake, {**HOURLY, "keep": "3"})
    seen = []
    for batch, time in enumerate(["12:12", "12:59", "13:00", "14:00", "15:00"]):
        told.append(batch, rows(ms(time)))
        seen.append([name.removeprefix("2023-07-18 ") for name in tags(told)])
    assert seen == [["11"], ["11"], ["11", "12"], ["11", "12", "13"], ["12", "13", "14"]]
    # As another engine reads them.
    states = time_travel(told).states()
    assert states["tag-2023-07-18 12"] == [ms("12:12"), ms("12:59"), ms("13:00")]
    assert verify(told.open()).problems == ()


def test_what_a_tag_names_stays_when_snapshots_expire_and_can_go_with_it(lake: Lake) -> None:
    told = tagging(lake)
    told.append(0, rows(ms("12:12")))
    told.append(1, rows(ms("12:13")))
    compact(told)
    told.append(2, rows(ms("12:14")))
    expire_all(told)
    assert len(told.snapshot_ids()) < 4
    assert time_travel(told).states()["tag-2023-07-18 11"] == [ms("12:12")]
    assert verify(told.open()).problems == ()

    told.open().refs.drop_tag("2023-07-18 11")
    told.open().refs.drop_tag("2023-07-18 11")

    assert tags(told) == []
    assert verify(told.open()).problems == ()


@pytest.mark.witness
def test_a_name_that_is_taken_stays_what_it_is(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    _, second, third = lake.snapshot_ids()
    assert lake.open().refs.tag("kept", second)
    assert lake.open().refs.tag("kept", third)
    assert time_travel(lake).states()["tag-kept"] == [0, 1]


def test_a_snapshot_that_is_gone_gets_no_tag(lake: Lake) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    first = lake.snapshot_ids()[0]
    expire_all(lake)
    assert not lake.open().refs.tag("late", first)
    assert tags(lake) == []


@pytest.mark.parametrize("step", [Step.COMMITTED, Step.BEFORE_NOTIFY, Step.NOTIFIED, RETURNED], ids=str)
def test_a_driver_that_dies_leaves_no_hour_without_its_tag(local_lake: Lake, step: Step | None) -> None:
    told = tagging(local_lake)
    told.append(0, rows(ms("12:12")))
    killed_driver(told, Batch(1, (ms("13:00"),)), step)
    told.append(2, rows(ms("13:01")))
    assert tags(told) == ["2023-07-18 11", "2023-07-18 12"]
    assert time_travel(told).states()["tag-2023-07-18 12"] == [ms("12:12"), ms("13:00")]


def test_who_starts_anew_goes_on_after_the_tags_that_are_there(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    there = ["2023-07-18 13", "2023-07-18 14 by hand"]
    for name in there:
        local_lake.open().refs.tag(name, local_lake.snapshot_ids()[0])
    told = tagging(local_lake)
    for batch, time in enumerate(["13:30", "14:59"], start=1):
        told.append(batch, rows(ms(time)))
        assert tags(told) == there
    told.append(3, rows(ms("15:00")))
    assert tags(told) == [there[0], "2023-07-18 14", there[1]]


def test_when_a_snapshot_expired_before_the_listener_was_told_the_next_gets_the_tag(lake: Lake) -> None:
    told = tagging(lake)
    told.append(0, rows(ms("12:12")))
    killed_driver(told, Batch(1, (ms("13:00"),)), Step.BEFORE_NOTIFY)
    other = lake.with_options(commitUser="other")
    for batch in range(2):
        other.append(batch, rows(batch))
    expire_all(other)
    told.append(2, rows(ms("13:01")))
    assert tags(told) == ["2023-07-18 11", "2023-07-18 12"]
    assert time_travel(told).states()["tag-2023-07-18 12"] == [0, 1, ms("12:12"), ms("13:00"), ms("13:01")]


def test_by_the_clock_a_day_gets_its_tag_with_the_first_batch(local_lake: Lake) -> None:
    told = tagging(local_lake, {"time-zone": "UTC", "period-formatter": "without_dashes"})
    told.append(0, rows(1))
    told.append(1, rows(2))
    at = datetime.fromtimestamp(told.history()[0].at_ms / 1000, UTC)
    assert len(tags(told)) in (1, 2)  # midnight may have passed
    assert 1 <= (at.date() - datetime.strptime(tags(told)[0], "%Y%m%d").date()).days <= 1


def test_without_a_watermark_there_is_no_tag(local_lake: Lake) -> None:
    told = with_listener(local_lake, "tags", HOURLY)
    told.append(0, rows(1))
    assert tags(told) == []
    assert (seat_of(told, "tags").failures, seat_of(told, "tags").state) == (0, None)


# ---------------------------------------------------------------- races


def test_a_tag_that_is_set_while_snapshots_expire_keeps_its_files(
    local_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after the expiry has looked at the tags."""
    for batch in range(3):
        local_lake.append(batch, rows(batch))
    compact(local_lake)
    local_lake.append(4, rows(4))
    original: Callable[..., None] = PaimonExpiry._spare
    given: list[bool] = []

    def spare(self: PaimonExpiry, doomed: Sequence[Any], end: Any) -> None:
        original(self, doomed, end)
        if not given:
            given.append(local_lake.open().refs.tag("kept", 2))

    monkeypatch.setattr(PaimonExpiry, "_spare", spare)
    expire_all(local_lake)
    assert given == [True]
    assert time_travel(local_lake).states()["tag-kept"] == [0, 1]
    assert verify(local_lake.open()).problems == ()


def test_a_snapshot_that_is_being_removed_gets_no_tag(local_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data files are gone already, its own file is not."""
    for batch in range(3):
        local_lake.append(batch, rows(batch))
    compact(local_lake)
    local_lake.append(4, rows(4))
    original: Callable[..., None] = PaimonExpiry._delete
    given: list[bool] = []

    def delete(self: PaimonExpiry, paths: Sequence[str]) -> None:
        original(self, paths)
        if local_lake.files("snapshot-2") and not local_lake.files("snapshot-1"):
            given.append(local_lake.open().refs.tag("late", 2))

    monkeypatch.setattr(PaimonExpiry, "_delete", delete)
    expire_all(local_lake)
    assert given
    assert not any(given)
    assert tags(local_lake) == []


def test_a_tag_and_a_commit_at_once_are_both_in(iceberg_sqlite_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = iceberg_sqlite_lake
    lake.append(0, rows(0))
    original: Callable[..., Any] = Tables.commit
    rounds: list[str] = []

    def commit(self: Tables, table: Any, requirements: Any, updates: Any) -> Any:
        is_tag = updates[0].action in ("set-snapshot-ref", "remove-snapshot-ref") and len(updates) == 1
        if is_tag and len(rounds) < 2:
            rounds.append("lost")
            lake.append(len(rounds), rows(len(rounds)))
            raise CatalogConflictError(())
        return original(self, table, requirements, updates)

    monkeypatch.setattr(Tables, "commit", commit)
    assert lake.open().refs.tag("kept", lake.snapshot_ids()[0])
    assert len(rounds) == 2
    assert time_travel(lake).states()["tag-kept"] == [0]
    assert lake.ids() == [0, 1, 2]


@pytest.mark.parametrize("lands", [True, False])
def test_a_catalog_that_does_not_answer_is_asked_what_became_of_it(
    iceberg_sqlite_lake: Lake, monkeypatch: pytest.MonkeyPatch, lands: bool
) -> None:
    lake = iceberg_sqlite_lake
    lake.append(0, rows(0))
    original: Callable[..., Any] = Tables.commit

    def commit(self: Tables, table: Any, requirements: Any, updates: Any) -> Any:
        if lands:
            original(self, table, requirements, updates)
        raise StorageError("the connection broke")

    snapshot = lake.snapshot_ids()[0]
    monkeypatch.setattr(Tables, "commit", commit)
    if lands:
        assert lake.open().refs.tag("kept", snapshot)
    else:
        with pytest.raises(PwcError, match="the connection broke"):
            lake.open().refs.tag("kept", snapshot)
    monkeypatch.undo()
    assert tags(lake) == (["kept"] if lands else [])


def test_a_branch_of_that_name_is_not_taken_for_a_tag(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    lake.append(0, rows(0))
    snapshot = lake.snapshot_ids()[0]
    time_travel(lake).branch("work", snapshot)
    for change in (lambda: lake.open().refs.tag("work", snapshot), lambda: lake.open().refs.drop_tag("work")):
        with pytest.raises(PwcError, match="'work' is a branch"):
            change()
    assert tags(lake) == []


# ---------------------------------------------------------------- settings


def test_what_is_wrong_with_the_settings_is_said_before_the_first_row(local_lake: Lake) -> None:
    settings = {"mode": "batch", "period": "weekly", "delay": "24h", "keep": "0", "retain": "3"}
    with pytest.raises(OptionError, match="have 5 problems") as refused:
        tagging(local_lake, settings).stream_writer().check_plan()
    for said in ("mode must be", "period must be daily or hourly", "delay must be shorter", "keep must be", "'retain'"):
        assert said in str(refused.value)


def test_a_catalog_that_refuses_what_it_took_loses_no_metadata(
    iceberg_sqlite_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that repeats a request hears that another was first, of its own commit."""
    iceberg_sqlite_lake.append(0, rows(1))
    commit = SqlCatalog.commit_table

    def lands_and_is_refused(self: Any, *arguments: Any, **named: Any) -> Any:
        commit(self, *arguments, **named)
        monkeypatch.setattr(SqlCatalog, "commit_table", commit)
        raise CommitFailedException("the repeated request was refused")

    monkeypatch.setattr(SqlCatalog, "commit_table", lands_and_is_refused)
    assert iceberg_sqlite_lake.open().refs.tag("2023-07-18", iceberg_sqlite_lake.snapshot_ids()[0])

    assert tags(iceberg_sqlite_lake) == ["2023-07-18"]
    assert iceberg_sqlite_lake.ids() == [1]


@pytest.mark.parametrize("first", [-62_135_596_800_000, -(2**63) + 1], ids=["the first day", "the first moment"])
def test_before_the_calendar_begins_there_is_no_tag_and_no_trouble(local_lake: Lake, first: int) -> None:
    told = tagging(local_lake)
    told.append(0, rows(first))
    assert tags(told) == []
    assert seat_of(told, "tags").failures == 0
    told.append(1, rows(ms("12:12")))
    assert tags(told) == ["2023-07-18 11"]
