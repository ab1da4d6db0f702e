"""Names of databases, tables and columns, and partition values: they round trip, or are refused by name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructField, StructType

from paimon_sink import PwcDataSource
from paimon_sink.core.errors import OptionError, PwcError
from paimon_sink.core.names import parse_table_name
from tests.fuzz.strategies import any_text, awkward_texts
from tests.fuzz.support import SCRATCH, Watch, fuzz, refusal, watched

pytestmark = pytest.mark.fault(37)

# Names that differ in their spelling only, or look like our own directories.
TWINS = ["\u00e9", "e\u0301", "É", "x", "X", "x.", "snapshot", "snapshot.db", "pwc", "manifest", "%78", "ﬁ", "fi"]
names = awkward_texts | st.sampled_from(TWINS)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def warehouse() -> Iterator[tuple[Path, Watch]]:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory, watched() as watch:
        yield Path(directory) / "warehouse", watch


def batches(columns: dict[str, list[Any]]) -> Iterator[pa.RecordBatch]:
    """Built when they are asked for: Arrow has no names with half a character, and Spark would not get that far."""
    types = [(name, pa.int64() if name == "id" else pa.string()) for name in columns]
    yield pa.RecordBatch.from_pydict(columns, schema=pa.schema(types))


def written_and_read(options: dict[str, str], columns: dict[str, list[Any]]) -> list[dict[str, Any]] | PwcError:
    """The rows as our reader gives them back, or the refusal."""
    types = {name: LongType() if name == "id" else StringType() for name in columns}
    schema = StructType([StructField(name, data_type) for name, data_type in types.items()])
    found: list[dict[str, Any]] = []

    def there_and_back() -> None:
        source = PwcDataSource(options)
        message = source.streamWriter(schema, False).write(batches(columns))
        source.streamWriter(schema, False).commit([message], 0)
        reader = source.reader(source.schema())
        for partition in reader.partitions():
            for batch in reader.read(partition):
                found.extend(batch.to_pylist())

    refused = refusal(there_and_back)
    return sorted(found, key=lambda row: row["id"]) if refused is None else refused


# ---------------------------------------------------------------- tables


@fuzz(300)
@given(database=names, table=names)
def test_a_quoted_name_is_read_as_it_was_meant_or_refused(database: str, table: str) -> None:
    found: list[tuple[str, str]] = []

    refused = refusal(lambda: found.append(parse_table_name(f"{quoted(database)}.{quoted(table)}")))

    assert found == ([(database, table)] if refused is None else [])


@fuzz(300)
@given(text=any_text | st.text("`.ab/", max_size=12))
def test_any_text_for_a_table_is_two_plain_names_or_refused(text: str) -> None:
    try:
        database, table = parse_table_name(text)
    except OptionError:
        return

    for name in (database, table):
        assert name not in ("", ".", "..")
        assert not set(name) & {"/", "\\", "\0", "\n"}


@fuzz(40)
@given(database=names, table=names)
@example(database="snapshot", table="snapshot")
@example(database="..", table="x")
def test_a_table_stays_below_its_warehouse_and_reads_back(database: str, table: str) -> None:
    with warehouse() as (root, watch):
        options = {"warehouse": str(root), "table": f"{quoted(database)}.{quoted(table)}", "commitUser": "u"}

        found = written_and_read(options, {"id": [1], "day": ["monday"]})

        assert watch.outside(root / f"{database}.db" / table if isinstance(found, list) else root) == []
        assert isinstance(found, PwcError) or found == [{"id": 1, "day": "monday"}]


@fuzz(20)
@given(tables=st.lists(names.filter(lambda name: "\0" not in name), min_size=2, max_size=4, unique=True))
@example(tables=["\u00e9", "e\u0301"])
@example(tables=["x", "x."])
def test_tables_with_nearly_the_same_name_stay_apart(tables: list[str]) -> None:
    with warehouse() as (root, _):
        made: dict[int, dict[str, str]] = {}
        for number, table in enumerate(tables):
            options = {"warehouse": str(root), "table": f"sales.{quoted(table)}", "commitUser": "u"}
            if isinstance(written_and_read(options, {"id": [number]}), list):
                made[number] = options

        for number, options in made.items():
            reader = PwcDataSource(options).reader(PwcDataSource(options).schema())
            rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
            assert rows == [{"id": number}]


# ---------------------------------------------------------------- columns


@fuzz(50)
@given(column=names, by_it=st.booleans())
@example(column="_SEQUENCE_NUMBER", by_it=False)
@example(column="_ROW_ID", by_it=False)
@example(column="snapshot", by_it=True)
@example(column="ID", by_it=False)
@example(column="", by_it=True)
@example(column="x" * 300, by_it=True)
def test_a_column_of_any_name_reads_back_or_is_refused(column: str, by_it: bool) -> None:
    if column == "id":
        return
    with warehouse() as (root, watch):
        options = {"warehouse": str(root), "table": "sales.orders", "commitUser": "u"}
        options |= {"partitionBy": quoted(column)} if by_it else {}

        found = written_and_read(options, {"id": [1, 2], column: ["a/b", None]})

        assert watch.outside(root) == []
        assert isinstance(found, PwcError) or found == [{"id": 1, column: "a/b"}, {"id": 2, column: None}]


# ---------------------------------------------------------------- partition values


@fuzz(50)
@given(values=st.lists(st.none() | awkward_texts, min_size=1, max_size=4))
@example(values=["..", ".", "../../x", "/etc", "%2e%2e", "a=b"])
@example(values=["snapshot", "pwc/claims", "x\0y"])
@example(values=["\u00e9", "e\u0301", "x", "x.", "x "])
@example(values=[None, "", " ", "__DEFAULT_PARTITION__", "null"])
def test_a_partition_value_reads_back_or_is_refused(values: list[str | None]) -> None:
    values = [value if value is None else value.encode("utf-8", "ignore").decode() for value in values]
    with warehouse() as (root, watch):
        options = {"warehouse": str(root), "table": "sales.orders", "commitUser": "u", "partitionBy": "day"}

        found = written_and_read(options, {"id": list(range(len(values))), "day": values})

        table = root / "sales.db" / "orders"
        assert watch.outside(table) == []
        own = {"snapshot", "schema", "manifest", "pwc"}
        for name in os.listdir(table):
            assert name in own or name.startswith("day=")
        assert isinstance(found, PwcError) or found == [{"id": i, "day": value} for i, value in enumerate(values)]
        if isinstance(found, PwcError):
            assert list(table.rglob("*.parquet")) == []
