"""Files of the table that cannot be understood: named in the error, never guessed at, and nothing is deleted."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import CorruptTableError, PwcError
from tests.support.engines import OtherEngine
from tests.support.lake import Lake, rows

pytestmark = [pytest.mark.fault(38), pytest.mark.damages]


@pytest.mark.witness
@pytest.mark.needs("a snapshot file")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"version": 3, "id": 2', id="cut off"),
        pytest.param(b"[]", id="another shape"),
        pytest.param(b"{}", id="no fields"),
        pytest.param(b"\x00\xff\xfe", id="no text"),
    ],
)
def test_a_corrupt_snapshot_is_named_and_nothing_is_committed(lake: Lake, engine: OtherEngine, data: bytes) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    name = engine.damage_snapshot(data)
    message = lake.write(rows(2))

    for batch in (1, 2):
        with pytest.raises(CorruptTableError, match=name):
            lake.commit(batch, message)

    assert set(lake.files_of([message])) <= set(lake.data_files())
    with pytest.raises(CorruptTableError, match=name):
        lake.history()


@pytest.mark.witness
@pytest.mark.needs("a ledger to damage")
@pytest.mark.parametrize(
    "ledger",
    [
        pytest.param("", id="empty"),
        pytest.param('{"version": 1', id="cut off"),
        pytest.param("[]", id="another shape"),
        pytest.param("null", id="null"),
        pytest.param('{"version": 1, "complete": true}', id="no users"),
        pytest.param('{"version": 1, "complete": true, "users": {"test": [1]}}', id="a short entry"),
        pytest.param('{"version": 1, "complete": true, "users": {"test": ["x", null, "c", 1, 1]}}', id="no number"),
        pytest.param('{"version": 99, "complete": true, "users": {}}', id="a later version"),
    ],
)
def test_a_corrupt_ledger_is_named_and_nothing_is_committed(lake: Lake, engine: OtherEngine, ledger: str) -> None:
    lake.append(0, rows(0))
    name = engine.damage_ledger(ledger)
    before, message = lake.history(), lake.write(rows(1))

    for batch in (0, 1):
        with pytest.raises(CorruptTableError, match=f"ledger in .*{name}"):
            lake.commit(batch, message)

    assert lake.history() == before
    assert set(lake.files_of([message])) <= set(lake.data_files())


@pytest.mark.witness
@pytest.mark.needs("manifests to damage")
@pytest.mark.parametrize("which", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"garbage", id="garbage"),
        pytest.param(b"", id="empty"),
        pytest.param(b"Obj\x01", id="cut off"),
    ],
)
def test_a_corrupt_manifest_list_is_named_and_nothing_is_committed(
    lake: Lake, engine: OtherEngine, which: int, data: bytes
) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    before = lake.history()
    name = engine.damage_manifest_list(which, data)
    message = lake.write(rows(2))

    with pytest.raises(CorruptTableError, match=name):
        lake.commit(2, message)

    assert lake.history() == before
    assert set(lake.files_of([message])) <= set(lake.data_files())


@pytest.mark.needs("manifests to damage")
@pytest.mark.parametrize("which", [0, -1], ids=["first", "last"])
def test_a_manifest_list_that_is_gone_is_named_and_nothing_is_committed(
    lake: Lake, engine: OtherEngine, which: int
) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    before = lake.history()
    name = engine.damage_manifest_list(which, None)

    with pytest.raises(PwcError, match=name):
        lake.append(2, rows(2))

    assert lake.history() == before


@pytest.mark.needs("manifests to damage")
@pytest.mark.parametrize("data", [b"garbage", None], ids=["garbage", "gone"])
def test_a_broken_manifest_fails_an_overwrite_by_name_and_leaves_the_table_alone(
    lake: Lake, engine: OtherEngine, data: bytes | None
) -> None:
    lake.append(0, rows(0))
    before = lake.history()
    name = engine.damage_manifest(data)
    message = lake.write(rows(1))

    with pytest.raises(PwcError, match=name):
        lake.commit(1, message, overwrite=True)

    assert lake.history() == before


@pytest.mark.needs("manifests to damage")
def test_a_broken_manifest_of_the_batch_that_is_in_is_named_to_its_replay(lake: Lake, engine: OtherEngine) -> None:
    first = lake.append(0, rows(0))
    name = engine.damage_manifest(b"garbage")
    replay = lake.write(rows(0))

    with pytest.raises(CorruptTableError, match=name):
        lake.commit(0, replay)

    # Which files are live cannot be told, so none is deleted.
    assert lake.data_files() == lake.files_of([first, replay])


@pytest.mark.witness
@pytest.mark.needs("a schema file")
def test_a_corrupt_schema_is_named_before_a_row_is_written(lake: Lake, engine: OtherEngine) -> None:
    lake.append(0, rows(0))
    name = engine.damage_schema(b"{")

    with pytest.raises(CorruptTableError, match=name):
        lake.write(rows(1))
