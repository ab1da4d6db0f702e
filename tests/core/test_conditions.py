"""Conditions against a schema: the type a comparison takes place in, the values in it, and what is refused."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.core.condition_rows import apply_filters
from paimon_sink.core.conditions import Condition, ConditionError, conditions, other_setting
from paimon_sink.core.schema import SQL_TYPE

SCHEMA = pa.schema(
    [
        ("i8", pa.int8()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("p", pa.decimal128(6, 2)),
        ("q", pa.decimal128(38, 30)),
        ("s", pa.string()),
        pa.field("c", pa.string(), metadata={SQL_TYPE: b"CHAR(4)"}),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("at", pa.timestamp("us", tz="UTC")),
        ("bin", pa.binary()),
        ("st", pa.struct([("n", pa.int32()), ("Deep", pa.struct([("s", pa.string())]))])),
        ("li", pa.list_(pa.struct([("n", pa.int32())]))),
        ("a.b", pa.int64()),
        ("true", pa.bool_()),
        ("Twin", pa.int64()),
        ("twin", pa.int64()),
    ]
)
ANSI = "spark.sql.ansi.enabled"


def one(text: str) -> Condition:
    [found] = conditions(text, SCHEMA)
    assert isinstance(found, Condition)
    return found


@pytest.mark.parametrize(
    ("text", "domain", "values"),
    [
        ("i = 5", pa.int64(), (5,)),
        ("i8 = 3000000000", pa.int64(), (3000000000,)),
        ("l = - 9223372036854775808", pa.int64(), (-(2**63),)),
        ("i = +5", pa.int64(), (5,)),
        ("i = 5S", pa.int64(), (5,)),
        ("i > 1.5", pa.decimal128(11, 1), (Decimal("1.5"),)),
        ("i = 5.", pa.decimal128(10, 0), (Decimal(5),)),
        ("i = 1e3", pa.float64(), (1000.0,)),
        ("i = '05'", pa.int64(), (5,)),
        ("i IN ('05', 6, NULL)", pa.int64(), (5, 6)),
        ("f = 0.1", pa.float64(), (0.1,)),
        ("f = 0.1F", pa.float64(), (0.10000000149011612,)),
        ("x IN (.5, 'Infinity', 1)", pa.float64(), (0.5, math.inf, 1.0)),
        ("p = 1.5", pa.decimal128(6, 2), (Decimal("1.5"),)),
        ("p = 1.255", pa.decimal128(7, 3), (Decimal("1.255"),)),
        ("p = '1.25'", pa.float64(), (1.25,)),
        ("p = 2.5BD", pa.decimal128(6, 2), (Decimal("2.5"),)),
        ("q = 1.0", pa.decimal128(38, 30), (Decimal("1.0"),)),
        (r"s = 'a\'b''c\n\\\u0041\101\%\x'", pa.string(), ("a'b'c\n\\AA\\%x",)),
        (r"s = '\uD83D\uDE00\U0001F600'", pa.string(), ("😀😀",)),
        ("c = 'ab'", pa.string(), ("ab  ",)),
        ("c IN ('ab', 'abcdef')", pa.string(), ("ab    ", "abcdef")),
        ("b = 'TRUE'", pa.bool_(), (True,)),
        ("d = '2026-11-01'", pa.date32(), (date(2026, 11, 1),)),
        ("d = date'0001-01-01'", pa.date32(), (date(1, 1, 1),)),
        ("t = TIMESTAMP_NTZ '2026-11-16 05:06:07.8'", pa.timestamp("us"), (datetime(2026, 11, 16, 5, 6, 7, 800_000),)),
        ("t >= DATE '2026-11-16'", pa.timestamp("us"), (datetime(2026, 11, 16),)),
        ("at = '2026-11-16T05:00+01:00'", pa.timestamp("us", "UTC"), (datetime(2026, 11, 16, 4, tzinfo=UTC),)),
        ("bin = x'0aFF'", pa.binary(), (b"\x0a\xff",)),
        ("`a.b` = 1", pa.int64(), (1,)),
        ("`true` = true", pa.bool_(), (True,)),
        ("twin = 1", pa.int64(), (1,)),
        ("s LIKE 'ab%'", pa.string(), ("ab",)),
        ("s LIKE 'ab'", pa.string(), ("ab",)),
        (r"s LIKE '\\%\\_%'", pa.string(), ("%_",)),
        (r"s LIKE '50\%%'", pa.string(), ("50%",)),
        (r"s LIKE 'a\\\\%%'", pa.string(), ("a\\",)),
        ("c LIKE 'ab%'", pa.string(), ("ab",)),
        ("s LIKE NULL", None, ()),
        ("st.n = 5", pa.int64(), (5,)),
        ("`ST` . deep.`s` = 'a'", pa.string(), ("a",)),
        ("i = NULL", None, ()),
        ("i IN (NULL)", None, ()),
    ],
)
def test_a_literal_has_the_type_and_the_value_that_spark_gives_it(
    text: str, domain: pa.DataType | None, values: tuple[Any, ...]
) -> None:
    found = one(text)

    assert (found.domain, found.values) == (domain, values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s = 5", "5 is int. Write the text that is looked for in single quotes"),
        ("s IN ('a', 5)", "5 is int. Write the text"),
        ("s = true", "true is boolean"),
        ("s > DATE '2026-11-01'", "is date"),
        ("b = 1", "1 is int. Write TRUE or FALSE"),
        ("b = 'yes'", "Write TRUE or FALSE"),
        ("bin = 'a'", "'a' is string. Write bytes: X'0AFF'"),
        ("i = '1.0'", "'1.0' is not a number of that type"),
        ("i = '9223372036854775808'", "not a number of that type"),
        ("x = '1.5d'", "not a number of that type"),
        ("i IN ('1', 2.5)", "some of the values stand in quotes and some do not"),
        ("i = true", "true is boolean. Write a number"),
        ("i > -99999999999999999999", "is beyond every whole number. Write IS NOT NULL, or nothing"),
        ("i < 9223372036854775807.25", "is beyond every whole number"),
        ("l > 1.0000000000000000001", "takes 39 digits; Spark has 38, and rounds"),
        ("q = 1", "takes 40 digits"),
        ("q = 123456789012345678901234567890123456789", "has more than 38 digits"),
        ("x = 1e400", "out of the range of its type"),
        ("x = 1e39F", "out of the range of its type"),
        ("i = 200Y", "out of the range of its type. Write it without the Y"),
        ("x = 1e3BD", "has no type"),
        ("x = 1.5L", "has no type"),
        ("d = '2026-11-1'", "which is not a date. Write it as 2026-11-01"),
        ("d = '2026-11-01 05:00:00'", "which is not a date"),
        ("d = DATE 'today'", "which is not a date"),
        ("d = 20261101", "20261101 is int. Write a date"),
        ("d = TIMESTAMP_NTZ '2026-11-01 00:00:00'", "is timestamp_ntz. Write a date"),
        ("t = '2026-11-16T05:00:00Z'", "has an offset, which the column does not have"),
        ("t = TIMESTAMP '2026-11-16 05:00:00Z'", "is timestamp. Write a time without offset"),
        ("at = '2026-11-16 05:00:00'", "is another instant in every time zone. Add its offset"),
        ("at = TIMESTAMP '2026-11-16 05:00:00'", "is another instant in every time zone"),
        ("at > DATE '2026-11-16'", "is date. Write an instant with its offset"),
        ("at > '2026-11-16T05:00:00+18:01'", "is not a time"),
        ("bin = X'0'", "pairs of hexadecimal digits"),
        ("i = INTERVAL '1 day'", "is not understood; there are DATE '…'"),
        (r"s = r'a\n'", "is not understood"),
        (r"s = '\uD83D'", "has half a character"),
        ("c IN ('ab', NULL)", "NULL stands among the values of a CHAR column. Leave it out"),
        ("c BETWEEN 'a' AND 'b'", "BETWEEN compares a CHAR column without padding. Write >= and <= instead"),
        ("c NOT BETWEEN NULL AND 'b'", "without padding"),
        ("st = NULL", "only IS NULL and IS NOT NULL work there. Compare one of its fields, such as n"),
        ("li = NULL", "only IS NULL and IS NOT NULL work there"),
        ("i LIKE '5%'", "LIKE compares texts"),
        ("s LIKE 5", "5 is int. Write the text"),
        ("s LIKE '%a'", "has the pattern '%a': LIKE is supported with % at the end"),
        ("s LIKE 'a%b%'", "LIKE is supported with % at the end"),
        ("s LIKE 'a_'", "use DataFrame.where for another pattern"),
        (r"s LIKE 'a\\b'", "a backslash stands before something else than %, _ or another backslash"),
        (r"s LIKE 'a\\'", "a backslash stands before something else"),
        ("s LIKE 'a' ESCAPE '#'", "at 'ESCAPE': AND or OR was expected"),
        ("s RLIKE 'a'", "at 'RLIKE': a comparison was expected"),
        ("st.m = 5", "names a field 'm' of st, which has n, Deep"),
        ("st.Dep IS NULL", "names a field 'Dep' of st, which has n, Deep. The nearest name is Deep"),
        ("st.Deep.t = 'a'", "names a field 't' of st.Deep, which has s"),
        ("i.n = 5", "names a field 'n' of i, which is int and has no fields to compare"),
        ("li.n = 5", "names a field 'n' of li, which is array<struct<n: int>> and has no fields to compare"),
        ("`st.n` = 5", "is written without back-quotes around the dot: st.n"),
        ("nobdy.n = 5", "names a column 'nobdy'"),
        ("b", "at the end: something is missing"),
        ("NOT b AND i = 5", "at 'AND': a comparison was expected"),
        ("(b) = TRUE", "a boolean is compared, too: flag = TRUE"),
        ("(i = 5", "at the end: ) was expected"),
        ("i = 5)", "at ')': AND or OR was expected"),
        ("i NOT = 5", "at '=': a comparison was expected"),
        ("i BETWEEN 1 OR 2", "at 'OR': AND was expected"),
        ("i BETWEEN 1", "at the end: AND was expected"),
        ("i NOT BETWEEN 1 AND 99999999999999999999", "is beyond every whole number"),
        ("(" * 51 + "i = 5" + ")" * 51, "more than 50 parentheses are open"),
        ("TWIN = 1", "the table has Twin and twin, which differ by case alone"),
        ("nobody = 1", "names a column 'nobody'"),
        ("Tw1n = 1", "The nearest name is "),
        ("true = true", "at 'true': a column was expected; a name with signs in it stands in `…`"),
        ("a.b = 1", "names a field of a column 'a', which the table does not have. Write `a.b` in back-quotes"),
        ('s = "a"', "texts, dates and times stand in single quotes"),
        ("s = 'a' 'b'", "AND or OR was expected"),
        ("i = 5AND i = 6", "at '5AND i = 6'"),
        ("i = --5", "a value was expected"),
        ("i = 5 -- all", "AND or OR was expected"),
        ("i <=> 5", "a value was expected"),
        ("i !< 5", "at '!< 5'"),
        ("i = -'5'", "a value was expected"),
    ],
)
def test_what_spark_would_answer_otherwise_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(ConditionError) as refused:
        conditions(text, SCHEMA)

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("i = '5'", f"{ANSI}=false"),
        ("f = 16777217", f"{ANSI}=false"),
        ("l = 1F", f"{ANSI}=false"),
        ("at IN ('2026-11-16T05:00:00Z')", f"{ANSI}=false"),
        (r"s = 'a\n'", "spark.sql.parser.escapedStringLiterals=TRUE"),
        ("s = 'a''b'", "spark.sql.legacy.consecutiveStringLiterals.enabled=true"),
        ("x = 1e3", "spark.sql.legacy.exponentLiteralAsDecimal.enabled=true"),
        ("c = 'ab'", "spark.sql.readSideCharPadding=false"),
        ("c LIKE 'ab%'", "spark.sql.readSideCharPadding=false"),
        ("i = 5 OR NOT (s = 'a' AND x = 1e3)", "spark.sql.legacy.exponentLiteralAsDecimal.enabled=true"),
        ("d = '2026-11-01'", "spark.sql.legacy.typeCoercion.datetimeToString.enabled=true"),
    ],
)
def test_a_condition_knows_the_settings_that_change_its_meaning(text: str, setting: str) -> None:
    key, _, value = setting.partition("=")

    assert other_setting(conditions(text, SCHEMA), {key: value}.get) == setting
    assert other_setting(conditions(text, SCHEMA), lambda _: None) is None
    assert other_setting(conditions("i = 5 AND s = 'a' AND f = 0.5", SCHEMA), {key: value}.get) is None


# ---------------------------------------------------------------- rows

FLOATS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, None]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = 'NaN'", [0]),
        ("x < 'NaN'", [1, 2, 3, 4, 5]),
        ("x <= 'NaN'", [0, 1, 2, 3, 4, 5]),
        ("x > 'NaN'", []),
        ("x >= 'NaN'", [0]),
        ("x > 'Infinity'", [0]),
        ("x >= 'Infinity'", [0, 1]),
        ("x IN ('NaN', 0.0)", [0, 3, 4]),
        ("x IN (0.0)", [3, 4]),
        ("x IN (-0e0, 7)", [3, 4]),
        ("x IN (1.5, NULL)", [5]),
        ("x = -0.0", [3, 4]),
        ("x < 0.0", [2]),
        ("x = NULL", []),
        ("x IS NULL", [6]),
    ],
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_nan_infinities_and_zeros_are_compared_as_spark_does(kind: pa.DataType, text: str, wanted: list[int]) -> None:
    batch = pa.record_batch({"id": list(range(len(FLOATS))), "x": pa.array(FLOATS, kind)})

    met = apply_filters(conditions(text, batch.schema), batch)

    assert met.column("id").to_pylist() == wanted


def test_numbers_become_doubles_as_spark_rounds_them() -> None:
    digits = Decimal("0.30000000000000000000000000000000000001")
    batch = pa.record_batch(
        {"l": pa.array([2**53 + 1, 2**53]), "p": pa.array([Decimal("0.3"), digits], pa.decimal128(38, 38))}
    )

    assert apply_filters(conditions("l = 9007199254740992e0", batch.schema), batch).num_rows == 2
    assert apply_filters(conditions("p = 0.3D", batch.schema), batch).num_rows == 2
    assert apply_filters(conditions("p = 0.3", batch.schema), batch).num_rows == 1
    # Arrow's own cast makes 0.8300000000000001 of it.
    price = pa.record_batch({"p": pa.array([Decimal("0.83")], pa.decimal128(6, 2))})
    assert apply_filters(conditions("p = 0.83D", price.schema), price).num_rows == 1
