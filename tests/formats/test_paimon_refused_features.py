"""Paimon tables with a feature we cannot write safely are refused by the feature's name, before the first row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pypaimon.schema.schema_change import SchemaChange

from paimon_sink.core.errors import PwcError, UnsupportedTableError
from tests.support import foreign
from tests.support.lake import Lake, rows

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
KEYED = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.string())])

FEATURES = [
    pytest.param({"bucket": "4", "bucket-key": "id"}, "bucket", id="fixed buckets"),
    pytest.param({"bucket": "4"}, "bucket = 4", id="buckets without a key"),
    pytest.param({"row-tracking.enabled": "true"}, "row tracking", id="row tracking"),
    pytest.param({"data-evolution.enabled": "true", "row-tracking.enabled": "true"}, "data evolution", id="evolution"),
    pytest.param({"deletion-vectors.enabled": "true"}, "deletion vectors", id="deletion vectors"),
    pytest.param({"file.format": "orc"}, "file format orc", id="orc"),
    pytest.param({"file.format": "avro"}, "file format avro", id="avro"),
]


@pytest.mark.parametrize(("options", "name"), FEATURES)
def test_a_table_with_a_feature_we_cannot_write_is_not_created(
    paimon_lake: Lake, options: dict[str, str], name: str
) -> None:
    lake = paimon_lake.with_options(**{f"table.{key}": value for key, value in options.items()})

    with pytest.raises(UnsupportedTableError, match=name):
        lake.write(rows(1))

    with pytest.raises(PwcError):
        paimon_lake.open()


@pytest.mark.witness
@pytest.mark.parametrize(("options", "name"), FEATURES)
def test_an_existing_table_with_a_feature_we_cannot_write_is_refused(
    paimon_lake: Lake, options: dict[str, str], name: str
) -> None:
    foreign.create(paimon_lake, SCHEMA, options=options)

    with pytest.raises(UnsupportedTableError, match=rf"sales\.orders.*{name}"):
        paimon_lake.write(rows(1))

    assert paimon_lake.data_files() == []


def test_an_existing_table_with_a_primary_key_is_refused(paimon_lake: Lake) -> None:
    foreign.create(paimon_lake, KEYED, primary_keys=["id"], options={"bucket": "1"})

    with pytest.raises(UnsupportedTableError, match="a primary key"):
        paimon_lake.write(rows(1))

    assert paimon_lake.data_files() == []


def test_a_table_with_a_primary_key_is_not_created(paimon_lake: Lake) -> None:
    with pytest.raises(UnsupportedTableError, match="a primary key"):
        paimon_lake.with_options(**{"table.primary-key": "id"}).write(rows(1))


def test_a_table_that_gets_such_a_feature_later_is_refused(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    foreign.catalog(local_lake).alter_table(local_lake.table, [SchemaChange.set_option("file.format", "orc")], False)

    with pytest.raises(UnsupportedTableError, match="file format orc"):
        local_lake.write(rows(2))


def test_a_plain_table_made_by_another_engine_is_written(paimon_lake: Lake) -> None:
    foreign.create(paimon_lake, SCHEMA, partition_keys=["day"], options={"bucket": "-1", "file.format": "parquet"})

    paimon_lake.append(0, rows(1))
    foreign.append(paimon_lake, rows(2))

    assert paimon_lake.ids() == [1, 2]
    assert sorted(foreign.read(paimon_lake)["id"].to_pylist()) == [1, 2]
