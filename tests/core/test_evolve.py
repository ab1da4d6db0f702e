"""Which changes two schemas need, by a table of rules: nothing is narrowed, dropped or renamed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pyarrow as pa
import pytest

from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.evolve import (
    AddColumn,
    AddField,
    Path,
    Refused,
    Rules,
    Widen,
    accepted,
    advice,
    after,
    dotted,
    in_words,
    needed_changes,
)
from paimon_sink.core.schema import SQL_TYPE

RULES = Rules()
WIDENING = Rules(widen=True)


def with_length(name: str, sql: str) -> pa.Field:
    return pa.field(name, pa.string(), metadata={SQL_TYPE: sql.encode()})


def said(incoming: pa.Schema, table: pa.Schema, rules: Rules) -> list[str]:
    found = needed_changes(incoming, table, rules)
    return [f"refused: {each}" if isinstance(each, Refused) else in_words(each) for each in found]


# ---------------------------------------------------------------- from a type to a type

TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(5,2)": pa.decimal128(5, 2),
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(9,4)": pa.decimal128(9, 4),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
    "struct<a: int>": pa.struct([("a", pa.int32())]),
}
WIDENED = {
    ("tinyint", "smallint"),
    ("tinyint", "int"),
    ("tinyint", "bigint"),
    ("smallint", "int"),
    ("smallint", "bigint"),
    ("int", "bigint"),
    ("float", "double"),
    ("decimal(5,2)", "decimal(9,2)"),
}
"""(the table has, the rows have): the table is widened."""
KEPT = {
    *((name, name) for name in TYPES),
    *((wide, narrow) for narrow, wide in WIDENED),
    # Values that the table's type holds are cast as they are written.
    *(("float", narrow) for narrow in ("tinyint", "smallint")),
    *(("double", narrow) for narrow in ("tinyint", "smallint", "int")),
    *(("decimal(5,2)", narrow) for narrow in ("tinyint",)),
    *(("decimal(9,2)", narrow) for narrow in ("tinyint", "smallint")),
    *(("decimal(9,4)", narrow) for narrow in ("tinyint", "smallint", "decimal(5,2)")),
}
"""The table stays as it is, and the rows fit."""


PATHS = {"column": "x", "struct": "x.x", "array": "x.element.x", "map": "x.value.x"}
FIXED: Mapping[Path, str] = {("x",): "the table is partitioned by it"}


def holding(name: str, where: str, *, nullable: bool) -> pa.Schema:
    """A column ``x`` with a field of that type in it, or of that type."""
    leaf = pa.field("x", TYPES[name], nullable=nullable)
    struct = pa.struct([leaf])
    kinds = {
        "column": leaf,
        "struct": pa.field("x", struct),
        "array": pa.field("x", pa.list_(pa.field("element", struct))),
        "map": pa.field("x", pa.map_(pa.string(), pa.field("value", struct))),
    }
    return pa.schema([kinds[where]])


@pytest.mark.parametrize("where", PATHS)
@pytest.mark.parametrize("has", TYPES)
def test_a_type_meets_a_type(has: str, where: str) -> None:
    for gets, nullable in itertools.product(TYPES, (True, False)):
        table, incoming = (holding(name, where, nullable=nullable) for name in (has, gets))
        narrow = f"refused: column {PATHS[where]} is {gets}, the table has {has}. Cast it"
        if (has, gets) in KEPT:
            assert said(incoming, table, WIDENING) == said(incoming, table, RULES) == [], (has, gets)
        elif (has, gets) in WIDENED:
            assert said(incoming, table, WIDENING) == [f"widen {PATHS[where]} from {has} to {gets}"]
            assert said(incoming, table, RULES) == [f"{narrow}, or set mergeSchema.typeWidening=true"]
            changes = accepted(needed_changes(incoming, table, WIDENING), table="t")
            assert after(table, changes) == holding(gets, where, nullable=nullable), "NOT NULL stays"
        else:
            assert said(incoming, table, WIDENING) == [narrow]


@pytest.mark.parametrize(("has", "gets"), sorted(WIDENED))
def test_a_column_that_a_table_is_partitioned_by_keeps_its_type(has: str, gets: str) -> None:
    table, incoming = (holding(name, "column", nullable=True) for name in (has, gets))

    assert said(incoming, table, Rules(widen=True, fixed=FIXED)) == [
        f"refused: column x is {gets}, the table has {has}. It keeps its type: the table is partitioned by it. Cast it"
    ]


@pytest.mark.parametrize(
    ("has", "gets", "expected"),
    [
        ("VARCHAR(5)", "VARCHAR(9)", ["widen x from varchar(5) to varchar(9)"]),
        ("VARCHAR(9)", "VARCHAR(5)", []),
        ("CHAR(5)", "CHAR(9)", []),
        ("CHAR(5)", "VARCHAR(9)", []),
        ("VARCHAR(5)", "CHAR(9)", []),
    ],
)
def test_a_varchar_gets_longer_and_nothing_else_of_a_length_does(has: str, gets: str, expected: list[str]) -> None:
    table, incoming = pa.schema([with_length("x", has)]), pa.schema([with_length("x", gets)])

    assert said(incoming, table, WIDENING) == expected
    assert said(incoming, table, RULES) == [], "too long a value is refused as it is written, as ever"


def test_a_plain_string_says_nothing_of_a_length() -> None:
    table = pa.schema([with_length("x", "VARCHAR(5)")])

    assert said(pa.schema([("x", pa.string())]), table, WIDENING) == []


# ---------------------------------------------------------------- columns that are new, missing or spelt otherwise

TABLE = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.struct([("a", pa.int32())]))])


def test_new_columns_come_last_and_are_nullable_with_all_that_is_in_them() -> None:
    inner = pa.struct([pa.field("b", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False)])
    incoming = pa.schema([pa.field("new", inner, nullable=False), *TABLE])

    [change] = needed_changes(incoming, TABLE, RULES)

    assert isinstance(change, AddColumn)
    assert change.field.type == pa.struct([("b", pa.list_(pa.field("element", pa.int32())))])
    assert after(TABLE, [change]).names == ["id", "s", "new"]
    assert after(TABLE, [change]).field("new").nullable


def test_new_fields_are_found_in_structs_arrays_and_maps() -> None:
    a, b = pa.field("a", pa.int32()), pa.field("b", pa.string())

    def schema(struct: pa.StructType) -> pa.Schema:
        return pa.schema([("s", struct), ("l", pa.list_(struct)), ("m", pa.map_(pa.string(), pa.list_(struct)))])

    found = needed_changes(schema(pa.struct([b, a])), schema(pa.struct([a])), RULES)

    assert [(type(each), dotted(each.path)) for each in found] == [
        (AddField, "s.b"),
        (AddField, "l.element.b"),
        (AddField, "m.value.element.b"),
    ]
    changed = after(schema(pa.struct([a])), accepted(found, table="t"))
    assert changed == schema(pa.struct([a, b])), "after the fields that were there"


def test_columns_that_the_rows_lack_are_left_alone() -> None:
    assert said(pa.schema([("s", pa.struct([("a", pa.int32())]))]), TABLE, WIDENING) == []


def test_rows_that_may_be_null_do_not_make_a_column_nullable() -> None:
    assert said(pa.schema([pa.field("id", pa.int64(), nullable=True)]), TABLE, WIDENING) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param([("ID", pa.int64())], [], id="one column in another case is that column"),
        pytest.param(
            [("id", pa.int64()), ("ID", pa.int64())],
            ["refused: column ID differs from id of the table only in case. Rename it"],
            id="beside it, it is refused",
        ),
        pytest.param(
            [("n", pa.int64()), ("N", pa.int64())],
            [
                "refused: column n is one of n and N, which differ only in case. Rename one",
                "refused: column N is one of n and N, which differ only in case. Rename one",
            ],
            id="two new ones",
        ),
        pytest.param(
            [("s", pa.struct([("A", pa.int32())]))],
            ["refused: column s.A differs from s.a of the table only in case. Rename it"],
            id="a field in another case",
        ),
        pytest.param(
            [("n", pa.struct([("a", pa.int32()), ("A", pa.int32())]))],
            ["refused: column n.a is one of a and A, which differ only in case. Rename one"],
            id="inside a new column",
        ),
        pytest.param(
            [("n", pa.int32()), ("n", pa.int32())], ["refused: column n is there twice. Rename one"] * 2, id="twice"
        ),
        pytest.param([("", pa.int32())], ["refused: column `` has no name. Give it one"], id="no name"),
        pytest.param(
            [("n", pa.null())],
            ["refused: column n has no type (void). Cast it to the type that it shall have"],
            id="void",
        ),
        pytest.param(
            [("n", pa.list_(pa.struct([("x", pa.null())])))],
            ["refused: column n.element.x has no type (void). Cast it to the type that it shall have"],
            id="void inside",
        ),
        pytest.param(
            [("s", pa.struct([("a.b", pa.int32())]))], ["add field s.`a.b` int"], id="a name with a dot in it"
        ),
        pytest.param([("it's `x`", pa.int32())], ["add column `it's ``x``` int"], id="a name with quotes in it"),
    ],
)
def test_names(fields: list[tuple[str, pa.DataType]], expected: list[str]) -> None:
    assert said(pa.schema(fields), TABLE, RULES) == expected


def test_the_keys_of_a_map_stay() -> None:
    def schema(key: pa.DataType) -> pa.Schema:
        return pa.schema([("m", pa.map_(key, pa.int32()))])

    assert said(schema(pa.int64()), schema(pa.int32()), WIDENING) == [
        "refused: column m.key is bigint, the table has int. The keys of a map stay. Cast them"
    ]


def test_all_refusals_are_told_at_once() -> None:
    found = needed_changes(pa.schema([("id", pa.string()), ("s", pa.int32()), ("n", pa.null())]), TABLE, WIDENING)

    with pytest.raises(SchemaMismatchError) as refused:
        accepted(found, table="sales.orders")

    assert str(refused.value) == (
        "Cannot write to sales.orders: column id is string, the table has bigint. Cast it; column s is int, the table "
        "has struct<a: int>. Cast it; column n has no type (void). Cast it to the type that it shall have."
    )


# ---------------------------------------------------------------- what an error says


def test_the_cure_is_named_where_it_would_help() -> None:
    new = pa.schema([("id", pa.int64()), ("note", pa.string())])
    wide = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64())]))])

    assert advice(new, TABLE, {}) == (
        " With mergeSchema=true the table is changed while the write is planned: add column note string."
    )
    assert "mergeSchema=true and mergeSchema.typeWidening=true" in advice(wide, TABLE, {})


@pytest.mark.parametrize(
    "incoming",
    [
        pytest.param(pa.schema([("id", pa.string()), ("note", pa.string())]), id="one of two problems"),
        pytest.param(pa.schema([("id", pa.int64())]), id="no problem"),
        pytest.param(pa.schema([("id", pa.int64()), ("note", pa.null())]), id="void"),
        pytest.param(pa.schema([("note", pa.string())]), id="a column that is not null is missing"),
    ],
)
def test_no_cure_is_named_that_would_not_help(incoming: pa.Schema) -> None:
    assert advice(incoming, TABLE, {}) == ""


def test_widening_a_partition_column_is_no_cure() -> None:
    table = pa.schema([("day", pa.int32())])

    assert advice(pa.schema([("day", pa.int64())]), table, {("day",): "the table is partitioned by it"}) == ""


def test_a_widened_field_keeps_its_metadata_and_its_place() -> None:
    table = pa.schema([pa.field("x", pa.int32(), nullable=False, metadata={b"comment": b"why"}), ("y", pa.string())])

    [change] = needed_changes(pa.schema([("x", pa.int64())]), table, WIDENING)

    assert isinstance(change, Widen)
    changed = after(table, [change])
    assert changed.names == ["x", "y"]
    assert (changed.field("x").metadata, changed.field("x").nullable) == ({b"comment": b"why"}, False)
