"""The option ``where``: the very rows that Spark's own WHERE gives, from fewer files."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paimon_sink.core.errors import OptionError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import parse_options
from paimon_sink.spark.reader import PwcReader
from paimon_sink.spark.schema import spark_schema
from tests.support import tasks
from tests.support.iceberg_deletes import delete_a_row
from tests.support.lake import Lake
from tests.support.places import Place, places
from tests.support.reading import open_scan

NAN = math.nan
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int64(), [1, 2, None, -4, 5, 6]),
    "x": (pa.float64(), [1.5, NAN, None, -0.0, math.inf, 2.5]),
    "s": (pa.string(), ["a", "b'c", None, "", "ž", "zz"]),
    "d": (pa.date32(), [date(2026, 11, day) if day else None for day in (1, 2, 0, 4, 5, 6)]),
    "t": (pa.timestamp("us"), [datetime(2026, 11, day, 5) if day else None for day in (1, 2, 0, 4, 5, 6)]),
    "p": (pa.decimal128(6, 2), [Decimal(f"{value}.25") if value else None for value in (1, 2, 0, 4, 5, 6)]),
    "b": (pa.bool_(), [True, False, None, True, False, True]),
    "f": (pa.float32(), [0.1, NAN, None, -0.0, math.inf, -math.inf]),
    "a.b": (pa.int64(), [1, 2, None, 4, 5, 6]),
    "st": (pa.struct([("n", pa.int64())]), [{"n": None}, {"n": 1}, None, {"n": 3}, {"n": 4}, {"n": 5}]),
    "li": (pa.list_(pa.int64()), [[], [1], None, [3], [4], [5]]),
    "m": (pa.map_(pa.string(), pa.int64()), [[], [("k", 1)], None, [("k", 3)], [("k", 4)], [("k", 5)]]),
}


@pytest.fixture(scope="module", params=places("local", "sqlite"))
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Six rows in six files."""
    where: Place = request.param
    lake = Lake({"warehouse": str(tmp_path_factory.mktemp("where")), "tableFormat": where.format})
    for number in range(6):
        row = {name: pa.array(values[number : number + 1], kind) for name, (kind, values) in COLUMNS.items()}
        tasks.append(lake, number, pa.table({"id": pa.array([number], pa.int64()), **row}))
    return lake


def reader(lake: Lake, where: str) -> PwcReader:
    options = {**lake.options, "table": lake.table, "where": where}
    return PwcReader(parse_options(options, purpose=Purpose.READ), spark_schema(lake.open().schema))


def ids(lake: Lake, where: str) -> list[int]:
    found = reader(lake, where)
    batches = [batch for part in found.partitions() for batch in found.read(part)]
    return sorted(number for batch in batches for number in batch.column("id").to_pylist())


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("n > 1", [1, 4, 5]),
        ("N >= 2\n  and n < 6\n", [1, 4]),
        ("`n` = -4", [3]),
        ("n IN (1, 5, 77)", [0, 4]),
        ("n IS NULL", [2]),
        ("n is not null AND b = true", [0, 3, 5]),
        ("s = 'b''c'", [1]),
        ("s > 'z'", [4, 5]),
        ("s = ''", [3]),
        ("d >= '2026-11-05'", [4, 5]),
        ("t < '2026-11-02 05:00:00'", [0]),
        ("p <= 2.25", [0, 1]),
        ("x > 2", [1, 4, 5]),
        ("x <= 1.5e0", [0, 3]),
        ("x = 0.0", [3]),
        ("n > 1000", []),
        ("x IN (0.0)", [3]),
        ("x IN (0.0, 'NaN')", [1, 3]),
        ("x IN (0.0, 2.5)", [3, 5]),
        ("x = 'NaN'", [1]),
        ("x < 'NaN'", [0, 3, 4, 5]),
        ("x >= 'NaN'", [1]),
        ("f = 0.1", []),
        ("f = 0.1F", [0]),
        ("f >= 0.1", [0, 1, 4]),
        ("f < 'Infinity'", [0, 3, 5]),
        ("f <= 'Infinity'", [0, 3, 4, 5]),
        ("f = '-Infinity'", [5]),
        ("f IN (0.0, 'inf')", [3, 4]),
        ("f < 1e39", [0, 3, 5]),
        ("n < 99999999999", [0, 1, 3, 4, 5]),
        ("n IN (1, NULL)", [0]),
        ("n = NULL", []),
        (r"s = 'b\'c'", [1]),
        (r"s = '\u017e'", [4]),
        ("`a.b` = 4", [3]),
        ("`A.B` > 4", [4, 5]),
        ("`a.b` IS NULL", [2]),
        ("st IS NULL", [2]),
        ("li IS NULL", [2]),
        ("m IS NULL", [2]),
        ("n > 1 OR s = 'a'", [0, 1, 4, 5]),
        ("n != 1", [1, 3, 4, 5]),
        ("NOT n > 1", [0, 3]),
        ("n <> 1 AND NOT (n = 2 OR n = 5)", [3, 5]),
        ("n BETWEEN 2 AND 5", [1, 4]),
        ("n NOT BETWEEN 2 AND 5 OR n IS NULL", [0, 2, 3, 5]),
        ("n NOT IN (1, 5)", [1, 3, 5]),
        ("n NOT IN (1, NULL)", []),
        ("s LIKE 'b%'", [1]),
        ("s NOT LIKE 'z%'", [0, 1, 3, 4]),
        ("x != 'NaN'", [0, 3, 4, 5]),
        ("x <> 0.0", [0, 1, 4, 5]),
        ("x NOT BETWEEN 0 AND 2", [1, 4, 5]),
        ("NOT f < 0.5", [1, 4]),
        ("st.n >= 4", [4, 5]),
        ("ST.N IS NULL", [0, 2]),
        ("NOT st.n = 3 OR st IS NULL", [1, 2, 4, 5]),
        ("(d < '2026-11-02' OR d > '2026-11-05') AND b = true", [0, 5]),
        ("st IS NOT NULL AND li IS NOT NULL AND m IS NOT NULL", [0, 1, 3, 4, 5]),
    ],
)
def test_the_rows_are_those_of_sparks_own_where(lake: Lake, where: str, wanted: list[int]) -> None:
    assert ids(lake, where) == wanted


SIGNS = {"=": "__eq__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    column=st.sampled_from(["n", "s", "d", "p"]),
    sign=st.sampled_from(sorted(SIGNS)),
    row=st.sampled_from([0, 1, 3, 4, 5]),
)
def test_no_file_is_left_out_that_holds_a_row(lake: Lake, column: str, sign: str, row: int) -> None:
    values = COLUMNS[column][1]
    value = values[row]
    literal = str(value).replace("'", "''")
    expected = [
        number for number, found in enumerate(values) if found is not None and getattr(found, SIGNS[sign])(value)
    ]

    assert ids(lake, f"{column} {sign} '{literal}'") == expected


def test_files_that_cannot_match_are_not_opened(lake: Lake) -> None:
    splits = open_scan(lake, where="n >= 5 AND s >= 'a'").splits()

    assert sum(split.rows for split in splits) == 2


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("", "where"),
        ("n", "at the end: something is missing"),
        ("n > ", "at the end: something is missing"),
        ("n LIKE 'a%'", "LIKE compares texts"),
        ("s LIKE '%a'", "use DataFrame.where for another pattern"),
        ("n > 1 OR", "at the end: something is missing"),
        ("n > 1 XOR n < 0", "at 'XOR': AND or OR was expected"),
        ("st.m = 1", "names a field 'm' of st, which has n"),
        ("lii IS NULL", "The nearest name is li"),
        ("n > m", "at 'm': a value was expected"),
        ("5 > n", "at '5': a column was expected"),
        ("n IN 5", r"at '5': \( was expected"),
        ("n = 'five'", "'five' is not a number of that type"),
        ("n = 1;drop", "at ';drop'"),
        ("s = 'open", 'at "\'open"'),
        ("s > 5", "where compares s, which is string, and 5 is int"),
        ("n > -99999999999999999999", "is beyond every whole number"),
        ("nobody = 1", "names a column 'nobody', and the table has id, n"),
        ("d = '2026-13-01'", "'2026-13-01', which is not a date"),
    ],
)
def test_what_does_not_read_well_is_said_before_the_first_row(lake: Lake, where: str, sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        reader(lake, where).partitions()


def test_a_time_with_a_zone_needs_an_offset(tmp_path: Any) -> None:
    lake = Lake({"warehouse": str(tmp_path)})
    zoned = pa.array([datetime(2026, 11, 16, 5)], pa.timestamp("us", "UTC"))
    tasks.append(lake, 0, pa.table({"id": [7], "at": zoned}))

    assert ids(lake, "at = '2026-11-16T06:00:00+01:00'") == [7]
    with pytest.raises(OptionError, match="Add its offset"):
        reader(lake, "at = '2026-11-16T06:00:00'").partitions()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("x = 0.0", [1, 2]),
        ("x IN (0.0, 7.0)", [1, 2]),
        ("x = 0.0 OR id = 3", [1, 2, 3]),
        ("x IN (0.0, 7.0) OR id = 3", [1, 2, 3]),
        ("`a.b` = 4", [3]),
        ("`a.b` > 1 AND id < 3", [2]),
        ("s LIKE 'b%' OR `a.b` IS NULL", [1, 2]),
    ],
)
def test_a_file_that_pyiceberg_reads_gives_the_same_rows(
    iceberg_sqlite_lake: Lake, where: str, expected: list[int]
) -> None:
    """One with deleted rows: pyiceberg hands the filters to Arrow."""
    columns = {
        "id": pa.array(range(4), pa.int64()),
        "x": pa.array([0.0, -0.0, 0.0, 1.0], pa.float64()),
        "a.b": pa.array([4, None, 3, 4], pa.int64()),
        "s": pa.array(["b", "a", "bc", None]),
    }
    tasks.append(iceberg_sqlite_lake, 0, pa.table(columns))
    delete_a_row(iceberg_sqlite_lake)

    assert ids(iceberg_sqlite_lake, where) == expected
