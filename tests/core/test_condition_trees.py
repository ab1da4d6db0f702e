"""Conditions joined by AND, OR and NOT: Spark's precedence, SQL's three truth values, fields inside of structs."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from paimon_sink.core.condition_rows import apply_filters
from paimon_sink.core.condition_text import Written, parse
from paimon_sink.core.condition_tree import AllOf, AnyOf, Not, Tree
from paimon_sink.core.conditions import columns_of, conditions
from paimon_sink.core.schema import SQL_TYPE

TRUTHS = [True, False, None]
NINE = pa.record_batch(
    {
        "id": pa.array(range(9), pa.int64()),
        "a": pa.array([a for a in TRUTHS for _ in TRUTHS], pa.bool_()),
        "b": pa.array(TRUTHS * 3, pa.bool_()),
    }
)
"""Every pair of truth values."""


def met(text: str, batch: pa.RecordBatch) -> list[int]:
    found: list[int] = apply_filters(conditions(text, batch.schema), batch).column("id").to_pylist()
    return found


# ---------------------------------------------------------------- how they are joined


def shape(tree: Tree[Written]) -> str:
    if isinstance(tree, AllOf | AnyOf):
        join = " and " if isinstance(tree, AllOf) else " or "
        return "[" + join.join(shape(part) for part in tree.parts) + "]"
    if isinstance(tree, Not):
        return "not " + shape(tree.part)
    return ".".join(tree.path) + tree.comparison.value + ",".join(literal.written for literal in tree.literals)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a=1 OR b=2 AND c=3", "[a=1 or [b=2 and c=3]]"),
        ("(a=1 OR b=2) AND c=3", "[[a=1 or b=2] and c=3]"),
        ("NOT a=1 AND b=2", "[not a=1 and b=2]"),
        ("NOT (a=1 AND b=2)", "not [a=1 and b=2]"),
        ("not not a=1 or NOT NOT NOT b=2", "[a=1 or not b=2]"),
        ("NOT(NOT(a=1))", "not not a=1"),
        ("a<>1 AND a != 2", "[not a=1 and not a=2]"),
        ("a NOT IN (1, 2)", "not ain1,2"),
        ("NOT a IN (1)", "not ain1"),
        ("a BETWEEN 1 AND 2 AND b=3", "[[a>=1 and a<=2] and b=3]"),
        ("NOT a BETWEEN 1 AND 2 OR b=3", "[not [a>=1 and a<=2] or b=3]"),
        ("a NOT BETWEEN -1 AND +2", "not [a>=-1 and a<=+2]"),
        ("a NOT LIKE 'x%'", "not alike'x%'"),
        ("NOT a IS NOT NULL", "not ais not null"),
        ("a.b.`c.d` = 1", "a.b.c.d=1"),
        ("((a=1))", "a=1"),
    ],
)
def test_the_words_bind_as_they_do_in_spark(text: str, wanted: str) -> None:
    assert shape(parse(text)) == wanted


def test_a_long_list_of_alternatives_is_no_deep_tree() -> None:
    text = " OR ".join(f"id = {number}" for number in range(5000))

    assert met(text, NINE) == list(range(9))


# ---------------------------------------------------------------- three truth values


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a = true AND b = true", [0]),
        ("a = true OR b = true", [0, 1, 2, 3, 6]),
        ("NOT (a = true AND b = true)", [1, 3, 4, 5, 7]),
        ("NOT (a = true OR b = true)", [4]),
        ("NOT a = true", [3, 4, 5]),
        ("a != true", [3, 4, 5]),
        ("NOT a = NULL", []),
        ("NOT (a = NULL AND b = true)", [1, 4, 7]),
        ("a = NULL OR b = true", [0, 3, 6]),
        ("NOT a IS NULL AND NOT b IS NOT NULL", [2, 5]),
        ("a NOT IN (true)", [3, 4, 5]),
        ("a NOT IN (true, NULL)", []),
        ("a IN (true, NULL)", [0, 1, 2]),
        ("NOT a IN (NULL)", []),
        ("a NOT IN (true, NULL) OR b = false", [1, 4, 7]),
    ],
)
def test_null_is_neither_true_nor_false(text: str, wanted: list[int]) -> None:
    assert met(text, NINE) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x != 'NaN'", [1, 2, 3]),
        ("NOT x <= 'NaN'", []),
        ("NOT x > 'NaN'", [0, 1, 2, 3]),
        ("NOT x < 'NaN'", [0]),
        ("NOT x > 1.5", [1, 2, 3]),
        ("NOT x < 0.0", [0, 1, 2, 3]),
        ("x <> 0.0", [0, 3]),
        ("x NOT IN (0.0, 7)", [0, 3]),
        ("x NOT IN ('NaN', 1.5)", [1, 2]),
        ("x NOT IN ('NaN', NULL)", []),
        ("x BETWEEN 0 AND 'NaN'", [0, 1, 2, 3]),
        ("x NOT BETWEEN -0.0 AND 1", [0, 3]),
        ("x NOT BETWEEN NULL AND 1", [0, 3]),
        ("x BETWEEN NULL AND 'NaN'", []),
    ],
)
def test_what_is_not_so_is_not_so_as_in_spark(text: str, wanted: list[int]) -> None:
    floats = pa.array([float("nan"), -0.0, 0.0, 1.5, None], pa.float64())

    assert met(text, pa.record_batch({"id": range(5), "x": floats})) == wanted


# ---------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("s LIKE 'ab%'", [0, 1, 2]),
        ("s LIKE 'ab'", [0]),
        ("s LIKE '%'", [0, 1, 2, 3, 4]),
        ("s LIKE ''", [3]),
        ("s NOT LIKE 'ab%%'", [3, 4]),
        (r"s LIKE 'ab\%%'", [2]),
        ("s LIKE 'ž%'", [4]),
        ("s NOT LIKE NULL", []),
    ],
)
def test_a_pattern_asks_for_a_beginning_or_for_the_whole(text: str, wanted: list[int]) -> None:
    texts = pa.array(["ab", "ab\nc", "ab%c", "", "žab", None])

    assert met(text, pa.record_batch({"id": range(6), "s": texts})) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("c LIKE 'ab'", []), ("c LIKE 'ab  '", [0, 1]), ("c LIKE 'ab %'", [0, 1]), ("c = 'ab'", [0, 1])],
)
def test_a_pattern_meets_a_padded_char(text: str, wanted: list[int]) -> None:
    column = pa.field("c", pa.string(), metadata={SQL_TYPE: b"CHAR(4)"})
    batch = pa.record_batch([[0, 1, 2], ["ab", "ab  ", "abc "]], schema=pa.schema([("id", pa.int64()), column]))

    assert met(text, batch) == wanted


# ---------------------------------------------------------------- fields

ADDRESSES = [
    {"city": "Paris", "geo": {"lat": 48.9}},
    {"city": None, "geo": None},
    None,
    {"city": "Rome", "geo": {"lat": None}},
]
PLACES = pa.record_batch(
    {
        "id": pa.array(range(4), pa.int64()),
        "address": pa.array(ADDRESSES, pa.struct([("city", pa.string()), ("geo", pa.struct([("lat", pa.float64())]))])),
    }
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("address.city = 'Paris'", [0]),
        ("ADDRESS.City <> 'Paris'", [3]),
        ("address.city IS NULL", [1, 2]),
        ("address IS NULL", [2]),
        ("address.geo IS NULL", [1, 2]),
        ("address.geo.lat > 40", [0]),
        ("address.geo.lat IS NULL AND address.geo IS NOT NULL", [3]),
        ("NOT address.city LIKE 'P%' OR address IS NULL", [2, 3]),
    ],
)
def test_a_field_is_null_where_what_it_is_in_is_null(text: str, wanted: list[int]) -> None:
    assert met(text, PLACES) == wanted


def test_a_field_of_a_null_struct_is_null_even_if_arrow_has_a_value_there() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([7, 7])], names=["n"], mask=pa.array([False, True]))

    assert met("st.n = 7", pa.record_batch({"id": [0, 1], "st": hidden})) == [0]
    assert met("st.n IS NULL", pa.record_batch({"id": [0, 1], "st": hidden})) == [1]


# ---------------------------------------------------------------- as values


def test_conditions_travel_and_name_the_columns_that_they_need() -> None:
    found = conditions(
        "NOT (address.city LIKE 'P%' OR id IN (1, NULL)) AND address IS NULL AND id < 1.5", PLACES.schema
    )

    travelled = pickle.loads(pickle.dumps(found))

    assert travelled == found
    assert {hash(condition) for condition in travelled} == {hash(condition) for condition in found}
    assert columns_of(found) == ["address", "id"]
    assert len(found) == 3
