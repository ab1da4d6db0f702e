"""mark-done on real tables: the right partitions, in every place, whatever dies and whatever fails."""

from __future__ import annotations

import json
import logging
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import Step
from paimon_sink.errors import OptionError
from paimon_sink.formats.registry import parse_options
from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.mark_done import MarkDone
from paimon_sink.maintain.clean import clean
from tests.rest_server import RestCatalogServer
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.listeners import MARKS, seat_of, with_listener
from tests.support.victims import RETURNED, Batch, killed_driver

NAME = "mark-done"
KILLS = 5
BY_WATERMARK = {"mode": "watermark", "time-interval": "1d", "idle-time": "15m"}
AT_ONCE = {"time-interval": "1d", "idle-time": "0ms"}
"""By the clock: partitions of long ago are done with the next batch."""


def marking(lake: Lake, settings: dict[str, str] = BY_WATERMARK, **extra: str) -> Lake:
    """Event time is the column ``id``, in milliseconds."""
    return with_listener(lake, NAME, settings, **{"partitionBy": "day", "watermarkColumn": "id", **extra})


def ms(time: str) -> int:
    return int(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp() * 1000)


def marks(lake: Lake) -> dict[str, dict[str, int]]:
    """The success files, by the last value of their partition."""
    table = lake.open()
    return {
        path.split("/")[-2].partition("=")[2]: json.loads(table.store.read(table.store.join(table.location, path)))
        for path in lake.files("_SUCCESS")
    }


def waiting(lake: Lake) -> list[str]:
    state: Any = seat_of(lake, NAME).state
    return sorted(path.rpartition("=")[2] for path, *_ in state["pending"])


@pytest.mark.witness
def test_a_partition_is_marked_once_the_watermark_is_past_its_end_and_the_idle_time(lake: Lake) -> None:
    told = marking(lake)
    told.append(0, rows(ms("2024-02-02 23:00"), day="2024-02-02"))
    told.append(1, rows(ms("2024-02-03 00:15"), day="2024-02-03"))
    assert marks(told) == {}
    assert waiting(told) == ["2024-02-02", "2024-02-03"]

    told.append(2, rows(ms("2024-02-03 00:15") + 1, day="2024-02-03"))

    assert list(marks(told)) == ["2024-02-02"]
    assert waiting(told) == ["2024-02-03"]
    said = marks(told)["2024-02-02"]
    assert sorted(said) == ["creationTime", "modificationTime"]
    assert said["creationTime"] == said["modificationTime"] == pytest.approx(told.history()[-1].at_ms, abs=60_000)
    # Nobody minds the file.
    report = clean(told.open(), older_than_ms=3_600_000)
    assert (report.orphans, report.not_ours) == ((), ())
    assert other_engine(told).read_ids() == told.ids()


def test_one_that_is_written_again_is_marked_again_and_keeps_its_creation_time(lake: Lake) -> None:
    told = marking(lake, AT_ONCE)
    told.append(0, rows(0, day="2024-02-02"))
    told.append(1, rows(1, day="2024-02-03"))
    first = marks(told)["2024-02-02"]

    told.append(2, rows(2, day="2024-02-02"))  # late
    assert marks(told)["2024-02-02"] == first
    told.append(3, rows(3, day="2024-02-04"))

    again = marks(told)["2024-02-02"]
    assert again["creationTime"] == first["creationTime"]
    assert again["modificationTime"] > first["modificationTime"]
    assert sorted(marks(told)) == ["2024-02-02", "2024-02-03"]


def test_one_that_names_no_time_holds_up_nobody_and_is_told_once(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    told = marking(lake, AT_ONCE)
    with caplog.at_level(logging.WARNING, "paimon_sink.listen"):
        told.append(0, rows(0, day="2024-02-02"), rows(1, day=None), rows(2, day="unknown"))
        told.append(1, rows(3, day="2024-02-03"), rows(4, day=None), rows(5, day="unknown"))
    assert "2024-02-02" in marks(told)
    assert not {"unknown", "null", "__DEFAULT_PARTITION__"} & marks(told).keys()
    said = [record.getMessage() for record in caplog.records if "names no time" in record.getMessage()]
    assert len(said) == 2
    assert len(seat_of(told, NAME).state["skipped"]) == 2


def test_without_a_watermark_nothing_is_done_and_nothing_is_forgotten(local_lake: Lake) -> None:
    told = marking(local_lake)
    without = {key: value for key, value in told.extra.items() if key != "watermarkColumn"}
    Lake(told.options, told.table, without).append(0, rows(1, day="2024-02-02"))
    assert waiting(told) == ["2024-02-02"]
    assert seat_of(told, NAME).failures == 0
    told.append(1, rows(ms("2024-02-03 00:15") + 1, day="2024-02-03"))
    assert list(marks(told)) == ["2024-02-02"]


def test_idle_batches_that_move_the_watermark_mark_what_is_over(local_lake: Lake) -> None:
    told = marking(local_lake, watermarkIdle="1h")
    told.append(0, rows(ms("2024-02-02 23:00"), day="2024-02-02"))
    told.append(1)
    assert list(marks(told)) == ["2024-02-02"]


# ---------------------------------------------------------------- where time comes from


@pytest.mark.parametrize(
    ("partition_by", "settings", "names"),
    [
        pytest.param("days(ts)", {}, ["2024-02-02"], id="days"),
        pytest.param(
            "hours(ts)",
            {"timestamp-formatter": "yyyy-MM-dd-HH", "time-interval": "1h"},
            ["2024-02-02-10"],
            id="hours",
        ),
        pytest.param(
            "months(ts)", {"timestamp-pattern": "$months(ts)-01", "time-interval": "31d"}, ["2024-02"], id="m"
        ),
        pytest.param("bucket(2, id), days(ts)", {"timestamp-pattern": "$days(ts)"}, ["2024-02-02"], id="with a bucket"),
    ],
)
def test_transforms_of_iceberg_are_told_as_people_write_them(
    iceberg_sqlite_lake: Lake, partition_by: str, settings: dict[str, str], names: list[str]
) -> None:
    schema = StructType([StructField("id", LongType()), StructField("ts", TimestampType())])
    told = marking(iceberg_sqlite_lake, {**BY_WATERMARK, **settings}, partitionBy=partition_by, watermarkColumn="ts")
    for batch, day in enumerate((2, 5, 9)):
        month = 2 if batch == 0 else 3
        row = pa.RecordBatch.from_pydict(
            {"id": [1], "ts": [datetime(2024, month, day, 10, 30, tzinfo=UTC)]},
            schema=pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))]),
        )
        told.stream_writer(schema).commit([told.write(row, schema=schema)], batch)
    assert [name for name in marks(told) if name < "2024-03"] == names


def test_a_time_zone_is_where_partitions_end(local_lake: Lake) -> None:
    told = marking(local_lake, {**BY_WATERMARK, "idle-time": "0ms", "time-zone": "Asia/Tokyo"})
    told.append(0, rows(ms("2024-02-02 01:00"), day="2024-02-02"))
    told.append(1, rows(ms("2024-02-02 15:00"), day="2024-02-03"))
    assert marks(told) == {}
    told.append(2, rows(ms("2024-02-02 15:00") + 1, day="2024-02-03"))
    assert list(marks(told)) == ["2024-02-02"]


# ---------------------------------------------------------------- what dies and what fails


def test_killed_at_random_between_publish_and_tell_the_marks_are_right(lake: Lake) -> None:
    """Each batch has a partition of its own, which is done with the next."""
    dice = random.Random(11)
    told = marking(lake, {**AT_ONCE, "timestamp-pattern": "2024-02-02"}, partitionBy="id")
    created: dict[str, int] = {}
    told.append(0, rows(0))
    for batch in range(1, KILLS + 1):
        step = dice.choice([Step.AFTER_PUT, Step.COMMITTED, Step.BEFORE_NOTIFY, Step.NOTIFIED, RETURNED])
        killed_driver(told, Batch(batch, (batch,)), step)
        if dice.random() < 0.5:
            # Spark plays it again. Otherwise it was written down, and the next one comes.
            told.append(batch, rows(batch))
        for path, said in marks(told).items():
            assert created.setdefault(path, said["creationTime"]) == said["creationTime"]
    told.append(KILLS + 1, rows(KILLS + 1))
    assert sorted(map(int, marks(told))) == list(range(KILLS + 1))
    assert waiting(told) == [str(KILLS + 1)]
    assert {path: said["creationTime"] for path, said in marks(told).items()}.items() >= created.items()


def test_told_twice_marks_twice_and_keeps_the_creation_time(local_lake: Lake) -> None:
    told = marking(local_lake, AT_ONCE)
    told.append(0, rows(0, day="2024-02-02"))
    told.append(1, rows(1, day="2024-02-03"))
    first = marks(told)["2024-02-02"]
    for path in told.files("pwc/told"):
        table = told.open()
        table.store.delete(table.store.join(table.location, path))
    told.append(2, rows(2, day="2024-02-04"))  # and batch 1 once more
    again = marks(told)["2024-02-02"]
    assert again["creationTime"] == first["creationTime"]
    assert again["modificationTime"] > first["modificationTime"]


def test_an_action_that_fails_does_not_hold_up_the_others_and_all_are_asked_again(
    local_lake: Lake, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.jsonl"
    told = marking(
        local_lake, {**AT_ONCE, "actions": "custom, success-file", "custom.class": MARKS, "custom.file": str(notes)}
    )
    (tmp_path / "broken").touch()
    told.append(0, rows(0, day="2024-02-02"), rows(0, day="2024-02-03"))
    told.append(1, rows(1, day="2024-02-04"))
    assert sorted(marks(told)) == ["2024-02-02", "2024-02-03"]
    progress = seat_of(told, NAME)
    assert (progress.failures, progress.owed) == (1, 1)
    assert "custom of day=2024-02-02: RuntimeError: nobody home" in (progress.error or "")

    (tmp_path / "broken").unlink()
    told.append(2, rows(2, day="2024-02-05"))

    said = [json.loads(line) for line in notes.read_text().splitlines()]
    assert said == [[f"day=2024-02-0{day}", {"day": f"2024-02-0{day}"}] for day in (2, 3, 4)]
    assert (seat_of(told, NAME).failures, waiting(told)) == (0, ["2024-02-05"])


@pytest.mark.parametrize("left", [b"", b"{}", b"not json", b'{"creationTime": "x"}'], ids=str)
def test_a_success_file_of_others_that_says_nothing_is_replaced(local_lake: Lake, left: bytes) -> None:
    told = marking(local_lake, AT_ONCE)
    told.append(0, rows(0, day="2024-02-02"))
    table = told.open()
    table.store.write(table.store.join(table.location, "day=2024-02-02/_SUCCESS"), left)
    told.append(1, rows(1, day="2024-02-03"))
    assert sorted(marks(told)["2024-02-02"]) == ["creationTime", "modificationTime"]


# ---------------------------------------------------------------- the catalog's list


def test_done_partition_adds_it_to_the_list_of_a_rest_catalog(rest_lake: Lake, rest_server: RestCatalogServer) -> None:
    listed = {"table.metastore.partitioned-table": "true"}
    told = marking(rest_lake, {**AT_ONCE, "actions": "done-partition"}, **listed)
    told.append(0, rows(0, day="2024-02-02"))
    told.append(1, rows(1, day="2024-02-03"))
    assert rest_server.partitions("sales", "orders") == [{"day": "2024-02-02.done"}]
    told.append(2, rows(2, day="2024-02-02"))
    told.append(3, rows(3, day="2024-02-04"))
    assert rest_server.partitions("sales", "orders") == [{"day": "2024-02-02.done"}, {"day": "2024-02-03.done"}]
    assert seat_of(told, NAME).error is None


def test_done_partition_names_odd_values_and_null_as_the_directories_do(
    rest_lake: Lake, rest_server: RestCatalogServer
) -> None:
    settings = {**AT_ONCE, "actions": "done-partition", "timestamp-pattern": "2024-02-02"}
    told = marking(rest_lake, settings, **{"table.metastore.partitioned-table": "true"})
    told.append(0, rows(0, day="a/b: c%"), rows(1, day=None))
    told.append(1, rows(2, day="2024-02-02"))
    assert rest_server.partitions("sales", "orders") == [
        {"day": "__DEFAULT_PARTITION__.done"},
        {"day": "a/b: c%.done"},
    ]


@pytest.mark.parametrize("fixture", ["local_lake", "rest_lake", "iceberg_sqlite_lake"])
def test_a_catalog_without_a_list_is_refused_before_the_first_row(request: pytest.FixtureRequest, fixture: str) -> None:
    told = marking(request.getfixturevalue(fixture), {**AT_ONCE, "actions": "done-partition"})
    with pytest.raises(OptionError, match=r"its catalog keeps no list of partitions\. Use success-file or http-report"):
        told.stream_writer().check_plan()
    # Who gets past the plan all the same does not lose its batch.
    told.append(0, rows(0, day="2024-02-02"))
    assert told.ids() == [0]
    assert "keeps no list of partitions" in (seat_of(told, NAME).error or "")


# ---------------------------------------------------------------- settings


def test_a_table_without_partitions_is_refused_before_the_first_row(local_lake: Lake) -> None:
    told = with_listener(local_lake, NAME, AT_ONCE)
    with pytest.raises(OptionError, match=r"sales\.orders can be marked done: it has no partitions"):
        told.stream_writer().check_plan()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        pytest.param({}, ["time-interval is missing", "idle-time is missing"], id="nothing"),
        pytest.param(
            {**AT_ONCE, "mode": "event", "actons": "custom", "time-zone": "Mars"},
            ["mode must be process-time or watermark", "did you mean actions?", "time-zone must be the name of"],
            id="three at once",
        ),
        pytest.param({**AT_ONCE, "actions": "http-report"}, ["http.url is missing"], id="no address"),
        pytest.param({**AT_ONCE, "actions": "custom"}, ["custom.class is missing"], id="no class"),
        pytest.param(
            {**AT_ONCE, "http.url": "http://host/", "custom.file": "x"},
            ["http.url is for the action http-report, which is not", "custom.file is for the action custom, which"],
            id="settings of actions that are not asked for",
        ),
        pytest.param({**AT_ONCE, "actions": "succes-file"}, ["actions takes success-file, done-partition"], id="typo"),
        pytest.param(
            {**AT_ONCE, "actions": "custom", "custom.class": "no.such:Thing"},
            ["Cannot load the action"],
            id="no module",
        ),
        pytest.param(
            {**AT_ONCE, "actions": "custom", "custom.class": "collections:OrderedDict"},
            ["cannot be made"],
            id="not made for this",
        ),
        pytest.param({**AT_ONCE, "timestamp-formatter": "yyyyMM"}, ["must have a year, a month"], id="no day"),
        pytest.param({**AT_ONCE, "idle-time": "15"}, ["idle-time must be a duration"], id="no unit"),
    ],
)
def test_what_is_wrong_with_the_settings_is_said_before_the_first_row(
    local_lake: Lake, settings: dict[str, str], said: list[str]
) -> None:
    with pytest.raises(OptionError) as refused:
        marking(local_lake, settings).stream_writer().check_plan()
    for sentence in said:
        assert sentence in str(refused.value)
    assert not Path(local_lake.options["warehouse"]).exists()


def test_an_address_is_hidden_wherever_options_are_shown(local_lake: Lake) -> None:
    settings = {**AT_ONCE, "actions": "http-report", "http.url": "https://hooks.example/services/geheim"}
    options = parse_options(marking(local_lake, settings).all_options(), purpose=Purpose.STREAM_WRITE)
    assert "geheim" not in repr(options)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://host/hook?token=geheim", "must be an address that begins with http://"),
        ("https://user:geheim@host/hook", "has a login in its address"),
        ("http://host:geheim/", "must be an address that begins with http://"),
    ],
)
def test_an_address_is_not_repeated(url: str, said: str) -> None:
    settings = {**AT_ONCE, "actions": "http-report", "http.url": url}
    with pytest.raises(OptionError, match=rf"http\.url {said}") as refused:
        MarkDone(ListenerContext(NAME, settings))
    assert "geheim" not in str(refused.value)
