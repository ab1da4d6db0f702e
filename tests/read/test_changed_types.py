"""Files that were written with other types, as pypaimon itself reads them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from tests.support import foreign, tasks
from tests.support.lake import Lake
from tests.support.reading import read


@pytest.mark.parametrize(
    ("kind", "new_type", "values"),
    [
        (pa.int32(), "BIGINT", [1, None, -(2**31)]),
        (pa.int16(), "DECIMAL(10, 2)", [1, None, -5]),
        (pa.float32(), "DOUBLE", [0.5, None, -0.0]),
        (pa.decimal128(6, 2), "DECIMAL(10, 4)", [Decimal("1.25"), None, Decimal("-9999.99")]),
        (pa.string(), "VARCHAR(2)", ["abcdef", None, "x"]),
    ],
)
def test_a_column_of_another_type_is_read_as_the_library_reads_it(
    local_lake: Lake, kind: pa.DataType, new_type: str, values: list[Any]
) -> None:
    written = pa.table({"id": pa.array([0, 1, 2], pa.int64()), "a": pa.array(values, kind)})
    tasks.append(local_lake, 0, written)
    foreign.catalog(local_lake).alter_table(
        local_lake.table, [SchemaChange.update_column_type("a", AtomicType(new_type))], False
    )

    ours, theirs = read(local_lake), foreign.read(local_lake).to_pylist()

    assert sorted(ours, key=lambda row: row["id"]) == sorted(theirs, key=lambda row: row["id"])
    assert [row["a"] for row in read(local_lake, versionAsOf="1")] == values
