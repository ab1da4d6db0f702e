"""Guards that only a moment between two steps, or a message of somewhere else, puts to the test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paimon_sink.core.errors import CorruptTableError, MessageError
from paimon_sink.core.steps import Step, listening
from paimon_sink.spark.writers import PwcCommitMessage
from paimon_sink.storage import exclusive
from paimon_sink.storage.durable import write_synced
from tests.support.batches import opened, path_in, sealed
from tests.support.lake import Lake, rows


@pytest.mark.fault(14)
def test_a_put_that_comes_second_by_a_moment_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "snapshot-1"

    def write_and_let_another_in(temporary: str, data: bytes) -> None:
        """Between our look at the name and our link, another writer puts its own file."""
        monkeypatch.setattr(exclusive, "write_synced", write_synced)
        write_synced(temporary, data)
        assert exclusive.put_local(str(path), b"theirs")

    monkeypatch.setattr(exclusive, "write_synced", write_and_let_another_in)

    assert not exclusive.put_local(str(path), b"ours")

    assert path.read_bytes() == b"theirs"
    assert [found.name for found in tmp_path.iterdir()] == ["snapshot-1"]


@pytest.mark.fault(4)
def test_abort_of_a_batch_that_may_still_land_deletes_nothing(local_lake: Lake) -> None:
    """A stopped query may abort while the commit process is still under way."""
    message = local_lake.write(rows(1))

    def abort_meanwhile(step: Step) -> None:
        if step is Step.BEFORE_PUT:
            local_lake.stream_writer().abort([message], 0)

    with listening(abort_meanwhile):
        local_lake.commit(0, message)

    assert local_lake.ids() == [1]


def of_batch(message: PwcCommitMessage, batch_id: int) -> PwcCommitMessage:
    """The message as a task of that batch would have sent it."""
    return sealed(replace(opened(message), batch_id=batch_id))


@pytest.mark.fault(39)
def test_a_message_of_an_earlier_batch_is_not_committed_again(local_lake: Lake) -> None:
    message = of_batch(local_lake.append(0, rows(1)), 0)

    with pytest.raises(MessageError, match="of batch 0, this is batch 1"):
        local_lake.commit(1, message)

    assert local_lake.ids() == [1]


@pytest.mark.fault(39)
def test_a_replay_with_a_message_of_an_earlier_batch_deletes_no_live_file(local_lake: Lake) -> None:
    """Batch 1 is in, so its replay's files go; those of batch 0 are none of its own."""
    message = of_batch(local_lake.append(0, rows(1)), 0)
    local_lake.append(1, rows(2))

    with pytest.raises(MessageError, match="of batch 0, this is batch 1"):
        local_lake.commit(1, message)
    local_lake.stream_writer().abort([message, None], 2)

    assert local_lake.ids() == [1, 2]


@pytest.mark.witness
@pytest.mark.fault(39)
def test_a_message_that_names_one_file_and_describes_another_is_refused(lake: Lake) -> None:
    """What it describes would be published, what it names would be deleted."""
    live = opened(lake.append(0, rows(1)))
    fresh = opened(lake.write(rows(2)))
    mixed = sealed(replace(fresh, files=(replace(fresh.files[0], path=live.files[0].path),)))

    with pytest.raises(MessageError, match="describes another one"):
        lake.commit(1, mixed)
    lake.stream_writer().abort([mixed, None], 1)

    assert lake.ids() == [1]


@pytest.mark.witness
@pytest.mark.fault(37)
def test_abort_deletes_no_file_of_the_table_s_own(lake: Lake) -> None:
    lake.append(0, rows(1))
    before = lake.files()
    fresh = opened(lake.write(rows(2)))

    for path in before:
        mixed = sealed(replace(fresh, files=(replace(fresh.files[0], path=path),)))
        lake.stream_writer().abort([mixed, None], 1)

    assert lake.files() == sorted([*before, fresh.files[0].path])


@pytest.mark.fault(29)
def test_a_file_that_cannot_be_begun_is_closed_and_removed(local_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output was opened and never closed; Python's own warning about that fails this test."""
    local_lake.write(rows())
    monkeypatch.setattr("paimon_sink.write.files.pq.ParquetWriter", _no_writer)

    with pytest.raises(MemoryError):
        local_lake.write(rows(1))

    assert local_lake.data_files() == []


def _no_writer(*_: object, **__: object) -> None:
    raise MemoryError


@pytest.mark.fault(25)
def test_a_look_does_not_believe_a_hint_that_is_behind(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    local_lake.append(1, rows(2))
    table = local_lake.open()
    table.store.write(table.store.join(table.location, "snapshot", "LATEST"), b"1")

    assert table.commits.load_head(commit_user="test").snapshot_id == 2


@pytest.mark.fault(38)
@pytest.mark.damages
@pytest.mark.parametrize(
    ("field", "value"), [("options", " "), ("options", {"a": 1}), ("partitionKeys", "day"), ("primaryKeys", [1])]
)
def test_a_schema_with_a_field_of_another_kind_is_named(local_lake: Lake, field: str, value: object) -> None:
    local_lake.append(0, rows(0))
    path = path_in(local_lake, "schema", "schema-0")
    store = local_lake.open().store
    store.write(path, json.dumps({**json.loads(store.read(path)), field: value}).encode())

    with pytest.raises(CorruptTableError, match="schema-0"):
        local_lake.write(rows(1))
