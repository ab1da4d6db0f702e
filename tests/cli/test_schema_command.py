"""``pwc schema`` on the command line."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

from paimon_sink.cli.main import cli
from tests.support.command_line import named
from tests.support.evolving import append, columns, schema_ids
from tests.support.lake import Lake

LINES = pa.list_(pa.struct([("price", pa.decimal128(5, 2))]))


def run(lake: Lake, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["schema", *named(lake), *arguments])
    return result.exit_code, result.output


@pytest.fixture(params=["local_lake", "iceberg_sqlite_lake"])
def lake(request: pytest.FixtureRequest) -> Lake:
    found: Lake = request.getfixturevalue(request.param)
    table = pa.table(
        [pa.array([1], pa.int32()), pa.array(["d1"]), pa.array([None], LINES)],
        schema=pa.schema([pa.field("id", pa.int32(), nullable=False), ("day", pa.string()), ("lines", LINES)]),
    )
    append(found.with_options(partitionBy="day"), 0, table, merge=False)
    return found


def test_it_shows_columns_and_their_history(lake: Lake) -> None:
    append(lake, 1, pa.table({"id": pa.array([2], pa.int32()), "day": ["d1"], "note": ["x"]}))

    status, output = run(lake)

    lines = [line.split() for line in output.splitlines()]
    assert status == 0
    assert "Columns of sales.orders" in output
    assert ["id", "int", "not", "null"] in [line[1:] for line in lines]
    assert ["day", "string", "partition"] in [line[1:] for line in lines]
    assert ["lines.element.price", "decimal(5,2)"] in [line[1:] for line in lines]
    [first, second] = lake.snapshot_ids()
    assert any(line[:1] == ["0"] and str(first) in line for line in lines)
    assert any(line[:1] == ["1"] and str(second) in line and line[-3:] == ["added", "note", "string"] for line in lines)


def test_for_machines_it_is_one_json_object(lake: Lake) -> None:
    append(lake, 1, pa.table({"id": pa.array([2]), "day": ["d1"]}), widen=True)

    status, output = run(lake, "--json")

    told = json.loads(output)
    assert status == 0
    assert told["schema_id"] == 1
    assert [(column["name"], column["type"], column["nullable"]) for column in told["columns"]] == [
        ("id", "bigint", False),
        ("day", "string", True),
        ("lines", "array<struct<price: decimal(5,2)>>", True),
        ("lines.element.price", "decimal(5,2)", True),
    ]
    assert all(isinstance(column["id"], int) for column in told["columns"])
    assert [version["first_snapshot_id"] for version in told["history"]] == lake.snapshot_ids()
    assert [version["changes"] for version in told["history"]] == [[], ["changed id from int to bigint"]]


CHANGES = (
    *("--add", "lines.element.note string"),
    *("--add", "extra struct<a: int, b: array<date>>"),
    *("--widen", "id bigint"),
    *("--widen", "lines.element.price decimal(9,2)"),
    *("--comment", "day the day it was sold"),
)


def test_without_yes_the_changes_are_shown_and_not_made(lake: Lake) -> None:
    before = columns(lake)

    status, output = run(lake, *CHANGES)

    assert status == 0
    assert [line.strip() for line in output.splitlines()] == [
        "add field lines.element.note string",
        "add column extra struct<a: int, b: array<date>>",
        "widen id from int to bigint",
        "widen lines.element.price from decimal(5,2) to decimal(9,2)",
        "comment day 'the day it was sold'",
        "sales.orders can be changed so. Nothing was changed: add --yes.",
    ]
    assert columns(lake) == before


def test_with_yes_they_are_made_at_once(lake: Lake) -> None:
    status, output = run(lake, *CHANGES, "--yes")

    assert (status, output.splitlines()[-1]) == (0, "Changed sales.orders.")
    shown = {".".join(column.path): (column.type_name, column.nullable, column.comment) for column in columns(lake)}
    assert shown["id"] == ("bigint", False, None)
    assert shown["day"] == ("string", True, "the day it was sold")
    assert shown["lines.element.price"][0] == "decimal(9,2)"
    assert shown["lines.element.note"] == ("string", True, None)
    assert shown["extra.b"] == ("array<date>", True, None)
    assert schema_ids(lake) == [0, 1]
    assert lake.ids() == [1]


def test_what_is_there_already_needs_nothing(lake: Lake) -> None:
    run(lake, *CHANGES, "--yes")

    status, output = run(lake, *CHANGES, "--yes")

    assert (status, output) == (0, "sales.orders has all that already. Nothing was changed.\n")
    assert schema_ids(lake) == [0, 1]


@pytest.mark.parametrize("kind", ["tinyint", "varchar(20)", "struct<a: smallint, b: varchar(3)>"])
def test_what_a_format_keeps_in_a_wider_type_is_added_once(lake: Lake, kind: str) -> None:
    for _ in range(2):
        status, output = run(lake, "--add", f"n {kind}", "--add", "lines.element.n varchar(5)", "--yes")
        assert status == 0, output

    assert schema_ids(lake) == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--widen", "id smallint"], "column id is int and cannot become smallint"),
        (["--widen", "id string"], "column id is int and cannot become string"),
        (["--widen", "lines.element.price decimal(9,4)"], "cannot become decimal(9,4)"),
        (["--widen", "nope bigint"], "column nope is not in the table"),
        (["--widen", "dya string"], "Did you mean day?"),
        (["--add", "ID bigint"], "differs from id of the table only in case"),
        (["--add", "id string"], "column id is there as int, and not as string"),
        (["--add", "id bigint"], "column id is there as int, and not as bigint"),
        (["--add", "lines.note string"], "Name what is inside of it: lines.element"),
        (["--add", "day.note string"], "column day is string and takes no fields"),
        (["--add", "a.b string"], "column a is not in the table"),
        (["--comment", "lines.element text"], "has no comment of its own"),
        (["--add", "n string", "--add", "n int"], "column n is there as string, and not as int"),
    ],
)
def test_what_the_rules_forbid_is_refused(lake: Lake, arguments: list[str], said: str) -> None:
    for more in ([], ["--yes"], ["--json"]):
        status, output = run(lake, "--add", "fine string", *arguments, *more)
        assert (status, said in output) == (1, True), output

    assert schema_ids(lake) == [0]


def test_a_partition_column_keeps_its_type(local_lake: Lake) -> None:
    append(local_lake.with_options(partitionBy="day"), 0, pa.table({"day": pa.array([1], pa.int32()), "id": [1]}))

    status, output = run(local_lake, "--widen", "day bigint")

    assert (status, "column day keeps its type: the table is partitioned by day" in output) == (1, True), output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--add", "note"], "has no type"),
        (["--add", "note wat"], "is no type"),
        (["--comment", "day"], "has no text"),
        (["--yes"], "give one of them"),
        (["--option", "tabel=x"], "tabel"),
    ],
)
def test_what_makes_no_sense_is_bad_usage(lake: Lake, arguments: list[str], said: str) -> None:
    status, output = run(lake, *arguments)

    assert (status, said in output) == (2, True), output


def test_a_varchar_becomes_a_string_when_somebody_says_so(local_lake: Lake) -> None:
    append(local_lake, 0, pa.table({"id": [1]}))
    run(local_lake, "--add", "v varchar(3)", "--add", "s struct<v: varchar(3)>", "--yes")

    for kind in ("varchar(9)", "string"):
        status, output = run(local_lake, "--widen", f"v {kind}", "--widen", f"s.v {kind}", "--yes")
        assert status == 0, output
        shown = {".".join(column.path): column.type_name for column in columns(local_lake)}
        assert (shown["v"], shown["s.v"]) == (kind, kind)


def test_names_move_no_terminal(local_lake: Lake) -> None:
    append(local_lake, 0, pa.table({"id": [1]}))
    run(local_lake, "--add", "`a\x1b[31m.b` string", "--yes")

    status, output = run(local_lake)

    assert status == 0
    assert "\x1b" not in output
