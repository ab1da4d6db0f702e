"""Every type and every partition transform, written by us and read by Java, and the other way round.

Java is the judge: it writes the same rows into a table of its own, and its partitions and its statistics are compared
with ours.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

from integration.interop.iceberg.shared import Shared
from tests.formats.test_iceberg_reader import TYPES
from tests.support import tasks
from tests.support.iceberg_engine import catalog, native
from tests.support.lake import Lake

FIGURES = ("value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound")


def every_type() -> pa.Table:
    """Three rows, the last of them null but for its number."""
    columns = {name.replace(" ", "_").translate(str.maketrans("", "", "()[],")): found for name, found in TYPES.items()}
    return pa.table(
        {"n": pa.array([1, 2, 3], pa.int64())}
        | {name: pa.array(values, kind) for name, (kind, values) in columns.items()}
    )


def twin_of(shared: Shared) -> Shared:
    """The name of another table in the same namespace."""
    return Shared(shared.spark, shared.catalog, Lake(shared.lake.options, f"{shared.lake.table}_twin"))


def copied_by_java(shared: Shared) -> Shared:
    """A table of the same schema and partitioning, into which Java writes the same rows."""
    twin, ours = twin_of(shared), native(shared.lake)
    catalog(shared.lake).create_table(
        twin.lake.table, ours.schema(), partition_spec=ours.spec(), properties={"format-version": "2"}
    )
    # One task: each partition one file, as ours has it.
    twin.sql(f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ * FROM {shared.name}")
    return twin


def figures(shared: Shared) -> dict[str, dict[str, Any]]:
    """What Java understands of the statistics of a table's only file."""
    [row] = shared.sql("SELECT readable_metrics FROM {t}.files")
    found: Row = row.readable_metrics
    return {name: {key: of[key] for key in FIGURES} for name, of in found.asDict().items()}


# ---------------------------------------------------------------- types


def test_java_reads_every_type_that_we_write(shared: Shared) -> None:
    tasks.append(shared.lake, 0, every_type())

    theirs = shared.spark.sql(f"SELECT * FROM {shared.name} ORDER BY n").collect()

    assert theirs == shared.load().orderBy("n").collect()
    assert sorted(shared.lake.read(), key=lambda row: row["n"]) == every_type().to_pylist()


def test_we_read_every_type_that_java_writes(shared: Shared) -> None:
    tasks.append(shared.lake, 0, every_type())

    twin = copied_by_java(shared)

    assert sorted(twin.lake.read(), key=lambda row: row["n"]) == every_type().to_pylist()
    assert twin.load().orderBy("n").collect() == twin.sql("SELECT * FROM {t} ORDER BY n")


def test_our_statistics_say_what_those_of_java_say(local: Shared) -> None:
    tasks.append(local.lake, 0, every_type())

    ours, theirs = figures(local), figures(copied_by_java(local))

    assert ours == theirs


@pytest.mark.parametrize("values", [[1.0, math.nan, None], [math.nan, math.nan], [-0.0, 0.0]], ids=str)
def test_java_finds_rows_among_nans_and_zeros(local: Shared, values: list[float | None]) -> None:
    rows = pa.table({"id": range(len(values)), "x": pa.array(values, pa.float64())})
    tasks.append(local.lake, 0, rows)
    twin = copied_by_java(local)

    assert figures(local) == figures(twin)
    # By Iceberg's rules a NaN is not above 5, by Spark's it is: Java skips such files of its own, too.
    for where in ("x = 1.0", "x > 5", "x = 0", "x < 0.5", "isnan(x)", "x IS NULL", "NOT isnan(x)"):
        assert local.ids(where) == twin.ids(where), where
    nans = [number for number, value in enumerate(values) if value is not None and math.isnan(value)]
    assert local.ids("isnan(x)") == nans


# ---------------------------------------------------------------- partitions

ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "i": pa.array([-17, -1, 0, 9, 2**31 - 1, None], pa.int32()),
        "l": pa.array([-(2**40), -11, 0, 10, 2**62, None], pa.int64()),
        "s": pa.array(["", "abc", "abd", "žluťoučký", "\U0001f40e\U0001f40e\U0001f40ex", None]),
        "b": pa.array([b"", b"\x00", b"\x00\xff", b"abcdef", b"\xff\xff\xff\xff", None], pa.binary()),
        "f": pa.array([b"abcd", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"abce", b"zzzz", None], pa.binary(4)),
        "p": pa.array([Decimal(text) for text in ("-10.65", "-0.01", "0.00", "0.99", "9999999.99")] + [None]),
        "big": pa.array([Decimal(text) for text in ("-1e27", "-1", "0", "1", "1e27")] + [None], pa.decimal128(38, 10)),
        "ok": pa.array([True, False, True, False, True, None]),
        "d": pa.array(
            [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31), None]
        ),
        "t": pa.array(
            [
                datetime(1582, 10, 4, 23),
                datetime(1969, 12, 31, 23, 59, 59, 999999),
                datetime(1970, 1, 1),
                datetime(2026, 3, 8, 2, 30),
                datetime(9999, 12, 31, 23),
                None,
            ],
            pa.timestamp("us"),
        ),
        "z": pa.array(
            [
                datetime(1900, 1, 1, tzinfo=UTC),
                datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
                datetime(1970, 1, 1, tzinfo=UTC),
                datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
                datetime(2262, 4, 11, tzinfo=UTC),
                None,
            ],
            pa.timestamp("us", tz="UTC"),
        ),
    }
)
IDENTITIES = ["i", "l", "s", "b", "p", "big", "ok", "d", "t", "z"]
BUCKETS = [f"bucket(5, {name})" for name in ("i", "l", "s", "b", "f", "p", "big", "d", "t", "z")]
TRUNCATES = [
    f"truncate({width}, {name})" for width, name in ((10, "i"), (10, "l"), (2, "s"), (2, "b"), (50, "p"), (7, "big"))
]
TIMES = [f"{unit}({name})" for unit in ("years", "months", "days") for name in "dtz"] + ["hours(t)", "hours(z)"]
# Tables take a second each, so those of one kind share one: a table may have many partition fields.
TOGETHER = {"identity": IDENTITIES, "bucket": BUCKETS, "truncate": TRUNCATES, "time": TIMES}


def partitions(shared: Shared) -> list[dict[str, Any]]:
    rows = shared.sql("SELECT partition, record_count, file_count FROM {t}.partitions")
    return sorted((row.asDict(recursive=True) for row in rows), key=repr)


@pytest.mark.parametrize("kind", TOGETHER)
def test_our_partition_values_are_those_of_java(local: Shared, kind: str) -> None:
    parted = local.with_options(partitionBy=", ".join(TOGETHER[kind]))
    tasks.append(parted.lake, 0, ROWS)

    twin = copied_by_java(local)

    assert partitions(local) == partitions(twin)
    assert len(partitions(local)) >= 5
    assert local.spark.sql(f"SELECT * FROM {local.name} ORDER BY id").collect() == twin.sql(
        "SELECT * FROM {t} ORDER BY id"
    )
    assert sorted(twin.lake.read(), key=lambda row: row["id"]) == ROWS.to_pylist()
