"""Flink reads what we wrote, maintains it, and our next batch goes in after that."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from integration.interop.flink.session import Flink
from tests.support.compaction import compact
from tests.support.lake import Lake, rows

pytestmark = pytest.mark.timeout(600)  # the first one starts Flink

NOON = datetime(2026, 11, 16, 12, 30, 15, 123456)
TYPES: dict[str, tuple[DataType, pa.DataType, object, object]] = {
    # column: Spark's type, Arrow's type, a value, and what Flink shows for it
    "yes": (BooleanType(), pa.bool_(), True, True),
    "tiny": (ByteType(), pa.int8(), -128, -128),
    "small": (ShortType(), pa.int16(), 32767, 32767),
    "whole": (IntegerType(), pa.int32(), -(2**31), -(2**31)),
    "big": (LongType(), pa.int64(), 2**63 - 1, 2**63 - 1),
    "single": (FloatType(), pa.float32(), 0.5, 0.5),
    "real": (DoubleType(), pa.float64(), 1e300, 1e300),
    "price": (DecimalType(10, 2), pa.decimal128(10, 2), Decimal("-12345678.90"), "-12345678.90"),
    "wide": (DecimalType(38, 4), pa.decimal128(38, 4), Decimal("9" * 34 + ".9999"), "9" * 34 + ".9999"),
    "born": (DateType(), pa.date32(), date(1969, 12, 31), "1969-12-31"),
    "text": (StringType(), pa.string(), "Ünï'cödé 🎈", "Ünï'cödé 🎈"),
    "raw": (BinaryType(), pa.binary(), b"\x00\xff", "00ff"),
    "local": (TimestampNTZType(), pa.timestamp("us"), NOON, "2026-11-16 12:30:15.123456"),
    "instant": (
        TimestampType(),
        pa.timestamp("us", tz="UTC"),
        NOON.replace(tzinfo=UTC),
        "2026-11-16 12:30:15.123456",
    ),
}
AS_TEXT = {"local", "instant"}


@pytest.mark.parametrize("partition", ["", "born"], ids=["unpartitioned", "partitioned"])
def test_flink_reads_every_simple_type_and_nulls(lake: Lake, flink: Flink, partition: str) -> None:
    spark = StructType([StructField(name, kind) for name, (kind, *_) in TYPES.items()])
    arrow = pa.schema([(name, kind) for name, (_, kind, *_) in TYPES.items()])
    values = [{name: value for name, (_, _, value, _) in TYPES.items()}, dict.fromkeys(TYPES)]
    writer = lake.with_options(partitionBy=partition) if partition else lake
    message = writer.write(pa.RecordBatch.from_pylist(values, schema=arrow), schema=spark)
    writer.stream_writer(spark).commit([message], 0)

    columns = [f"CAST(`{name}` AS STRING)" if name in AS_TEXT else f"`{name}`" for name in TYPES]
    found = flink.read(lake.table, ", ".join(columns))

    shown = [seen for *_, seen in TYPES.values()]
    assert sorted(found, key=str) == sorted([shown, [None] * len(TYPES)], key=str)


def test_flink_reads_the_same_rows_before_and_after_our_compaction(lake: Lake, flink: Flink) -> None:
    daily = lake.with_options(partitionBy="day")
    # More commits than manifests are kept for: some have been merged.
    for batch in range(40):
        daily.append(batch, rows(2 * batch, day="monday"), rows(2 * batch + 1, day="tuesday"))
    written = sorted([row["id"], row["day"]] for row in daily.read())
    before = flink.read(lake.table)

    compact(daily)

    assert sorted(before) == written
    assert sorted(flink.read(lake.table)) == written
    assert len(written) == 80


def test_our_stream_goes_on_after_maintenance_by_flink(lake: Lake, flink: Flink) -> None:
    for batch in range(12):
        lake.append(batch, rows(batch))

    flink.run(
        f"CALL sys.compact(`table` => '{lake.table}')",
        f"CALL sys.expire_snapshots(`table` => '{lake.table}', retain_max => 3, retain_min => 1)",
        f"CALL sys.remove_orphan_files(`table` => '{lake.table}')",
    )
    kept, files = lake.snapshot_ids(), lake.open().scans.plan_splits([])
    lake.append(11, rows(11))
    lake.append(12, rows(12))

    assert len(kept) == 3
    assert len(files) == 1
    assert lake.ids() == list(range(13))
    assert sorted(flink.read(lake.table, "id")) == [[number] for number in range(13)]


def test_a_batch_goes_in_again_after_flink_rolled_it_back(lake: Lake, flink: Flink) -> None:
    for batch in range(3):
        lake.append(batch, rows(batch))
    kept = lake.snapshot_ids()[1]

    flink.run(f"CALL sys.rollback_to(`table` => '{lake.table}', snapshot_id => {kept})")
    rolled_back = lake.ids()
    lake.append(2, rows(2))

    assert rolled_back == [0, 1]
    assert sorted(flink.read(lake.table, "id")) == [[0], [1], [2]]
