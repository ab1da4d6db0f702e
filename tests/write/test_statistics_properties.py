"""Whatever the values, a bound in the manifest is true for all of them."""

from __future__ import annotations

import io
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pypaimon.manifest.schema.simple_stats import SimpleStats

from paimon_sink.formats.paimon.stats import column_stats
from paimon_sink.formats.paimon.types import paimon_fields
from paimon_sink.formats.values import ClosedFile

LAST_CHARACTER, BEFORE_SURROGATES = "\U0010ffff", "\ud7ff"

near_the_cut = st.text(alphabet=["a", "b", "é", BEFORE_SURROGATES, "\ue000", "😀", LAST_CHARACTER], max_size=40)
long_with_one_start = st.builds("{}{}".format, st.just("prefix of sixteen"), st.text(max_size=30))
texts = st.lists(st.one_of(st.none(), st.text(), near_the_cut, long_with_one_start), min_size=1, max_size=8)


def stats(values: list[Any], data_type: pa.DataType, *, row_group_size: int = 3) -> SimpleStats:
    table = pa.table({"value": pa.array(values, data_type)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=row_group_size)
    file = ClosedFile(
        path="bucket-0/a.parquet",
        partition=(),
        size_bytes=buffer.tell(),
        footer=pq.read_metadata(buffer),
        null_counts={"value": table.column("value").null_count},
        nan_counts={"value": sum(isinstance(v, float) and math.isnan(v) for v in values)},
    )
    return column_stats(file, paimon_fields(table.schema, table="t"), table.schema)


def bounds(values: list[Any], data_type: pa.DataType) -> tuple[Any, Any]:
    found = stats(values, data_type)
    return found.min_values.values[0], found.max_values.values[0]


@settings(max_examples=400, deadline=None)
@given(values=texts)
@example(values=[LAST_CHARACTER * 17])
@example(values=[LAST_CHARACTER * 16])
@example(values=["a" * 15 + BEFORE_SURROGATES + "z"])
@example(values=["a" * 15 + LAST_CHARACTER + "z"])
@example(values=["a" * 5_000])
def test_no_text_is_outside_its_bounds(values: list[str | None]) -> None:
    low, high = bounds(values, pa.string())

    # Python compares texts by code point, which is the order of their UTF-8 bytes.
    said = [value for value in values if value is not None]
    assert low is None or all(low <= value for value in said)
    assert high is None or all(value <= high for value in said)
    assert all(len(bound) <= 16 for bound in (low, high) if bound is not None)
    assert all(bound.encode("utf-8").decode("utf-8") == bound for bound in (low, high) if bound is not None)


@settings(max_examples=200, deadline=None)
@given(values=st.lists(st.one_of(st.none(), st.text(max_size=16)), min_size=1, max_size=8))
def test_the_bounds_of_short_texts_are_texts_that_were_written(values: list[str | None]) -> None:
    said = [value for value in values if value is not None]

    assert bounds(values, pa.string()) == ((min(said), max(said)) if said else (None, None))


@settings(max_examples=200, deadline=None)
@given(values=st.lists(st.one_of(st.none(), st.floats()), min_size=1, max_size=8))
def test_no_double_is_outside_its_bounds(values: list[float | None]) -> None:
    low, high = bounds(values, pa.float64())

    said = [value for value in values if value is not None]
    if any(math.isnan(value) for value in said):
        assert (low, high) == (None, None)
    elif said:
        # Of infinities alone, Arrow gives the largest finite double as the lower bound: wide, and true.
        assert low <= min(said)
        assert high >= max(said)


@settings(max_examples=200, deadline=None)
@given(values=st.lists(st.one_of(st.none(), st.dates()), min_size=1, max_size=8))
def test_the_bounds_of_dates_are_exact(values: list[Any]) -> None:
    said = [value for value in values if value is not None]

    assert bounds(values, pa.date32()) == ((min(said), max(said)) if said else (None, None))


@settings(max_examples=200, deadline=None)
@given(values=st.lists(st.one_of(st.none(), st.datetimes()), min_size=1, max_size=8))
def test_the_bounds_of_timestamps_are_exact(values: list[Any]) -> None:
    said = [value for value in values if value is not None]

    assert bounds(values, pa.timestamp("us")) == ((min(said), max(said)) if said else (None, None))


@settings(max_examples=200, deadline=None)
@given(values=st.lists(st.one_of(st.none(), st.decimals(-(10**8), 10**8, places=2)), min_size=1, max_size=8))
def test_the_bounds_of_decimals_are_exact(values: list[Any]) -> None:
    said = [value for value in values if value is not None]

    assert bounds(values, pa.decimal128(12, 2)) == ((min(said), max(said)) if said else (None, None))
    assert stats(values, pa.decimal128(12, 2)).null_counts == [values.count(None)]
