"""Columns get a dictionary where values come again, and none where it would be thrown away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_sink.write.encoding import dictionary_columns
from tests.support.batches import path_in
from tests.support.lake import Lake
from tests.support.tasks import write

ROWS = 200_000


def table(**columns: Sequence[Any] | pa.Array) -> pa.Table:
    return pa.table(columns)


@pytest.mark.parametrize(
    ("column", "has_dictionary"),
    [
        pytest.param(lambda: range(ROWS), False, id="numbers that are all different"),
        pytest.param(lambda: [f"order {number}" for number in range(ROWS)], False, id="texts that are all different"),
        pytest.param(lambda: [number % 100 for number in range(ROWS)], True, id="a hundred numbers"),
        pytest.param(
            lambda: [number * 7919 % 40_000 for number in range(ROWS)], True, id="all of many, again and again"
        ),
        pytest.param(lambda: [number // 10 for number in range(ROWS)], True, id="each ten times"),
        pytest.param(lambda: pa.nulls(ROWS, pa.int64()), True, id="nothing but nulls"),
        pytest.param(
            lambda: [number if number % 4 else None for number in range(ROWS)], False, id="different, with nulls"
        ),
        pytest.param(lambda: [[number] for number in range(ROWS)], True, id="lists"),
    ],
)
def test_a_dictionary_is_for_values_that_come_again(
    column: Callable[[], Sequence[Any] | pa.Array], has_dictionary: bool
) -> None:
    assert bool(dictionary_columns(table(column=column()))) == has_dictionary


def test_columns_inside_others_are_named_as_parquet_names_them() -> None:
    rows = table(
        id=[1, 2, 3],
        tags=[["a"], [], None],
        place=[{"x": 1, "y": 2}] * 3,
        sizes=pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int32())),
    )

    assert dictionary_columns(rows) == [
        "tags.list.element",
        "place.x",
        "place.y",
        "sizes.key_value.key",
        "sizes.key_value.value",
    ]


def test_a_table_without_rows_is_no_trouble() -> None:
    assert dictionary_columns(pa.schema([("id", pa.int64())]).empty_table()) == ["id"]


def test_data_files_are_written_so(local_lake: Lake) -> None:
    rows = table(id=range(ROWS), shop=[f"shop {number % 50}" for number in range(ROWS)])

    message = write(local_lake, rows.to_batches(), rows.schema)

    [file] = message.files
    footer = pq.read_metadata(path_in(local_lake, file.path))
    group = footer.row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(2)}
    assert "RLE_DICTIONARY" not in encodings["id"]
    assert "RLE_DICTIONARY" in encodings["shop"]
    assert pq.read_table(path_in(local_lake, file.path)).equals(
        rows.cast(pq.read_schema(path_in(local_lake, file.path)))
    )


def test_decimals_of_few_digits_are_whole_numbers_in_the_file(local_lake: Lake) -> None:
    """As Iceberg's specification says. Java Paimon writes them so, and its filters fail on decimals in bytes."""
    kinds = {"few": (9, 2), "more": (18, 0), "many": (19, 2)}
    values = {name: pa.array([Decimal("-1"), None], pa.decimal128(*digits)) for name, digits in kinds.items()}
    rows = pa.table({**values, "inside": pa.StructArray.from_arrays([values["few"]], ["d"])})

    message = write(local_lake, rows.to_batches(), rows.schema)

    file = pq.ParquetFile(path_in(local_lake, message.files[0].path))
    stored = {file.schema.column(leaf).path: file.schema.column(leaf).physical_type for leaf in range(4)}
    assert stored == {"few": "INT32", "more": "INT64", "many": "FIXED_LEN_BYTE_ARRAY", "inside.d": "INT32"}
    assert file.read().cast(rows.schema) == rows
