"""What becomes of rows after each change of a column: old files and new ones, through every reader there is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_sink.core.errors import OptionError, SchemaMismatchError, TableChangedError
from paimon_sink.core.schema import SQL_TYPE
from paimon_sink.formats.values import LiveFile
from paimon_sink.sink import Sink
from tests.support import foreign
from tests.support.compaction import compact
from tests.support.evolving import append, columns, field_ids, job, planned, schema_ids, sink, with_note
from tests.support.iceberg_engine import native
from tests.support.lake import Lake
from tests.support.places import Place, places
from tests.support.reading import read, read_table
from tests.support.whole import assert_whole


@pytest.fixture(params=places("local", "sqlite", "process", in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@dataclass(frozen=True)
class Case:
    """A column before and after, with a value of each time. ``None``: it was not there."""

    before: pa.DataType | None
    after: pa.DataType
    old: Any
    new: Any

    @property
    def of_old(self) -> Any:
        """The old value as it reads now."""
        return None if self.before is None else self.old


CASES = {
    "int to bigint": Case(pa.int32(), pa.int64(), 2**31 - 1, 2**40),
    "float to double": Case(pa.float32(), pa.float64(), 0.5, 0.1),
    "decimal": Case(pa.decimal128(5, 2), pa.decimal128(20, 2), Decimal("-999.99"), Decimal("123456789012345.67")),
    "new int": Case(None, pa.int32(), None, 7),
    "new string": Case(None, pa.string(), None, "x"),
    "new timestamp": Case(None, pa.timestamp("us", tz="UTC"), None, None),
    "new array": Case(None, pa.list_(pa.int64()), None, [1, None]),
    "new struct": Case(None, pa.struct([("b", pa.int32()), ("c", pa.list_(pa.string()))]), None, {"b": 1, "c": ["y"]}),
    "new map": Case(None, pa.map_(pa.string(), pa.float64()), None, [("k", 0.5)]),
}
WHERE: dict[str, tuple[Callable[[pa.Field | None], pa.DataType], Callable[[Any], Any]]] = {
    "struct": (lambda field: pa.struct([("a", pa.string()), *([field] if field else [])]), lambda inner: inner),
    "array": (
        lambda field: pa.list_(pa.struct([("a", pa.string()), *([field] if field else [])])),
        lambda inner: [inner, None, inner],
    ),
    "map": (
        lambda field: pa.map_(pa.string(), pa.struct([("a", pa.string()), *([field] if field else [])])),
        lambda inner: [("k", inner), ("n", None)],
    ),
}


def rows_of(case: Case, where: str, number: int, *, is_old: bool) -> pa.Table:
    """One row with the value, and one with null in its place."""
    kind, value = (case.before, case.old) if is_old else (case.after, case.new)
    field = None if kind is None else pa.field("x", kind)
    ids = pa.array([number, number + 1], pa.int64())
    if where == "column":
        return pa.table({"id": ids, **({} if kind is None else {"x": pa.array([value, None], kind)})})
    shape, put = WHERE[where]
    inner = {"a": "t", **({} if kind is None else {"x": value})}
    return pa.table({"id": ids, "s": pa.array([put(inner), None], shape(field))})


def expected(case: Case, where: str) -> list[dict[str, Any]]:
    values = (case.of_old, case.new)
    if where == "column":
        return [
            {"id": number, "x": value}
            for first, value in zip((0, 10), values, strict=True)
            for number, value in ((first, value), (first + 1, None))
        ]
    put = WHERE[where][1]
    return [
        {"id": number, "s": value}
        for first, value in zip((0, 10), values, strict=True)
        for number, value in ((first, put({"a": "t", "x": value})), (first + 1, None))
    ]


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def theirs(lake: Lake) -> list[dict[str, Any]] | None:
    """The rows as the format's own library reads them."""
    if lake.format == "paimon":
        found: list[dict[str, Any]] = foreign.read(lake).to_pylist()
        return found
    if lake.format == "iceberg":
        scanned: list[dict[str, Any]] = native(lake).scan().to_arrow().to_pylist()
        return scanned
    return None


@pytest.mark.parametrize("where", ["column", *WHERE])
@pytest.mark.parametrize("case", CASES)
def test_old_and_new_rows_read_right_after_a_change(lake: Lake, case: str, where: str) -> None:
    found = CASES[case]
    append(lake, 0, rows_of(found, where, 0, is_old=True), merge=False)
    [first] = lake.snapshot_ids()
    as_it_was = by_id(read(lake))
    append(lake, 1, rows_of(found, where, 10, is_old=False), widen=True)
    second = lake.snapshot_ids()[-1]

    everything = expected(found, where)

    assert by_id(read(lake)) == everything
    assert theirs(lake) is None or _without_lost_nulls(lake, theirs(lake) or []) == _without_lost_nulls(
        lake, everything
    )
    assert by_id(read(lake, versionAsOf=str(first))) == as_it_was
    assert by_id(read(lake, startingVersion=str(second))) == everything[2:]
    assert by_id(read(lake, where="id < 10")) == everything[:2]
    assert by_id(read(lake, columns="id")) == [{"id": row["id"]} for row in everything]
    if where == "column" and not pa.types.is_nested(found.after):
        nulls = [row for row in everything if row["x"] is None]
        assert by_id(read(lake, where="x IS NULL")) == nulls
        for value in {found.of_old, found.new} - {None}:
            literal = f"'{value}'" if isinstance(value, str) else str(value)
            assert by_id(read(lake, where=f"x = {literal}")) == [row for row in everything if row["x"] == value]
            assert by_id(read(lake, where=f"x >= {literal}")) == [
                row for row in everything if row["x"] is not None and row["x"] >= value
            ]
    assert len(schema_ids(lake)) == 2

    # A query that still has the old columns goes on, and nobody's rows change when files are put together.
    append(lake, 2, rows_of(found, where, 20, is_old=True), merge=False)
    before = by_id(read(lake))
    compact(lake)
    assert by_id(read(lake)) == before
    assert before[:4] == everything
    assert len(lake.open().scans.live_files()) == 1, "files of both schemas become one"
    assert_whole(lake)


def _without_lost_nulls(lake: Lake, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """pyiceberg reads a null list or map of structs as an empty one, which is its own affair."""
    if lake.format != "iceberg":
        return by_id(rows)
    return by_id([{key: None if value == [] else value for key, value in row.items()} for row in rows])


def test_a_varchar_gets_longer(lake: Lake) -> None:
    def rows(number: int, length: int, text: str) -> pa.Table:
        name = pa.field("name", pa.string(), metadata={SQL_TYPE: f"VARCHAR({length})".encode()})
        return pa.table([pa.array([number]), pa.array([text])], schema=pa.schema([("id", pa.int64()), name]))

    append(lake, 0, rows(0, 3, "abc"))
    append(lake, 1, rows(1, 5, "abcde"), widen=True)
    append(lake, 2, rows(2, 4, "abcd"), widen=True)

    assert by_id(read(lake)) == [{"id": 0, "name": "abc"}, {"id": 1, "name": "abcde"}, {"id": 2, "name": "abcd"}]
    assert by_id(read(lake, where="name >= 'abcd'")) == by_id(read(lake))[1:]
    assert columns(lake)[1].type_name == ("string" if lake.format == "iceberg" else "varchar(5)")


# ---------------------------------------------------------------- ids, nulls, partitions


def test_ids_are_the_formats_own_and_never_given_twice(lake: Lake) -> None:
    append(lake, 0, pa.table({"id": [1], "s": pa.array([{"a": 1}], pa.struct([("a", pa.int64())]))}))
    before = field_ids(lake)

    new = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.int64())]))])
    planned(lake, pa.schema([("id", pa.int64()), ("n", pa.list_(new)), ("s", new)]))

    after = field_ids(lake)
    assert {name: after[name] for name in before} == before
    numbers = [number for number in after.values() if number is not None]
    assert len(set(numbers)) == len(numbers)
    if lake.format == "paimon":
        raw = foreign.table(lake).table_schema
        assert raw.highest_field_id == max(numbers)
    if lake.format == "iceberg":
        # The element of the new array has an id of its own.
        assert native(lake).metadata.last_column_id >= max(numbers)


def test_not_null_stays_not_null(lake: Lake) -> None:
    table = pa.table([pa.array([1])], schema=pa.schema([pa.field("id", pa.int32(), nullable=False)]))
    append(lake, 0, table)

    append(lake, 1, pa.table({"id": pa.array([2], pa.int64()), "n": ["x"]}), widen=True)

    assert [(column.path, column.type_name, column.nullable) for column in columns(lake)] == [
        (("id",), "bigint", False),
        (("n",), "string", True),
    ]
    with pytest.raises(SchemaMismatchError, match="column id has a null"):
        append(lake, 2, pa.table({"id": pa.array([None], pa.int64())}), widen=True)


def test_a_partition_column_keeps_its_type_and_others_of_a_partitioned_table_do_not(lake: Lake) -> None:
    partitioned = lake.with_options(partitionBy="day")
    append(partitioned, 0, pa.table({"day": pa.array([1], pa.int32()), "id": pa.array([1], pa.int32())}))
    wide = pa.table({"day": pa.array([1], pa.int64()), "id": pa.array([2], pa.int64())})

    with pytest.raises(SchemaMismatchError, match=r"column day is bigint.*keeps its type.*partitioned by"):
        append(partitioned, 1, wide, widen=True)
    assert schema_ids(lake) == [0], "all or nothing"

    append(partitioned, 1, wide.set_column(0, "day", pa.array([2], pa.int32())), widen=True)
    assert by_id(read(lake)) == [{"day": 1, "id": 1}, {"day": 2, "id": 2}]
    assert read(lake, where="day = 1 AND id = 1") == [{"day": 1, "id": 1}]


def test_a_change_that_is_refused_leaves_the_table_as_it_is(lake: Lake) -> None:
    append(lake, 0, pa.table({"id": [1], "price": pa.array([Decimal("1.00")], pa.decimal128(5, 2))}))
    rescaled = pa.table({"id": [1], "note": ["x"], "price": pa.array([Decimal("1.0000")], pa.decimal128(9, 4))})

    with pytest.raises(SchemaMismatchError, match=r"column price is decimal\(9,4\), the table has decimal\(5,2\)"):
        append(lake, 1, rescaled, widen=True)

    assert schema_ids(lake) == [0]
    assert lake.batch_ids() == [0]


def test_nothing_is_changed_where_the_event_time_is_refused(lake: Lake) -> None:
    append(lake, 0, pa.table({"id": [1]}))
    writer = sink(lake, mergeSchema="true", watermarkColumn="seen")

    with pytest.raises(SchemaMismatchError, match="seen"):
        writer.check(pa.schema([("id", pa.int64()), ("seen", pa.string())]))

    assert schema_ids(lake) == [0]


@pytest.mark.parametrize(
    ("options", "overwrite"),
    [
        ({"check__x": "nope > 1"}, False),
        ({"watermarkColumn": "day"}, False),
        ({"replaceWhere": "nope > 1"}, True),
        ({"replaceWhere": "id > 0"}, False),
    ],
    ids=["check", "watermarkColumn", "replaceWhere", "append"],
)
def test_a_write_that_nobody_planned_changes_nothing_where_it_is_refused(
    lake: Lake, options: dict[str, str], *, overwrite: bool
) -> None:
    append(lake, 0, with_note(1))
    writer = job(lake, overwrite=overwrite, mergeSchema="true", **options)
    rows = with_note(2).append_column("new", pa.array([1]))

    with pytest.raises((OptionError, SchemaMismatchError)):
        writer.write(iter(rows.to_batches()), schema=rows.schema)

    assert schema_ids(lake) == [0]


def test_what_a_format_has_no_room_for_is_refused_before_anything_is_changed(lake: Lake) -> None:
    append(lake, 0, pa.table({"id": [1]}))

    with pytest.raises(SchemaMismatchError, match=r"Cannot change sales.orders: column n"):
        planned(lake, pa.schema([("id", pa.int64()), ("ok", pa.int64()), ("n", pa.struct([]))]))

    assert schema_ids(lake) == [0]


def test_a_struct_is_written_by_the_names_of_its_fields(lake: Lake) -> None:
    """In any order and depth; what the rows lack is null."""
    inner = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string()), ("d", pa.int64())])))])
    whole = {"a": 1, "b": [{"c": "x", "d": 2}, None]}
    append(lake, 0, pa.table({"id": [0, 1], "s": pa.array([whole, None], inner)}))
    turned = pa.struct([("b", pa.list_(pa.struct([("d", pa.int64()), ("c", pa.string())]))), ("a", pa.int32())])
    part = pa.struct([("b", pa.list_(pa.struct([("d", pa.int64())])))])

    append(lake, 1, pa.table({"id": [2, 3, 4], "s": pa.array([None, whole, None], turned)}).slice(1), merge=False)
    append(lake, 2, pa.table({"id": [5, 6], "s": pa.array([None, {"b": [{"d": 7}]}], part)}), merge=False)

    assert {row["id"]: row["s"] for row in read(lake)} == {
        0: whole,
        1: None,
        3: whole,
        4: None,
        5: None,
        6: {"a": None, "b": [{"c": None, "d": 7}]},
    }
    assert schema_ids(lake) == [0]


def test_a_write_that_needs_nothing_changes_nothing(lake: Lake) -> None:
    for number in range(3):
        append(lake, number, pa.table({"id": [number], "n": ["x"]}), widen=True)

    assert schema_ids(lake) == [0]


def test_without_the_option_the_error_names_it(lake: Lake) -> None:
    append(lake, 0, pa.table({"id": [1]}))

    with pytest.raises(SchemaMismatchError) as refused:
        append(lake, 1, pa.table({"id": [1], "note": ["x"]}), merge=False)

    assert str(refused.value) == (
        "Cannot write to sales.orders: column note is not in the table. Drop it, or add it to the table first. With "
        "mergeSchema=true the table is changed while the write is planned: add column note string."
    )


def test_a_task_that_finds_other_columns_than_were_planned_says_what_to_do(lake: Lake) -> None:
    append(lake, 0, pa.table({"id": [1]}))
    rows = pa.table({"id": [2], "note": ["x"]})
    # As a task has it whose write was planned before somebody dropped the column.
    writer = replace(sink(lake, mergeSchema="true"), is_checked=True)

    with pytest.raises(
        SchemaMismatchError, match=r"column note is not in the table.*Restart the query.*mergeSchema adds"
    ):
        writer.write(iter(rows.to_batches()), schema=rows.schema)

    assert schema_ids(lake) == [0], "a task changes nothing that was planned otherwise"


# ---------------------------------------------------------------- while others write


def test_a_batch_of_before_a_widening_is_committed_after_it(lake: Lake) -> None:
    narrow = pa.table({"id": pa.array([1], pa.int32()), "s": pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))})
    wide = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64()), ("b", pa.string())]))])
    writer = sink(lake)
    message = writer.write(iter(narrow.to_batches()), schema=narrow.schema)

    planned(lake, wide, widen=True)
    outcome = writer.commit([message], 0)
    again = writer.commit([message], 0)

    assert outcome is not None
    assert not outcome.already_committed
    assert again is not None
    assert again.already_committed
    assert read(lake) == [{"id": 1, "s": {"a": 1, "b": None}}]
    assert_whole(lake)


def test_a_compaction_that_began_before_a_change_is_right_after_it(lake: Lake) -> None:
    for number in range(2):
        append(lake, number, pa.table({"id": pa.array([number], pa.int32())}))
    table = lake.open()

    planned(lake, pa.schema([("id", pa.int64()), ("n", pa.string())]), widen=True)

    with pytest.raises(TableChangedError, match="changed while it was in use"):
        compact(lake, table)
    compact(lake)
    assert by_id(read(lake)) == [{"id": 0, "n": None}, {"id": 1, "n": None}]
    assert [type(file) for file in lake.open().scans.live_files()] == [LiveFile]


# ---------------------------------------------------------------- others that read


def test_duckdb_reads_old_and_new_rows_of_an_iceberg_table(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    before = pa.table({"id": pa.array([1], pa.int32()), "s": pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))})
    append(lake, 0, before)
    new = pa.struct([("a", pa.int64()), ("b", pa.string())])
    append(
        lake, 1, pa.table({"id": pa.array([2**40]), "s": pa.array([{"a": 2, "b": "y"}], new), "n": [0.5]}), widen=True
    )
    location = native(lake).metadata_location.removeprefix("file://")

    with duckdb.connect() as connection:
        for name in ("avro", "iceberg"):
            package = importlib.import_module(f"duckdb_extension_{name}")
            path = Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
            connection.execute(f"LOAD '{path}'")
        found = connection.execute(f"SELECT id, s, n FROM iceberg_scan('{location}') ORDER BY id").fetchall()

    assert found == [(1, {"a": 1, "b": None}, None), (2**40, {"a": 2, "b": "y"}, 0.5)]


def test_duckdb_reads_data_files_of_both_schemas_by_name(local_lake: Lake) -> None:
    append(local_lake, 0, pa.table({"id": pa.array([1], pa.int32())}))
    append(local_lake, 1, pa.table({"id": pa.array([2**40]), "n": ["x"]}), widen=True)
    root = local_lake.open().location
    files = [f"{root}/{path}" for path in local_lake.data_files()]

    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT id::BIGINT, n FROM read_parquet($files, union_by_name=true) ORDER BY id", {"files": files}
        ).fetchall()

    assert found == [(1, None), (2**40, "x")]
    assert {pq.read_schema(file).field("id").type for file in files} == {pa.int32(), pa.int64()}


def test_columns_of_read_tables_have_the_types_of_today(lake: Lake) -> None:
    append(lake, 0, pa.table({"id": pa.array([1], pa.int32())}))
    planned(lake, pa.schema([("id", pa.int64()), ("n", pa.list_(pa.float64()))]), widen=True)

    assert [field.type for field in read_table(lake).schema] == [field.type for field in lake.open().schema]


def test_rows_with_a_new_column_replace_those_that_a_condition_on_it_names(lake: Lake) -> None:
    def overwrite(*ids: int) -> None:
        options = {**lake.all_options(), "mergeSchema": "true", "replaceWhere": "kind = 'late'"}
        writer = Sink.of(options, overwrite=True, is_stream=False)
        rows = pa.table({"id": ids, "kind": ["late"] * len(ids)})
        writer.check(rows.schema)
        writer.commit([writer.write(iter(rows.to_batches()), schema=rows.schema)])

    append(lake, 0, pa.table({"id": [1, 2]}))

    overwrite(3, 4)
    overwrite(5)

    assert sorted((row["id"], row["kind"]) for row in read(lake)) == [(1, None), (2, None), (5, "late")]
    assert_whole(lake)


def test_a_condition_on_a_column_that_nobody_has_adds_no_other_column(lake: Lake) -> None:
    append(lake, 0, pa.table({"id": [1, 2]}))
    options = {**lake.all_options(), "mergeSchema": "true", "replaceWhere": "nobody = 1"}

    with pytest.raises(OptionError, match="nobody"):
        Sink.of(options, overwrite=True, is_stream=False).check(pa.schema([("id", pa.int64()), ("note", pa.string())]))

    assert lake.open().schema.names == ["id"]
