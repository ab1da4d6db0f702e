"""What a writer into many tables refuses before the first row, what it writes where, and with which options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_sink.core.clock import Moment
from paimon_sink.core.errors import OptionError, SchemaMismatchError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Purpose
from paimon_sink.core.route_marks import mark_in, mark_of, marked_attempt
from paimon_sink.formats.memory import MemoryLake, memory_lake
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.maintain.requeue import requeue
from paimon_sink.route.plan import RoutedColumns
from paimon_sink.route.task import write_routed
from paimon_sink.sink import Sink, TaskSettings
from paimon_sink.write.fanout import Limits
from tests.support.listeners import RECORDER

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("to", pa.string())])


@pytest.fixture
def lake() -> Iterator[MemoryLake]:
    with memory_lake() as opened:
        yield opened


def routing(lake: MemoryLake, **options: str) -> dict[str, str]:
    base = {key: text for key, text in lake.options("x.y").items() if key != "table"}
    named = {key.replace("__", "."): text for key, text in options.items()}
    return {**base, "routeColumn": "to", "route.database": "shop", "commitUser": "loader", **named}


def rows(*found: tuple[int | None, str | None, str | None], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = zip(*found, strict=True)
    return pa.RecordBatch.from_pydict(dict(zip(schema.names, map(list, columns), strict=True)), schema=schema)


def append(options: dict[str, str], number: int, *batches: pa.RecordBatch, overwrite: bool = False) -> TaskMessage:
    sink = Sink.of(options, overwrite=overwrite)
    sink.check(batches[0].schema)
    message = TaskMessage.from_bytes(sink.write(iter(batches), schema=batches[0].schema).to_bytes())
    sink.commit([message], batch_id=number)
    return message


def ids(lake: MemoryLake, table: str) -> list[int]:
    return sorted(lake.read(f"shop.{table}")["id"].to_pylist())


# ---------------------------------------------------------------- what is written


def test_each_row_is_in_the_table_it_names_without_its_route(lake: MemoryLake) -> None:
    append(routing(lake), 0, rows((1, "mon", "a"), (2, "tue", "b"), (3, "wed", "shop.a")), rows((4, "thu", "b")))

    assert lake.read("shop.a").to_pylist() == [{"id": 1, "day": "mon"}, {"id": 3, "day": "wed"}]
    assert lake.read("shop.b").to_pylist() == [{"id": 2, "day": "tue"}, {"id": 4, "day": "thu"}]
    assert lake.read("shop.pwc_routes").num_rows == 0


def test_a_table_has_the_batches_of_the_stream_by_their_numbers_and_says_where_they_came_from(lake: MemoryLake) -> None:
    for batch in (0, 3, 7):
        append(routing(lake), batch, rows((batch, None, "a")))

    snapshots = lake.snapshots("shop.a")
    assert [snapshot.batch_id for snapshot in snapshots] == [0, 3, 7]
    found = {key: text for key, text in snapshots[-1].properties.items() if "route" in key}
    assert found == {
        "pwc.route-home": "shop.pwc_routes",
        "pwc.route-user": "loader",
        "pwc.route-batch": "7",
        "pwc.route-column": "to",
    }
    of_home = lake.snapshots("shop.pwc_routes")[-1].properties
    assert [of_home[f"pwc.{key}"] for key in ("routed", "routed-tables", "rows-sent", "rows")] == ["1", "1", "1", "0"]


def test_an_option_of_one_table_stands_in_place_of_that_for_all(lake: MemoryLake) -> None:
    options = routing(lake, route__A__partitionBy="day", route__a__watermarkColumn="id", partitionBy="id")

    append(options, 0, rows((7, "mon", "a"), (8, "tue", "b")))

    tables = [open_table(parse_options(lake.options(f"shop.{name}"), purpose=Purpose.READ).table) for name in "ab"]
    assert [table.partition_spec for table in tables] == [("day",), ("id",)]
    marks = [lake.snapshots(f"shop.{name}")[-1].watermark_ms for name in ("a", "b")]
    assert marks == [7, None]


def test_a_check_of_one_table_judges_its_rows_alone(lake: MemoryLake) -> None:
    options = routing(lake, quarantine="shop.bad", quarantine__maxShare="1", route__a__check__positive="id > 0")

    append(options, 0, rows((-1, None, "a"), (-2, None, "b"), (3, None, "a")))

    assert (ids(lake, "a"), ids(lake, "b")) == ([3], [-2])
    (bad,) = lake.read("shop.bad").to_pylist()
    assert [bad[key] for key in ("id", "to", "_pwc_table", "_pwc_rule", "_pwc_user", "_pwc_batch")] == [
        -1,
        "a",
        "shop.a",
        "check.positive",
        "loader",
        0,
    ]


def test_rows_that_came_with_an_error_go_nowhere_whatever_their_route_is(lake: MemoryLake) -> None:
    options = routing(lake, errorColumn="day", quarantine="shop.bad", quarantine__maxShare="1")

    append(options, 0, rows((1, None, "a"), (2, "cut off", None), (3, "cut off", "b")))

    assert ids(lake, "a") == [1]
    found = {row["id"]: (row["_pwc_rule"], row["_pwc_table"]) for row in lake.read("shop.bad").to_pylist()}
    assert found == dict.fromkeys((2, 3), ("errorColumn", "shop.pwc_routes"))


def test_quarantined_rows_of_a_table_are_written_into_it_again(lake: MemoryLake) -> None:
    options = routing(lake, quarantine="shop.bad", quarantine__maxShare="1", check__positive="id > 0")
    append(options, 0, rows((1, None, "a"), (-2, "mon", "a"), (-3, None, "b"), (4, None, "b")))

    own = parse_options(lake.options("shop.a", quarantine="shop.bad"), purpose=Purpose.STREAM_WRITE)
    first, second = requeue(own), requeue(own)

    assert (first.written, first.left, second.written) == (1, 0, 0)
    assert (ids(lake, "a"), ids(lake, "b")) == ([-2, 1], [4])


def test_columns_are_added_to_each_table_that_lacks_them(lake: MemoryLake) -> None:
    old = pa.schema([("id", pa.int64()), ("to", pa.string())])
    append(routing(lake), 0, rows((1, "a"), (2, "b"), schema=old))  # type: ignore[arg-type]

    with pytest.raises(SchemaMismatchError, match="day"):
        append(routing(lake), 1, rows((3, "mon", "a")))
    append(routing(lake, mergeSchema="true"), 1, rows((3, "mon", "a"), (4, "tue", "c")))

    assert lake.read("shop.a").to_pylist() == [{"id": 1, "day": None}, {"id": 3, "day": "mon"}]
    assert lake.read("shop.b").schema.names == ["id"]


def test_listeners_hear_of_each_table_as_if_it_were_written_alone(lake: MemoryLake, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    options = {**routing(lake, listeners=RECORDER), f"listener.{RECORDER}.file": str(notes)}

    append(options, 0, rows((1, None, "a"), (2, None, "b"), (3, None, "b")))
    append(options, 4, rows((4, None, "a")))

    told = [json.loads(line) for line in notes.read_text().splitlines()]
    assert sorted((each["batch"], each["event"]["rows"]) for each in told) == [(0, 1), (0, 2), (4, 1)]


def test_all_tables_of_a_task_share_one_budget_of_memory(lake: MemoryLake) -> None:
    """As many open files and gathered bytes as for one table, however many there are."""
    from paimon_sink.write.files import RollingFile

    names = [f"t{number:02}" for number in range(40)]
    options = parse_options(routing(lake, partitionBy="day"), purpose=Purpose.STREAM_WRITE)
    batches = [
        rows(*((number * 40 + place, f"d{place % 3}", name) for place, name in enumerate(names)))
        for number in range(30)
    ]
    limits = Limits(split_rows=400, gathered_bytes=4_000, open_files=5)
    most: list[int] = []
    opened: set[RollingFile] = set()
    write = RollingFile.write

    def counted(file: RollingFile, table: pa.Table) -> Iterator[object]:
        opened.add(file)
        yield from write(file, table)
        most.append(sum(each.is_open for each in opened))

    columns = RoutedColumns.of(options, SCHEMA, overwrite=False, case_sensitive=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RollingFile, "write", counted)
        message = write_routed(
            iter(batches),
            options=options,
            columns=columns,
            task=TaskSettings(),
            batch_id=None,
            planned=Moment(0, 0),
            limits=limits,
        )

    assert max(most) <= 5
    assert len(most) > 60, "nothing was written out before the end"
    assert {part.table: part.rows for part in message.routed} == {f"shop.{name}": 30 for name in names}
    Sink(options).commit([message], batch_id=0)
    assert sum(lake.read(f"shop.{name}").num_rows for name in names) == 1200
    assert sorted(row for name in names for row in ids(lake, name)) == list(range(1200))


def test_files_of_a_routed_batch_bear_the_mark_of_their_home(lake: MemoryLake) -> None:
    message = append(routing(lake), 0, rows((1, None, "a")))

    (part,) = message.routed
    assert [mark_in(file.path) for file in part.files] == [mark_of("shop.pwc_routes")]
    assert mark_in("data-7d0e6f0e-8b46-4a8a-9b5f-0d6a3a1f2c33-0.parquet") is None
    assert len({marked_attempt("shop.pwc_routes") for _ in range(100)}) == 100


# ---------------------------------------------------------------- refused before the first row


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"table": "shop.orders"}, "table and routeColumn contradict each other"),
        ({"path": "/lake/orders"}, "path and routeColumn contradict each other"),
        ({"replaceWhere": "id > 5"}, "replaceWhere"),
        ({"partitionOverwriteMode": "dynamic"}, "only appends are routed"),
        ({"watermarkColumn": "id", "watermarkIdle": "5m"}, "moves no watermark"),
        ({"route__maxTabels": "5"}, r"did you mean route\.maxTables\?"),
        ({"route__orders": "5"}, r"write route\.<table>\.<option>"),
        ({"route__a__commitUser": "x"}, "is no option that one table may have"),
        ({"route__a__targetFileSize": "5 apples"}, r"For route\.shop\.a\.\*: targetFileSize must be"),
        ({"route__a__expire__keepLast": "5"}, r"expire\.keepLast does nothing without expire\.olderThan"),
        ({"route__a__partitionBy": "day", "route__shop__a__partitionBy": "id"}, "given twice with different values"),
        ({"route__onUnknown": "quarantine"}, "needs quarantine"),
        ({"route__onUnknown": "drop"}, "must be fail or quarantine"),
        ({"route__home": "elsewhere.home"}, "route.home is in another database"),
        ({"route__database": "a/b"}, "contains a slash"),
        ({"route__tables": "a,,b"}, "is empty"),
        ({"route__tables": "a.b.c"}, "database.table"),
        ({"route__maxTables": "0"}, "from 1 to"),
        ({"regional__maxAge": "5m"}, r"regional\.maxAge does nothing without regional"),
        ({"regional": "false", "regional__maxAge": "5m"}, "does nothing with regional=false"),
        ({"regional": "true", "regional__by": "partition"}, "partitions of a table are not carried yet"),
        ({"regional": "true", "regional__by": "galaxy"}, "must be table or partition"),
        ({"regional": "true", "regional__maxAge": "2d"}, "from 1s to 20h"),
        ({"regional": "true", "regional__maxShare": "3"}, "share from 0 to 1"),
        ({"quarantine": "shop.pwc_routes"}, "quarantine is the table itself"),
    ],
    ids=str,
)
def test_a_mistake_is_refused_with_its_cure(lake: MemoryLake, options: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        Sink.of(routing(lake, **options))


def test_options_of_routes_without_the_column_are_refused(lake: MemoryLake) -> None:
    with pytest.raises(OptionError, match=r"route\.maxTables does nothing without routeColumn"):
        Sink.of(lake.options("shop.a", **{"route.maxTables": "5"}))
    with pytest.raises(OptionError, match=r"route\.\* does nothing without routeColumn"):
        Sink.of(lake.options("shop.a", **{"route.a.partitionBy": "day"}))
    with pytest.raises(OptionError, match=r"route\.database is missing"):
        Sink.of({key: text for key, text in routing(lake).items() if key != "route.database"})


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (pa.schema([("id", pa.int64()), ("too", pa.string())]), r"no such column; did you mean too\?"),
        (pa.schema([("id", pa.int64()), ("to", pa.int64())]), "names of tables are strings"),
        (pa.schema([("to", pa.string())]), "no column beside to"),
    ],
    ids=["missing", "no string", "nothing else"],
)
def test_rows_that_cannot_be_routed_are_refused(lake: MemoryLake, schema: pa.Schema, told: str) -> None:
    with pytest.raises(OptionError, match=told):
        Sink.of(routing(lake)).check(schema)


def test_only_appends_are_routed(lake: MemoryLake) -> None:
    with pytest.raises(OptionError, match="only appends are routed"):
        append(routing(lake), 0, rows((1, None, "a")), overwrite=True)


def test_a_table_with_rows_is_no_home(lake: MemoryLake) -> None:
    append(routing(lake), 0, rows((1, None, "a")))

    with pytest.raises(OptionError, match="is a table of another shape, and no home"):
        append(routing(lake, route__home="shop.a"), 0, rows((1, None, "b")))


def test_a_read_passes_over_the_options_of_routes(lake: MemoryLake) -> None:
    append(routing(lake), 0, rows((1, None, "a")))

    parsed = parse_options({**routing(lake), "table": "shop.a"}, purpose=Purpose.READ)

    assert parsed.table.label == "shop.a"
