"""Columns that only case tells apart, and the columns a read asks for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_sink.core.columns import alike, asked_columns, refuse_alike
from paimon_sink.core.errors import SchemaMismatchError

PAIR = pa.struct([("a", pa.int32()), ("A", pa.int32())])


@pytest.mark.parametrize(
    ("schema", "groups"),
    [
        (pa.schema([("id", pa.int64()), ("day", pa.string())]), []),
        (pa.schema([("id", pa.int64()), ("day", pa.string()), ("ID", pa.int64())]), [("id", "ID")]),
        (pa.schema([("s", PAIR)]), [("s.a", "s.A")]),
        (pa.schema([("l", pa.list_(PAIR))]), [("l[].a", "l[].A")]),
        (pa.schema([("m", pa.map_(pa.string(), PAIR))]), [("m.value.a", "m.value.A")]),
        (pa.schema([("s", pa.struct([("b", PAIR)]))]), [("s.b.a", "s.b.A")]),
        (pa.schema([("a", pa.int32()), ("s", pa.struct([("A", pa.int32())]))]), []),
    ],
    ids=["none", "columns", "struct", "list", "map", "deep", "other levels"],
)
def test_names_that_differ_only_in_case_are_found_at_every_level(
    schema: pa.Schema, groups: list[tuple[str, ...]]
) -> None:
    assert alike(schema) == groups
    if groups:
        with pytest.raises(SchemaMismatchError, match=r"Cannot create sales\.orders: .* differ only in case"):
            refuse_alike(schema, table="sales.orders")


TABLE = pa.schema(
    [
        ("c0", pa.float64()),
        ("n", pa.int32()),
        pa.field("key", pa.int64(), nullable=False),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("l", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))),
        ("d", pa.decimal128(10, 2)),
        ("t", pa.timestamp("us")),
    ]
)


def asked(*fields: tuple[str, pa.DataType] | pa.Field, case_sensitive: bool = False) -> list[str]:
    return asked_columns(pa.schema(list(fields)), TABLE, table="sales.orders", case_sensitive=case_sensitive)


@pytest.mark.parametrize(
    "fields",
    [
        [("t", pa.timestamp("us")), ("c0", pa.float64())],
        [("n", pa.int64())],
        [("n", pa.float64())],
        [("d", pa.decimal128(12, 2))],
        [("key", pa.int64())],
        [pa.field("key", pa.int64(), nullable=False)],
        [("s", pa.struct([("b", pa.string())]))],
        [("s", pa.struct([("a", pa.int64()), ("b", pa.string())]))],
        [("l", pa.list_(pa.struct([("a", pa.int32())])))],
    ],
)
def test_some_columns_in_any_order_and_wider_types_may_be_asked_for(
    fields: list[tuple[str, pa.DataType] | pa.Field],
) -> None:
    assert asked(*fields) == pa.schema(fields).names


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([("zz", pa.string())], "there is no column zz. The table has c0, n, key"),
        ([("c", pa.float64())], r"there is no column c \(did you mean c0\?\)"),
        ([("c0", pa.string())], "column c0 is double and is asked for as string"),
        ([("c0", pa.float32())], "column c0 is double and is asked for as float"),
        ([("n", pa.int16())], "column n is int and is asked for as smallint"),
        ([("d", pa.decimal128(10, 1))], r"column d is decimal\(10,2\) and is asked for as decimal\(10,1\)"),
        ([("t", pa.timestamp("us", tz="UTC"))], "column t is timestamp_ntz and is asked for as timestamp"),
        ([pa.field("n", pa.int32(), nullable=False)], "column n may be null in the table and is asked for as not null"),
        ([("s", pa.struct([("c", pa.int32())]))], "column s has no field c but a, b"),
        ([("s", pa.struct([("A", pa.int32())]))], "column s has no field A but a, b"),
        ([("s", pa.struct([("b", pa.string()), ("a", pa.int32())]))], "in another order than a, b"),
        ([("l", pa.list_(pa.struct([("a", pa.string())])))], r"column l\[\].a is int and is asked for as string"),
        ([("n", pa.int32()), ("N", pa.int32())], "column n is asked for twice"),
        ([("zz", pa.string()), ("c0", pa.string())], "there is no column zz; column c0 is double"),
    ],
)
def test_what_the_table_does_not_have_is_refused_by_name(
    fields: list[tuple[str, pa.DataType] | pa.Field], said: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=rf"Cannot read sales\.orders with this schema: .*{said}"):
        asked(*fields)


def test_case_is_ignored_unless_the_session_minds_it() -> None:
    assert asked(("C0", pa.float64())) == ["c0"]
    with pytest.raises(SchemaMismatchError, match=r"there is no column C0 \(did you mean c0\?\)"):
        asked(("C0", pa.float64()), case_sensitive=True)


def test_a_name_that_fits_two_columns_is_refused_unless_it_is_spelt_as_one() -> None:
    table = pa.schema([("id", pa.int64()), ("ID", pa.int64())])

    assert asked_columns(pa.schema([("ID", pa.int64())]), table, table="t", case_sensitive=False) == ["ID"]
    with pytest.raises(SchemaMismatchError, match="column Id could be id or ID"):
        asked_columns(pa.schema([("Id", pa.int64())]), table, table="t", case_sensitive=False)
