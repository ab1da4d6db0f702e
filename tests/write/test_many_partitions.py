"""One stream of rows into many partitions: each row in its own, however many keys and however tight the limits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paimon_sink.write.fanout import Limits
from tests.support import tasks
from tests.support.lake import Lake, rows


def by_day(values: list[Any]) -> pa.Table:
    return pa.table({"id": list(range(len(values))), "day": pa.array(values, pa.string())})


def test_the_awkward_partitions_are_overwritten_one_by_one(lake: Lake) -> None:
    lake = lake.with_options(partitionBy="day", partitionOverwriteMode="dynamic")
    values = ["a/b", "", None, "é", "e\u0301"]
    tasks.append(lake, 0, by_day(values))

    for batch, value in enumerate(values, start=1):
        message = lake.write(rows(100 + batch, day=value))
        lake.commit(batch, message, overwrite=True)
        remaining = Counter(row["day"] for row in lake.read())
        assert remaining == Counter(values)

    assert lake.ids() == [101, 102, 103, 104, 105]


def test_rows_of_many_partition_keys_are_not_mixed_up(local_lake: Lake) -> None:
    keys = [f"k{number}" for number in range(9)]
    # 256 values a key: the ninth key's weight is a multiple of 2**64, so a plain product of codes would lose a key.
    columns = {key: [f"v{value}" for value in range(256)] + ["v0"] for key in keys}
    columns["k0"][-1] = "v1"
    table = pa.table({**columns, "id": list(range(257))})
    lake = local_lake.with_options(partitionBy=",".join(keys))

    message = tasks.append(lake, 0, table)

    assert len(message.files) == 257
    assert sorted(lake.read(), key=lambda row: row["id"]) == table.select([*keys, "id"]).to_pylist()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3))), min_size=1, max_size=60),
    split_rows=st.integers(1, 30),
    open_files=st.integers(1, 3),
)
def test_every_row_lands_in_its_partition_whatever_the_limits(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[str, int | None]], split_rows: int, open_files: int
) -> None:
    lake = Lake({"warehouse": str(tmp_path_factory.mktemp("lake"))}).with_options(partitionBy="a,b")
    table = pa.table(
        {
            "id": list(range(len(parts))),
            "a": [a for a, _ in parts],
            "b": pa.array([b for _, b in parts], pa.int32()),
        }
    )
    limits = Limits(split_rows=split_rows, row_group_rows=4, gathered_bytes=200, open_files=open_files)

    message = tasks.append(lake, 0, pa.Table.from_batches(table.to_batches(max_chunksize=7)), limits=limits)

    assert sorted(lake.read(), key=lambda row: row["id"]) == table.to_pylist()
    for file in message.files:
        directory = (
            f"a={file.partition[0]}/b={'__DEFAULT_PARTITION__' if file.partition[1] is None else file.partition[1]}"
        )
        assert file.path.startswith(f"{directory}/bucket-0/")
