"""Columns and types as people write them down."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_sink.core.errors import OptionError
from paimon_sink.core.schema import field_type_name
from paimon_sink.core.type_text import parse_column, parse_path


@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        ("id bigint", ("id",), pa.int64()),
        ("  id   LONG ", ("id",), pa.int64()),
        ("a.b.c double", ("a", "b", "c"), pa.float64()),
        ("`a.b`.`c``d` tinyint", ("a.b", "c`d"), pa.int8()),
        ("`with blank` date", ("with blank",), pa.date32()),
        ("t timestamp", ("t",), pa.timestamp("us", tz="UTC")),
        ("t timestamp_ntz", ("t",), pa.timestamp("us")),
        ("d decimal", ("d",), pa.decimal128(10, 0)),
        ("d decimal(12)", ("d",), pa.decimal128(12, 0)),
        ("d Decimal ( 12 , 2 )", ("d",), pa.decimal128(12, 2)),
        ("l array<array<string>>", ("l",), pa.list_(pa.list_(pa.string()))),
        ("m map<string, array<int>>", ("m",), pa.map_(pa.string(), pa.list_(pa.int32()))),
        (
            "s struct<a: int, `b.c` string, d: struct<e:date>>",
            ("s",),
            pa.struct([("a", pa.int32()), ("b.c", pa.string()), ("d", pa.struct([("e", pa.date32())]))]),
        ),
    ],
)
def test_a_column_is_read_as_spark_would_write_it(text: str, path: tuple[str, ...], kind: pa.DataType) -> None:
    found, field = parse_column(text)

    assert (found, field.name) == (path, path[-1])
    assert field_type_name(field) == field_type_name(pa.field("x", kind))
    assert field.nullable


def test_lengths_are_kept() -> None:
    assert field_type_name(parse_column("v varchar(20)")[1]) == "varchar(20)"
    assert field_type_name(parse_column("c CHAR(3)")[1]) == "char(3)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id", "has no type"),
        ("", "has no type"),
        ("id wat", "'wat' is no type"),
        ("a b int", "A name with a blank in it stands in back-quotes"),
        ("id bigin", "did you mean bigint"),
        ("id int int", "'int' is too much"),
        ("id decimal(39,2)", "has no sense"),
        ("id decimal(4,5)", "has no sense"),
        ("id decimal(a)", "'a' stands where a number was expected"),
        ("id decimal(99999999999999)", "stands where a number was expected"),
        ("id varchar", "it ends where"),
        ("id varchar(0)", "needs a length"),
        ("id array<int", "it ends where > was expected"),
        ("id array int", "stands where '<' was expected"),
        ("id struct<>", "a field has no name"),
        ("id struct<a>", "is no type"),
        ("id map<int>", "stands where ',' was expected"),
        ("a..b int", "names no column"),
        ("`a int", "names no column|has no type"),
        ("id `int", "names no column|a back-quote is not closed|has no type"),
        ("id " + "array<" * 60 + "int" + ">" * 60, "nested too deep"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse_column(text)


def test_a_path_goes_into_arrays_and_maps_by_words() -> None:
    assert parse_path("lines.element.price") == ("lines", "element", "price")
