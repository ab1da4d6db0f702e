"""Metadata of an Iceberg table that is broken or gone: it is named, and nothing is committed or deleted."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import CorruptTableError, PwcError
from tests.support.iceberg_engine import IcebergEngine, native
from tests.support.lake import Lake, rows


@pytest.fixture
def lake(iceberg_sqlite_lake: Lake) -> Lake:
    iceberg_sqlite_lake.append(0, rows(0))
    return iceberg_sqlite_lake


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"\x00\xff\xfe"])
def test_broken_metadata_is_named(lake: Lake, data: bytes) -> None:
    message = lake.write(rows(1))
    name = IcebergEngine(lake).damage_snapshot(data)

    for use in (lambda: lake.commit(1, message), lake.history, lake.ids):
        with pytest.raises(CorruptTableError, match=name):
            use()


@pytest.mark.parametrize("data", [b"garbage", b"", b"Obj\x01", None], ids=["garbage", "empty", "cut off", "gone"])
def test_a_broken_manifest_list_is_named_and_nothing_is_committed(lake: Lake, data: bytes | None) -> None:
    before = lake.history()
    name = IcebergEngine(lake).damage_manifest_list(0, data)
    message = lake.write(rows(1))

    with pytest.raises(CorruptTableError, match=name):
        lake.commit(1, message)

    assert lake.history() == before
    assert set(lake.files_of([message])) <= set(lake.data_files())
    with pytest.raises(CorruptTableError):
        lake.ids()


@pytest.mark.parametrize("data", [b"garbage", None], ids=["garbage", "gone"])
def test_a_broken_manifest_fails_an_overwrite_by_name(lake: Lake, data: bytes | None) -> None:
    before = lake.history()
    name = IcebergEngine(lake).damage_manifest(data)
    message = lake.write(rows(1))

    with pytest.raises(PwcError, match=name):
        lake.commit(1, message, overwrite=True)

    assert lake.history() == before


def test_a_broken_manifest_of_the_batch_that_is_in_is_named_to_its_replay(lake: Lake) -> None:
    before = lake.data_files()
    name = IcebergEngine(lake).damage_manifest(b"garbage")
    replay = lake.write(rows(0))

    with pytest.raises(CorruptTableError, match=name):
        lake.commit(0, replay)

    # Which files are live cannot be told, so none is deleted.
    assert lake.data_files() == sorted([*before, *lake.files_of([replay])])


def test_a_file_access_that_the_table_asks_for_is_not_used(lake: Lake) -> None:
    with native(lake).transaction() as transaction:
        transaction.set_properties({"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"})

    lake.append(1, rows(1))

    assert lake.ids() == [0, 1]
