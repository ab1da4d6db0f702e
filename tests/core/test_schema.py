"""How incoming columns meet a table's: matching, safe casts, nulls and lengths. No JVM."""

from __future__ import annotations

import ctypes
import io
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.schema import SQL_TYPE, align, cast_problem, file_schema, length_limit, sql_type

UTC = "UTC"


def a_schema(*fields: tuple[str, pa.DataType] | pa.Field) -> pa.Schema:
    return pa.schema([field if isinstance(field, pa.Field) else pa.field(*field) for field in fields])


def required(name: str, data_type: pa.DataType) -> pa.Field:
    return pa.field(name, data_type, nullable=False)


def with_length(name: str, sql: str, data_type: pa.DataType | None = None) -> pa.Field:
    return pa.field(name, data_type or pa.string(), metadata={SQL_TYPE: sql.encode()})


def problems_of(incoming: pa.Schema, target: pa.Schema, *, case_sensitive: bool = False) -> str:
    with pytest.raises(SchemaMismatchError) as refused:
        align(incoming, target, table="sales.orders", case_sensitive=case_sensitive)
    said = str(refused.value)
    assert said.startswith("Cannot write to sales.orders: ")
    return said.removeprefix("Cannot write to sales.orders: ")


def aligned(array: pa.Array, target: pa.DataType | pa.Field) -> pa.Array:
    """One column, taken through the alignment."""
    field = target if isinstance(target, pa.Field) else pa.field("x", target)
    batch = pa.RecordBatch.from_arrays([array], schema=pa.schema([pa.field("x", array.type)]))
    result = align(batch.schema, pa.schema([field]), table="sales.orders", case_sensitive=False).apply(batch)
    result.validate(full=True)
    return result.column(0)


def through_parquet(array: pa.Array) -> list[Any]:
    """What a reader of the file sees."""
    table = pa.Table.from_batches([pa.RecordBatch.from_arrays([array], schema=pa.schema([("x", array.type)]))])
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False)
    file.seek(0)
    return list(pq.read_table(file).column("x").to_pylist())


# ---------------------------------------------------------------- matching by name

TARGET = a_schema(required("id", pa.int64()), ("day", pa.string()), ("price", pa.decimal128(10, 2)))


def test_columns_come_out_in_the_order_of_the_table() -> None:
    batch = pa.RecordBatch.from_pydict({"day": ["monday"], "price": [Decimal("1.50")], "id": [1]})
    incoming = a_schema(("day", pa.string()), ("price", pa.decimal128(3, 2)), ("id", pa.int64()))

    result = align(incoming, TARGET, table="t", case_sensitive=True).apply(batch.cast(incoming))

    assert result.schema.names == ["id", "day", "price"]
    assert result.to_pylist() == [{"id": 1, "day": "monday", "price": Decimal("1.50")}]


def test_a_missing_nullable_column_is_filled_with_nulls() -> None:
    batch = pa.RecordBatch.from_pydict({"id": [1, 2]})

    result = align(batch.schema, TARGET, table="t", case_sensitive=True).apply(batch)

    assert result.to_pylist() == [{"id": 1, "day": None, "price": None}, {"id": 2, "day": None, "price": None}]


def test_other_case_matches_when_case_does_not_matter() -> None:
    batch = pa.RecordBatch.from_pydict({"ID": [1], "Day": ["monday"]})

    result = align(batch.schema, TARGET, table="t", case_sensitive=False).apply(batch)

    assert result.to_pylist() == [{"id": 1, "day": "monday", "price": None}]


def test_an_exact_name_wins_over_another_case() -> None:
    target = a_schema(("a", pa.int64()), ("A", pa.int64()))
    batch = pa.RecordBatch.from_pydict({"A": [2], "a": [1]})

    for case_sensitive in (True, False):
        result = align(batch.schema, target, table="t", case_sensitive=case_sensitive).apply(batch)
        assert result.to_pylist() == [{"a": 1, "A": 2}]


@pytest.mark.parametrize(
    ("incoming", "case_sensitive", "problem"),
    [
        pytest.param(["id", "Day"], True, "column Day is not in the table. Drop it", id="case matters"),
        pytest.param(["id", "dau"], False, "column dau is not in the table. Drop it", id="extra"),
        pytest.param(
            ["id", "day", "DAY"], False, "column DAY and another one both fit day. Drop one", id="two fit one"
        ),
        pytest.param(
            ["id", "Day", "DAY"], False, "column DAY and another one both fit day. Drop one", id="neither exact"
        ),
        pytest.param(["id", "day", "day"], False, "column day is there twice. Rename one", id="twice"),
        pytest.param(["day"], False, "column id is missing and the table's column is not null. Add it", id="missing"),
    ],
)
def test_a_name_that_does_not_fit_is_refused(incoming: list[str], case_sensitive: bool, problem: str) -> None:
    schema = a_schema(*((name, pa.int64() if name == "id" else pa.string()) for name in incoming))

    assert problems_of(schema, TARGET, case_sensitive=case_sensitive).startswith(problem)


def test_a_name_that_fits_two_columns_is_refused() -> None:
    target = a_schema(("day", pa.string()), ("DAY", pa.string()))

    said = problems_of(a_schema(("Day", pa.string())), target)

    assert said == "column Day fits day and DAY: their names differ only in case. Rename it."


def test_all_problems_are_said_at_once() -> None:
    incoming = a_schema(("day", pa.date32()), ("price", pa.float64()), ("extra", pa.int8()))

    said = problems_of(incoming, TARGET)

    assert said == (
        "column extra is not in the table. Drop it, or add it to the table first; "
        "column id is missing and the table's column is not null. Add it; "
        "column day is date, the table has string. Cast it; "
        "column price is double, the table has decimal(10,2). Cast it."
    )


# ---------------------------------------------------------------- casts

LINE = pa.struct([("n", pa.int32()), ("price", pa.decimal128(5, 2))])
WIDE_LINE = pa.struct([("n", pa.int64()), ("price", pa.decimal128(9, 4))])


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        (pa.int8(), pa.int16(), -128),
        (pa.int8(), pa.int64(), 127),
        (pa.int16(), pa.int32(), -(2**15)),
        (pa.int32(), pa.int64(), 2**31 - 1),
        (pa.int8(), pa.float32(), -128),
        (pa.int16(), pa.float32(), 2**15 - 1),
        (pa.int32(), pa.float64(), -(2**31)),
        (pa.int8(), pa.decimal128(3, 0), Decimal(-128)),
        (pa.int32(), pa.decimal128(12, 2), Decimal("2147483647.00")),
        (pa.int64(), pa.decimal128(19, 0), Decimal(-(2**63))),
        (pa.float32(), pa.float64(), 0.5),
        (pa.decimal128(5, 2), pa.decimal128(5, 2), Decimal("-999.99")),
        (pa.decimal128(5, 2), pa.decimal128(7, 4), Decimal("999.9900")),
        (pa.decimal128(5, 2), pa.decimal128(38, 18), Decimal("999.99")),
        (pa.large_string(), pa.string(), "naïve"),
        (pa.large_binary(), pa.binary(), b"\x00"),
        (pa.timestamp("us", "America/New_York"), pa.timestamp("us", UTC), None),
        (pa.timestamp("s"), pa.timestamp("us"), datetime(2026, 1, 31)),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), [1, None]),
        (pa.large_list(pa.int32()), pa.list_(pa.int64()), [1, None]),
        (pa.map_(pa.int16(), pa.float32()), pa.map_(pa.int32(), pa.float64()), [(1, 0.5), (2, None)]),
        (LINE, WIDE_LINE, {"n": 1, "price": Decimal("1.5000")}),
        (pa.list_(LINE), pa.list_(WIDE_LINE), [{"n": 1, "price": None}, None]),
        (
            pa.map_(pa.string(), pa.list_(LINE)),
            pa.map_(pa.string(), pa.list_(WIDE_LINE)),
            [("k", [{"n": 1, "price": None}])],
        ),
    ],
    ids=str,
)
def test_a_cast_that_keeps_every_value_is_applied(source: pa.DataType, target: pa.DataType, value: Any) -> None:
    result = aligned(pa.array([value, None], pa.array([value], target).type).cast(source), target)

    assert result.to_pylist() == [value, None]
    assert result.type == file_schema(pa.schema([("x", target)])).field("x").type


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        (pa.int64(), pa.int32(), "column x is bigint, the table has int"),
        (pa.int16(), pa.int8(), "column x is smallint, the table has tinyint"),
        (pa.int32(), pa.float32(), "column x is int, the table has float"),
        (pa.int64(), pa.float64(), "column x is bigint, the table has double"),
        (pa.int64(), pa.decimal128(18, 0), "column x is bigint, the table has decimal(18,0)"),
        (pa.int32(), pa.decimal128(11, 2), "column x is int, the table has decimal(11,2)"),
        (pa.float64(), pa.float32(), "column x is double, the table has float"),
        (pa.float32(), pa.decimal128(38, 10), "column x is float, the table has decimal(38,10)"),
        (pa.decimal128(5, 2), pa.decimal128(5, 1), "column x is decimal(5,2), the table has decimal(5,1)"),
        (pa.decimal128(5, 2), pa.decimal128(5, 3), "column x is decimal(5,2), the table has decimal(5,3)"),
        (pa.decimal128(5, 0), pa.int64(), "column x is decimal(5,0), the table has bigint"),
        (pa.string(), pa.int64(), "column x is string, the table has bigint"),
        (pa.int64(), pa.string(), "column x is bigint, the table has string"),
        (pa.string(), pa.binary(), "column x is string, the table has binary"),
        (pa.bool_(), pa.int8(), "column x is boolean, the table has tinyint"),
        (pa.date32(), pa.timestamp("us"), "column x is date, the table has timestamp_ntz"),
        (pa.timestamp("us"), pa.timestamp("us", UTC), "column x is timestamp_ntz, the table has timestamp"),
        (pa.timestamp("us", UTC), pa.timestamp("ms"), "column x is timestamp, the table has timestamp_ntz(3)"),
        (pa.list_(pa.int64()), pa.list_(pa.int32()), "column x[] is bigint, the table has int"),
        (
            pa.map_(pa.int64(), pa.string()),
            pa.map_(pa.int32(), pa.string()),
            "column x.key is bigint, the table has int",
        ),
        (
            pa.map_(pa.string(), pa.int64()),
            pa.map_(pa.string(), pa.int32()),
            "column x.value is bigint, the table has int",
        ),
        (WIDE_LINE, LINE, "column x.n is bigint, the table has int"),
        (pa.list_(WIDE_LINE), pa.list_(LINE), "column x[].n is bigint, the table has int"),
        (
            pa.struct([("b", pa.int32())]),
            pa.struct([("a", pa.int32())]),
            "column x is struct<b: int>, the table has struct<a: int>",
        ),
        (pa.list_(pa.int32()), pa.int32(), "column x is array<int>, the table has int"),
        (
            pa.map_(pa.string(), pa.int32()),
            pa.list_(LINE),
            "column x is map<string, int>, the table has array<struct<n:",
        ),
    ],
    ids=str,
)
def test_a_cast_that_may_lose_something_is_refused(source: pa.DataType, target: pa.DataType, said: str) -> None:
    assert problems_of(a_schema(("x", source)), a_schema(("x", target))).startswith(said)


def test_a_finer_timestamp_is_refused_when_a_value_would_lose_digits() -> None:
    target = pa.timestamp("ms")

    whole = aligned(pa.array([datetime(2026, 1, 31, 0, 0, 0, 1000)], pa.timestamp("us")), target)
    with pytest.raises(SchemaMismatchError, match=r"column x has a value that does not fit timestamp_ntz\(3\)"):
        aligned(pa.array([datetime(2026, 1, 31, 0, 0, 0, 1001)], pa.timestamp("us")), target)

    assert whole.to_pylist() == [datetime(2026, 1, 31, 0, 0, 0, 1000)]


@given(value=st.integers(min_value=-(2**63), max_value=2**63 - 1), data=st.data())
def test_a_whole_number_is_never_changed_by_a_cast(value: int, data: st.DataObject) -> None:
    """Whatever pair of types the alignment accepts, the value that comes out is the one that went in."""
    numbers = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
    decimals = [pa.decimal128(38, scale) for scale in (0, 5, 18, 19)] + [pa.decimal128(10, 0), pa.decimal128(3, 0)]
    fits = [kind for kind in numbers if -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1)]
    source = data.draw(st.sampled_from(fits))
    target = data.draw(st.sampled_from([*numbers, *decimals, pa.float32(), pa.float64()]))
    array = pa.array([value], source)

    try:
        result = aligned(array, target)
    except SchemaMismatchError:
        return

    assert result.to_pylist() == [value]


# ---------------------------------------------------------------- nulls


def test_a_null_in_a_not_null_column_is_refused_by_name() -> None:
    with pytest.raises(
        SchemaMismatchError, match=r"^Cannot write to sales\.orders: column x has a null, the table's column"
    ):
        aligned(pa.array([1, None]), required("x", pa.int64()))


def a_struct(*, nullable: bool = False, kind: pa.DataType | None = None) -> pa.DataType:
    return pa.struct([pa.field("a", kind or pa.int32(), nullable)])


def a_list(element: pa.DataType, *, nullable: bool = False) -> pa.DataType:
    return pa.list_(pa.field("element", element, nullable))


def a_map(value: pa.DataType, *, nullable: bool = False) -> pa.DataType:
    return pa.map_(pa.string(), pa.field("value", value, nullable))


NESTED = [
    pytest.param(a_struct(), {"a": 1}, {"a": None}, "x.a", id="struct"),
    pytest.param(a_list(pa.int32()), [1, 2], [1, None], "x[]", id="list"),
    pytest.param(a_map(pa.int32()), [("k", 1)], [("k", None)], "x.value", id="map"),
    pytest.param(a_list(a_struct(), nullable=True), [{"a": 1}, None], [{"a": None}], "x[].a", id="struct in list"),
    pytest.param(a_struct(kind=a_list(pa.int32())), {"a": [1]}, {"a": [None]}, "x.a[]", id="list in struct"),
    pytest.param(a_struct(kind=a_list(pa.int32())), {"a": []}, {"a": None}, "x.a", id="no list in struct"),
    pytest.param(
        a_map(a_struct(), nullable=True),
        [("k", {"a": 1}), ("l", None)],
        [("k", {"a": None})],
        "x.value.a",
        id="struct in map",
    ),
    pytest.param(a_list(a_list(pa.int32())), [[], [1]], [[1], [None]], "x[][]", id="list in list"),
    pytest.param(a_struct(kind=a_struct()), {"a": {"a": 1}}, {"a": None}, "x.a", id="struct in struct"),
    pytest.param(a_struct(nullable=True, kind=a_struct()), {"a": None}, {"a": {"a": None}}, "x.a.a", id="deep"),
    pytest.param(
        a_map(a_map(pa.int32())), [("k", [("l", 1)])], [("k", [("l", None)])], "x.value.value", id="map in map"
    ),
]


def optional(data_type: pa.DataType) -> pa.DataType:
    """The same type with nulls allowed everywhere, as a careless source declares it."""
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(field.name, optional(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(pa.string(), pa.field("value", optional(data_type.item_type)))
    if pa.types.is_list(data_type):
        return pa.list_(pa.field("item", optional(data_type.value_type)))
    return data_type


@pytest.mark.parametrize(("target", "good", "bad", "path"), NESTED)
def test_a_nested_null_is_refused_by_its_path(target: pa.DataType, good: Any, bad: Any, path: str) -> None:
    with pytest.raises(SchemaMismatchError) as refused:
        aligned(pa.array([good, bad], optional(target)), target)

    assert str(refused.value) == (
        f"Cannot write to sales.orders: column {path} has a null, the table's field is not null. Filter or fill it."
    )


@pytest.mark.parametrize(("target", "good", "bad", "path"), NESTED)
def test_a_null_outside_the_slice_is_nobodys_business(target: pa.DataType, good: Any, bad: Any, path: str) -> None:
    whole = pa.array([bad, good, None, good, bad], optional(target))

    for array in (whole.slice(1, 3), whole.slice(1, 1), whole.slice(0, 4).slice(1), whole.slice(2, 1)):
        assert through_parquet(aligned(array, target)) == array.to_pylist()


@pytest.mark.parametrize(("target", "good", "bad", "path"), NESTED)
def test_a_null_inside_the_slice_is_found(target: pa.DataType, good: Any, bad: Any, path: str) -> None:
    whole = pa.array([good, None, good, bad, good], optional(target))

    with pytest.raises(SchemaMismatchError, match="has a null"):
        aligned(whole.slice(2, 2), target)


@pytest.mark.parametrize(("target", "good", "bad", "path"), NESTED)
def test_what_lies_below_a_null_is_no_row(target: pa.DataType, good: Any, bad: Any, path: str) -> None:
    """Arrow may keep anything below a null: here, values that would be refused."""
    plain = pa.array([good, bad], optional(target))
    hidden = pa.array([False, True])
    if pa.types.is_struct(target):
        array = pa.StructArray.from_arrays([plain.field(0)], fields=list(plain.type), mask=hidden)
    elif pa.types.is_map(target):
        array = pa.MapArray.from_arrays(plain.offsets, plain.keys, plain.items, type=plain.type, mask=hidden)
    else:
        array = pa.ListArray.from_arrays(plain.offsets, plain.values, type=plain.type, mask=hidden)

    assert through_parquet(aligned(array, target)) == [good, None]


@pytest.mark.parametrize(("target", "good", "bad", "path"), NESTED)
def test_a_missing_column_with_not_null_fields_can_be_written(
    target: pa.DataType, good: Any, bad: Any, path: str
) -> None:
    batch = pa.RecordBatch.from_pydict({"id": [1, 2]})
    schema = a_schema(("id", pa.int64()), ("x", target))

    result = align(batch.schema, schema, table="t", case_sensitive=True).apply(batch)

    assert through_parquet(result.column("x")) == [None, None]


def test_a_null_inside_the_key_of_a_map_is_refused_by_its_path() -> None:
    target = pa.map_(a_list(pa.string()), pa.int32())

    with pytest.raises(SchemaMismatchError, match=r"column x\.key\[\] has a null"):
        aligned(pa.array([[([None], 1)]], pa.map_(pa.list_(pa.string()), pa.int32())), target)


def leaves(nullable: bool) -> st.SearchStrategy[int | None]:
    small = st.integers(min_value=-9, max_value=9)
    return st.none() | small if nullable else small


def nested_rows(target: pa.DataType) -> st.SearchStrategy[Any]:
    """Values that fit, nulls only where the type allows them."""

    def inside(field: pa.Field) -> st.SearchStrategy[Any]:
        if not pa.types.is_nested(field.type):
            return leaves(field.nullable)
        return st.none() | nested_rows(field.type) if field.nullable else nested_rows(field.type)

    if pa.types.is_struct(target):
        return st.fixed_dictionaries({field.name: inside(field) for field in target})
    if pa.types.is_map(target):
        return st.dictionaries(st.sampled_from("klm"), inside(target.item_field), max_size=2).map(
            lambda entries: list(entries.items())
        )
    return st.lists(inside(target.value_field), max_size=3)


@st.composite
def nested_types(draw: st.DrawFn, depth: int = 3) -> pa.DataType:
    def child(name: str) -> pa.Field:
        leaf = depth == 1 or draw(st.booleans())
        return pa.field(name, pa.int32() if leaf else draw(nested_types(depth - 1)), draw(st.booleans()))

    match draw(st.sampled_from(["struct", "list", "map"])):
        case "struct":
            return pa.struct([child("a"), child("b")])
        case "list":
            return pa.list_(child("element"))
        case _:
            return pa.map_(pa.string(), child("value"))


def as_spark_sends_it(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """The same memory under another type: Spark promises fields without nulls and sends nulls below a null struct."""
    size_of_arrow_array = 80
    memory = ctypes.create_string_buffer(size_of_arrow_array)
    array._export_to_c(ctypes.addressof(memory))
    return pa.Array._import_from_c(ctypes.addressof(memory), data_type)


@pytest.mark.parametrize("trusted", [False, True], ids=["nullable source", "not-null source"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_slice_of_rows_that_fit_is_written_as_it_is(trusted: bool, data: st.DataObject) -> None:
    target = data.draw(nested_types())
    rows = data.draw(st.lists(st.none() | nested_rows(target), min_size=1, max_size=6))
    start = data.draw(st.integers(min_value=0, max_value=len(rows) - 1))
    length = data.draw(st.integers(min_value=1, max_value=len(rows) - start))
    array = pa.array(rows, optional(target)).slice(start, length)
    if trusted:
        array = as_spark_sends_it(array, target)

    result = aligned(array, target)

    assert result.to_pylist() == rows[start : start + length]
    assert through_parquet(result) == rows[start : start + length]


# ---------------------------------------------------------------- lengths


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        pytest.param(with_length("x", "VARCHAR(3)"), ["", "☃☃☃", None], ["", "☃☃☃", None], id="varchar"),
        pytest.param(with_length("x", "CHAR(3)"), ["", "☃", "abc", None], ["   ", "☃  ", "abc", None], id="char"),
        pytest.param(with_length("x", "VARBINARY(2)", pa.binary()), [b"", b"ab"], [b"", b"ab"], id="varbinary"),
    ],
)
def test_values_within_their_length_are_kept(field: pa.Field, values: list[Any], expected: list[Any]) -> None:
    assert aligned(pa.array(values, field.type), field).to_pylist() == expected


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        pytest.param(with_length("x", "VARCHAR(3)"), "four", "length 4, the table has VARCHAR(3)", id="varchar"),
        pytest.param(with_length("x", "CHAR(3)"), "☃☃☃☃", "length 4, the table has CHAR(3)", id="char"),
        pytest.param(
            with_length("x", "VARBINARY(2)", pa.binary()),
            b"abc",
            "length 3, the table has VARBINARY(2)",
            id="varbinary",
        ),
    ],
)
def test_a_value_that_is_too_long_is_refused(field: pa.Field, value: Any, said: str) -> None:
    with pytest.raises(SchemaMismatchError) as refused:
        aligned(pa.array([None, value, None]), field)

    assert str(refused.value) == f"Cannot write to sales.orders: column x has a value of {said}. Shorten it."


def test_the_length_of_a_field_is_read_from_its_metadata() -> None:
    assert sql_type(with_length("x", "VARCHAR(10)")) == "VARCHAR(10)"
    assert length_limit(with_length("x", "varchar(10)")) == ("VARCHAR", 10)
    assert length_limit(pa.field("x", pa.string())) is None
    assert sql_type(pa.field("x", pa.string())) is None


# ---------------------------------------------------------------- the schema of files


def test_files_name_list_elements_as_the_parquet_standard_says() -> None:
    schema = a_schema(required("x", pa.list_(pa.map_(pa.string(), pa.list_(pa.int8())))), ("day", pa.date32()))

    found = file_schema(schema)

    assert not found.field("x").nullable
    outer = found.field("x").type
    assert outer.value_field.name == "element"
    assert outer.value_type.item_type.value_field.name == "element"
    assert found.field("day") == pa.field("day", pa.date32())


def test_an_unchanged_batch_keeps_its_values() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"id": [1, 2], "day": ["a", None], "price": pa.array([Decimal("1.00"), None], pa.decimal128(10, 2))}
    )

    result = align(batch.schema, TARGET, table="t", case_sensitive=True).apply(batch.slice(1))

    assert result.to_pylist() == [{"id": 2, "day": None, "price": None}]


def test_fields_are_matched_by_name_for_rows_and_not_for_files() -> None:
    target = pa.struct([("a", pa.int64()), ("b", pa.string())])
    turned = pa.struct([("b", pa.string()), ("a", pa.int32())])

    assert cast_problem(turned, target, by_name=True) is None
    assert cast_problem(pa.struct([("b", pa.string())]), target, by_name=True) is None
    assert cast_problem(turned, target) is not None
    assert cast_problem(pa.struct([("b", pa.string())]), target) is not None
    strict = pa.struct([required("a", pa.int64()), ("b", pa.string())])
    assert cast_problem(pa.struct([("b", pa.string())]), strict, by_name=True) is not None
