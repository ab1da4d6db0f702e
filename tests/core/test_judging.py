"""Bad rows told from good ones: each under one rule, none of the good ones lost, and no value in any sentence."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.core.checks import checks_of
from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.judging import Fault, Judge, offenders
from paimon_sink.core.quarantine import fitted, kept_schema, quarantine_schema, shape_problems
from paimon_sink.core.schema import SQL_TYPE, align

TABLE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("at", pa.timestamp("ms")),
        pa.field("code", pa.string(), metadata={SQL_TYPE: b"VARCHAR(3)"}),
        pa.field("amount", pa.decimal128(10, 2)),
    ]
)
ROWS = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("at", pa.timestamp("us")),
        pa.field("code", pa.string()),
        pa.field("amount", pa.decimal128(10, 2)),
        pa.field("why", pa.string()),
    ]
)
GOOD = {"id": 1, "at": dt.datetime(2026, 1, 1), "code": "abc", "amount": Decimal("1.00"), "why": None}


def judge(*, checks: dict[str, str] | None = None, misfits: bool = True, error_column: str | None = "why") -> Judge:
    written = pa.schema([field for field in ROWS if field.name != "why"])
    alignment = align(written, TABLE, table="sales.orders", case_sensitive=True)
    found, problems = checks_of(checks or {}, TABLE)
    assert problems == []
    return Judge(alignment, found, error_column, takes_misfits=misfits)


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{**GOOD, **row} for row in rows], schema=ROWS)


def rules(found: dict[int, Fault]) -> dict[int, str]:
    return {position: fault.rule for position, fault in found.items()}


def test_a_batch_of_good_rows_is_what_it_was() -> None:
    rows = batch({}, {"id": 2}, {"amount": None})

    judged = judge(checks={"positive": "amount > 0"}).judge(rows)

    assert judged.faults == {}
    assert judged.good.column("id").to_pylist() == [1, 2, 1]
    assert judged.good.schema.names == TABLE.names


def test_each_bad_row_is_told_by_the_first_rule_that_it_breaks() -> None:
    rows = batch(
        {"id": 1},
        {"id": None},
        {"at": dt.datetime(2026, 1, 1, 0, 0, 0, 1)},
        {"code": "toolong"},
        {"amount": Decimal("-1.00")},
        {"why": "broken", "id": None},
        {"id": None, "code": "toolong", "amount": Decimal("-1.00")},
        {"id": 8},
    )

    judged = judge(checks={"positive": "amount > 0"}).judge(rows)

    assert rules(judged.faults) == {
        1: "not null",
        2: "lossy",
        3: "lossy",
        4: "check.positive",
        5: "errorColumn",
        6: "not null",
    }
    assert judged.good.column("id").to_pylist() == [1, 8]
    assert not any(value in fault.message for fault in judged.faults.values() for value in ("toolong", "broken", "-1"))


def test_a_check_that_is_null_is_met_as_in_sql() -> None:
    judged = judge(checks={"positive": "amount > 0"}).judge(batch({"amount": None}))
    strict = judge(checks={"positive": "amount > 0 AND amount IS NOT NULL"}).judge(batch({"amount": None}))

    assert judged.faults == {}
    assert rules(strict.faults) == {0: "check.positive"}


def test_a_check_that_is_null_beside_one_that_is_false_is_met() -> None:
    judged = judge(checks={"positive": "amount > 0"}).judge(batch({"amount": None}, {"amount": Decimal("-1.00")}))

    assert rules(judged.faults) == {1: "check.positive"}


def test_without_a_quarantine_a_value_that_does_not_fit_raises_as_it_always_did() -> None:
    with pytest.raises(SchemaMismatchError, match="id has a null"):
        judge(misfits=False).judge(batch({"id": None}))

    judged = judge(misfits=False).judge(batch({"id": None, "why": "broken"}, {}))
    assert rules(judged.faults) == {0: "errorColumn"}


def test_a_noted_error_alone_makes_a_row_bad() -> None:
    assert rules(judge().judge(batch({}, {"why": "broken"}, {})).faults) == {1: "errorColumn"}


def test_a_null_inside_of_a_struct_is_told_with_its_path() -> None:
    target = pa.schema([pa.field("line", pa.struct([pa.field("price", pa.int64(), nullable=False)]))])
    rows = pa.schema([pa.field("line", pa.struct([pa.field("price", pa.int64())]))])
    alignment = align(rows, target, table="t", case_sensitive=True)
    sent = pa.RecordBatch.from_pylist([{"line": {"price": 1}}, {"line": {"price": None}}, {"line": None}], schema=rows)

    judged = Judge(alignment, takes_misfits=True).judge(sent)

    assert {at: (fault.rule, fault.column) for at, fault in judged.faults.items()} == {1: ("not null", "line.price")}
    assert judged.good.num_rows == 2


@pytest.mark.parametrize("seed", range(20))
def test_good_and_bad_rows_together_are_all_rows_in_their_order(seed: int) -> None:
    luck = random.Random(seed)
    changes: list[dict[str, Any]] = [
        {},
        {},
        {"id": None},
        {"code": "toolong"},
        {"amount": Decimal("-1.00")},
        {"why": "broken"},
    ]
    rows = [luck.choice(changes) for _ in range(luck.randrange(1, 40))]

    judged = judge(checks={"positive": "amount > 0"}).judge(batch(*rows))

    bad = [position for position, row in enumerate(rows) if row]
    assert list(judged.faults) == bad
    assert judged.good.num_rows == len(rows) - len(bad)


@pytest.mark.parametrize("bad", [set(), {0}, {99}, {3, 4, 50}, set(range(100))], ids=len)
def test_offenders_are_found_by_halves(bad: set[int]) -> None:
    asked = []

    def fits(part: pa.Array) -> bool:
        asked.append(len(part))
        return bad.isdisjoint(part.to_pylist())

    assert offenders(pa.array(range(100)), fits) == sorted(bad)
    assert bad or len(asked) == 1


# ---------------------------------------------------------------- the quarantine's columns


def kept(rows: pa.Schema, count: int = 2) -> pa.Table:
    schema = kept_schema(rows)
    return pa.table([pa.nulls(count, field.type) for field in schema], schema=schema)


KNOWN = {"_pwc_table": "sales.orders", "_pwc_user": "u", "_pwc_query": None, "_pwc_batch": 7}


def test_a_quarantine_has_the_columns_that_came_and_takes_null_in_each() -> None:
    schema = quarantine_schema(pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("ID", pa.string())]))

    assert schema.names[:1] == ["id"]
    assert "ID" not in schema.names
    assert all(field.nullable for field in schema)
    assert list(shape_problems(schema)) == []


def test_a_column_that_the_quarantine_does_not_have_is_kept_as_json() -> None:
    table = quarantine_schema(pa.schema([pa.field("id", pa.int64()), pa.field("amount", pa.int32())]))
    came = pa.schema([pa.field("ID", pa.int64()), pa.field("amount", pa.string()), pa.field("new", pa.binary())])
    rows = kept(came).set_column(1, "amount", pa.array(["12.5", None])).set_column(2, "new", pa.array([b"\x00", None]))

    fit = fitted(rows, KNOWN, table)

    assert fit["_pwc_rest"].to_pylist() == ['{"amount": "12.5", "new": "AA=="}', None]
    assert "id" in fit.schema.names
    assert fit["_pwc_batch"].to_pylist() == [7, 7]


def test_a_value_that_the_quarantine_cannot_hold_is_kept_as_json_too() -> None:
    table = quarantine_schema(pa.schema([pa.field("at", pa.timestamp("ms"))]))
    came = pa.schema([pa.field("at", pa.timestamp("us"))])
    rows = kept(came, 1).set_column(0, "at", pa.array([dt.datetime(2026, 1, 1, 0, 0, 0, 1)], pa.timestamp("us")))

    assert fitted(rows, KNOWN, table)["_pwc_rest"].to_pylist() == ['{"at": "2026-01-01 00:00:00.000001"}']


def test_a_table_of_another_shape_is_no_quarantine() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("_pwc_row", pa.string())])

    problems = list(shape_problems(schema))

    assert len(problems) == 3
    assert "_pwc_rule" in problems[0]
    assert "_pwc_row as string" in problems[1]
    assert "id" in problems[2]
