"""Commit messages that are damaged or of another version: read, or refused by version, and nothing is committed."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.core.errors import MessageError
from paimon_sink.core.messages import DataFile, TaskMessage
from paimon_sink.spark.writers import PwcCommitMessage
from tests.support.batches import opened, sealed
from tests.support.lake import Lake, rows
from tests.support.old_messages import as_version_1, body_of_version_1
from tests.support.whole import assert_whole

pytestmark = pytest.mark.fault(39)

DATA = Path(__file__).parent / "data"


def message_of_version(version: Any) -> PwcCommitMessage:
    body = body_of_version_1(TaskMessage("t", 0).to_bytes())
    return PwcCommitMessage(json.dumps({**body, "version": version}).encode())


@pytest.mark.parametrize("version", [0, 2, 99, "1", None], ids=repr)
def test_a_message_of_another_version_is_refused_by_its_version(local_lake: Lake, version: Any) -> None:
    local_lake.append(0, rows(0))

    with pytest.raises(MessageError, match=f"version {version!r}.*reads versions 1 to 4"):
        local_lake.commit(1, local_lake.write(rows(1)), message_of_version(version))

    assert local_lake.batch_ids() == [0]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"garbage",
        b"\x80\x04\x95",
        b"[]",
        b"1",
        b"null",
        b"{}",
        b'{"version": 1}',
        b'{"version": 1, "table": "t", "schema": "x", "query": null, "files": []}',
        b'{"version": 1, "table": "t", "schema": 0, "query": null, "files": [1]}',
        b'{"version": 1, "table": "t", "schema": 0, "query": null, "files": null}',
        b'{"version": 1, "table": "t", "schema": 0, "query": null, "files": [{"path": "p"}]}',
        b'{"version": 1, "table": "t", "schema": 0, "query": null, "files": [{"path": "p", "partition": [], "rows": 1, '
        b'"bytes": 1, "entry": "not base64!"}]}',
    ],
    ids=lambda payload: payload[:40].decode("latin-1") or "empty",
)
def test_a_garbled_message_is_refused(local_lake: Lake, payload: bytes) -> None:
    local_lake.append(0, rows(0))

    with pytest.raises(MessageError, match="Nothing was committed"):
        local_lake.commit(1, PwcCommitMessage(payload))

    assert local_lake.batch_ids() == [0]


def test_a_message_of_an_executor_with_the_release_before_is_read_beside_ours(local_lake: Lake) -> None:
    old, new = local_lake.write(rows(1)), local_lake.write(rows(2))

    local_lake.commit(0, PwcCommitMessage(as_version_1(old.payload)), new)

    assert local_lake.ids() == [1, 2]
    assert opened(PwcCommitMessage(as_version_1(old.payload))) == opened(old)


def test_many_files_of_a_task_cost_little_more_than_their_entries(local_lake: Lake) -> None:
    partitioned = local_lake.with_options(partitionBy="day")
    message = partitioned.write(*(rows(number, day=f"day-{number:02}") for number in range(20)))

    assert len(opened(message).files) == 20
    assert len(message.payload) < len(as_version_1(message.payload)) / 4


def test_a_message_whose_entries_are_cut_is_refused(local_lake: Lake) -> None:
    unpacked = zlib.decompress(local_lake.write(rows(1)).payload[4:])

    for damaged in (unpacked[:-1], unpacked + b"x", b"\xff" * 4 + unpacked[4:], unpacked[:2]):
        with pytest.raises(MessageError, match="Nothing was committed"):
            local_lake.commit(0, PwcCommitMessage(b"pwc\x02" + zlib.compress(damaged)))


def test_a_message_without_a_payload_is_refused(local_lake: Lake) -> None:
    local_lake.append(0, rows(0))
    stranger: Any = object()

    with pytest.raises(MessageError, match="Nothing was committed"):
        local_lake.commit(1, stranger)


def test_a_message_with_a_damaged_file_entry_is_refused(local_lake: Lake) -> None:
    message = opened(local_lake.write(rows(1)))
    [file] = message.files
    broken = DataFile(file.path, file.partition, file.rows, file.size_bytes, file.entry[:10])

    with pytest.raises(MessageError, match="Nothing was committed"):
        local_lake.commit(0, sealed(TaskMessage(message.table_identity, message.schema_id, (broken,))))

    assert local_lake.history() == []


def test_a_broken_message_among_good_ones_makes_abort_delete_nothing(local_lake: Lake) -> None:
    message = local_lake.write(rows(1))

    local_lake.stream_writer().abort([message, PwcCommitMessage(b"garbage"), None], 0)

    assert local_lake.data_files() == local_lake.files_of([message])


def test_messages_of_version_1_are_read_for_as_long_as_the_version_lives() -> None:
    """The sample was written by paimon-sink 0.1.0. A reader that no longer takes it needs a new version number."""
    found = TaskMessage.from_bytes((DATA / "message-v1.json").read_bytes())

    assert found.table_identity == "5d41402abc4b2a76b9719d911017c592"
    assert found.schema_id == 3
    assert found.query_id == "7f0f2f4e-5a0e-4c8b-9a59-0a4a4e1b2c3d"
    assert [(file.path, file.partition, file.rows, file.size_bytes) for file in found.files] == [
        ("day=m%C3%B6nday/bucket-0/data-0.parquet", ("mönday",), 2, 508),
        ("day=__DEFAULT_PARTITION__/bucket-0/data-1.parquet", (None,), 1, 490),
    ]
    assert found.files[0].entry == b"\x00\x01\xffentry"


def test_a_batch_that_version_0_1_0_wrote_is_committed(tmp_path: Path) -> None:
    """An upgrade between write and commit: a table, two data files and their message, as 0.1.0 left them."""
    with zipfile.ZipFile(DATA / "table-0.1.0.zip") as archive:
        archive.extractall(tmp_path)
    lake = Lake({"warehouse": str(tmp_path / "warehouse")})

    lake.commit(0, PwcCommitMessage((tmp_path / "message.json").read_bytes()))

    assert sorted((row["id"], row["day"]) for row in lake.read()) == [(1, "mönday"), (2, "mönday"), (3, None)]
    assert_whole(lake)


def test_a_message_survives_its_own_encoding() -> None:
    file = DataFile("day=ü/bucket-0/x.parquet", ("ü", None), 3, 17, bytes(range(256)))
    message = TaskMessage("identity", 4, (file,), "query")

    assert TaskMessage.from_bytes(message.to_bytes()) == message
