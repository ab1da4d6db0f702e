"""The watermark of a snapshot: the least over its tasks, and never back. The cases are those of Paimon's own tests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampNTZType, TimestampType

from paimon_sink.commit.coordinator import Coordinator
from paimon_sink.core.steps import Step, listening
from paimon_sink.errors import OptionError, SchemaMismatchError
from paimon_sink.formats.paimon.snapshots import PaimonSnapshotInfo
from tests.support.batches import opened, plan, sealed
from tests.support.compaction import compact
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import Place

DAY_MS = 86_400_000
TIMED = StructType([StructField("id", LongType()), StructField("at", LongType())])


def timed(*times: int | None) -> pa.RecordBatch:
    """Rows whose event times these are."""
    return pa.RecordBatch.from_pydict(
        {"id": list(range(len(times))), "at": list(times)}, schema=pa.schema([("id", pa.int64()), ("at", pa.int64())])
    )


@pytest.fixture
def plain_lake(place: Place, request: pytest.FixtureRequest) -> Lake:
    return place.lake(request)


@pytest.fixture
def lake(plain_lake: Lake) -> Lake:
    return plain_lake.with_options(watermarkColumn="at")


def append(lake: Lake, batch: int, *tasks: Sequence[int | None]) -> int | None:
    """A batch of tasks that saw these event times; what the table's newest snapshot says afterwards."""
    writer = lake.stream_writer(TIMED)
    messages = [lake.write(timed(*times), schema=TIMED) for times in tasks]
    writer.commit(messages, batch)
    return watermark(lake)


def watermark(lake: Lake) -> int | None:
    return lake.history()[-1].watermark_ms


def test_null_then_1024_then_600_stays_1024_null_stays_then_2048(lake: Lake) -> None:
    said = [append(lake, batch, [at]) for batch, at in enumerate([None, 1024, 600, None, 2048])]
    assert said == [None, 1024, 1024, 1024, 2048]


@pytest.mark.parametrize(
    ("tasks", "least"),
    [
        pytest.param([[1000], [0]], 0, id="the least of the tasks, not the latest"),
        pytest.param([[1000, 5], [7, 900]], 900, id="the latest of each task"),
        pytest.param([[1000], []], 1000, id="a task without rows does not hold it back"),
        pytest.param([[1000], [None, None]], 1000, id="a task whose rows have no time is idle"),
        pytest.param([[None, 1000]], 1000, id="a row without a time does not hide the others"),
        pytest.param([[-5]], -5, id="before 1970"),
        pytest.param([[], []], None, id="all idle"),
    ],
)
def test_it_is_the_least_over_the_tasks_that_saw_a_time(
    lake: Lake, tasks: list[list[int | None]], least: int | None
) -> None:
    append(lake, 0, [None])
    assert append(lake, 1, *tasks) == least


def test_a_lagging_task_that_comes_back_does_not_turn_it_back(lake: Lake) -> None:
    append(lake, 0, [1000], [])
    assert append(lake, 1, [2000], [500]) == 1000
    assert append(lake, 2, [3000], [1500]) == 1500


def test_a_replay_does_not_move_it(lake: Lake) -> None:
    append(lake, 0, [1000])
    assert append(lake, 0, [9000]) == 1000
    assert lake.batch_ids() == [0]


def test_a_time_in_the_far_future_is_written_and_does_not_count(lake: Lake) -> None:
    now_ms = int(time.time() * 1000)
    assert append(lake, 0, [1000, now_ms + 2 * DAY_MS], [2000]) == 1000
    assert sorted(row["at"] for row in lake.read()) == [1000, 2000, now_ms + 2 * DAY_MS]


def test_the_bound_of_the_future_is_an_option(lake: Lake) -> None:
    ahead = int(time.time() * 1000) + 2 * DAY_MS
    assert append(lake.with_options(watermarkMaxAhead="10d"), 0, [ahead]) == ahead


def test_the_delay_is_taken_off(lake: Lake) -> None:
    assert append(lake.with_options(watermarkDelay="1s"), 0, [5000]) == 4000


def test_an_empty_batch_moves_it_when_asked(lake: Lake) -> None:
    idle = lake.with_options(watermarkIdle="1h")
    append(idle, 0, [1000])
    before = int(time.time() * 1000)
    said = append(idle, 1, [], [])
    assert said is not None
    assert before - 3_600_000 <= said <= int(time.time() * 1000) - 3_600_000
    assert lake.batch_ids() == [0, 1]
    assert append(idle, 1, [], []) == said, "its replay does not"


def test_an_empty_batch_makes_no_snapshot_unless_it_is_asked_to(lake: Lake) -> None:
    append(lake, 0, [1000])
    assert append(lake, 1, []) == 1000
    assert lake.batch_ids() == [0]


def test_a_writer_without_event_time_and_a_compaction_carry_it_forward(lake: Lake, plain_lake: Lake) -> None:
    append(lake, 0, [1000])
    other = plain_lake.with_options(commitUser="other")
    other.stream_writer(TIMED).commit([other.write(timed(5), schema=TIMED)], 0)
    assert watermark(lake) == 1000
    compact(lake)
    assert lake.history()[-1].kind in ("compact", "replace")
    assert watermark(lake) == 1000
    assert append(lake, 1, [900]) == 1000


def test_a_round_that_is_lost_looks_again(lake: Lake) -> None:
    """Another writer moves it on between a look and a put."""
    append(lake, 0, [1000])
    table = lake.open()
    batch = replace(plan(lake, 1, lake.write(timed(2000), schema=TIMED)), watermark_ms=2000)

    def another(step: Step) -> None:
        if step is Step.AFTER_LOOK and len(lake.batch_ids()) == 1:
            with listening(lambda _: None):
                rival = lake.with_options(commitUser="rival")
                rival.stream_writer(TIMED).commit([rival.write(timed(7000), schema=TIMED)], 0)

    with listening(another):
        Coordinator(table).commit(batch)
    assert [found.watermark_ms for found in lake.history()] == [1000, 7000, 7000]


@pytest.mark.parametrize("kind", [TimestampType(), TimestampNTZType()], ids=["timestamp", "timestamp without zone"])
def test_timestamps_are_read_in_whole_milliseconds_of_utc(lake: Lake, kind: object) -> None:
    zone = "UTC" if isinstance(kind, TimestampType) else None
    schema = StructType([StructField("at", kind)])  # type: ignore[arg-type]
    arrow = pa.schema([("at", pa.timestamp("us", tz=zone))])
    batch = pa.RecordBatch.from_arrays([pa.array([1_999_999, None], arrow.field(0).type)], schema=arrow)
    lake.stream_writer(schema).commit([lake.write(batch, schema=schema)], 0)
    assert watermark(lake) == 1999


def test_a_column_that_is_not_there_or_holds_no_time_is_refused_by_name(plain_lake: Lake) -> None:
    with pytest.raises(SchemaMismatchError, match="watermarkColumn is 'when', and the table has no such column"):
        Lake(plain_lake.options, "sales.timed", {"watermarkColumn": "when"}).write(timed(1), schema=TIMED)
    with pytest.raises(SchemaMismatchError, match="must be a timestamp"):
        plain_lake.with_options(watermarkColumn="id_text").write(
            pa.RecordBatch.from_pydict({"id_text": ["1"]}), schema=StructType([StructField("id_text", StringType())])
        )


def test_options_about_event_time_need_its_column(plain_lake: Lake) -> None:
    with pytest.raises(OptionError, match="watermarkDelay needs watermarkColumn"):
        plain_lake.with_options(watermarkDelay="1s").stream_writer(TIMED)


def test_a_message_that_says_nothing_of_it_is_of_an_idle_task(lake: Lake) -> None:
    messages = [lake.write(timed(1000), schema=TIMED), lake.write(timed(5), schema=TIMED)]
    silent = sealed(replace(opened(messages[1]), watermark_ms=None))
    lake.stream_writer(TIMED).commit([messages[0], silent], 0)
    assert watermark(lake) == 1000


@pytest.mark.witness
def test_it_stands_where_engines_of_the_format_look_for_it(lake: Lake) -> None:
    append(lake, 0, [1024])
    newest = lake.history()[-1]
    if isinstance(newest, PaimonSnapshotInfo):
        assert newest.snapshot.watermark == 1024
    else:
        assert newest.properties["pwc.watermark"] == "1024"


@pytest.fixture
def iceberg(iceberg_sqlite_lake: Lake) -> Lake:
    """Event time is the id."""
    return iceberg_sqlite_lake.with_options(watermarkColumn="id")


def test_it_outlives_the_snapshots_that_say_it(iceberg: Lake) -> None:
    iceberg.append(0, rows(10))
    engine = other_engine(iceberg)
    engine.append(rows(1))
    engine.expire(1)
    iceberg.append(1, rows(5))
    assert watermark(iceberg) == 10


def test_what_was_rolled_back_does_not_count_once_it_expired(iceberg: Lake) -> None:
    engine = other_engine(iceberg)
    engine.create(rows().schema)
    engine.append(rows(1))
    iceberg.append(0, rows(99))
    engine.roll_back(iceberg.snapshot_ids()[0])
    iceberg.append(0, rows(5))
    assert watermark(iceberg) == 5
