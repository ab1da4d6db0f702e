"""Files of the table and messages that cannot be understood: named in the error, never guessed at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.core.errors import CorruptTableError, MessageError, PwcError
from paimon_sink.core.messages import MESSAGE_VERSION, DataFile, TaskMessage
from paimon_sink.spark.writers import PwcCommitMessage
from tests.support.batches import opened, path_in, sealed
from tests.support.lake import Lake, rows

DATA = Path(__file__).parent / "data"


def damage(lake: Lake, path: str, data: bytes) -> None:
    lake.open().store.write(path_in(lake, path), data)


def edit_snapshot(lake: Lake, snapshot_id: int, **properties: str) -> None:
    path = path_in(lake, "snapshot", f"snapshot-{snapshot_id}")
    body = json.loads(lake.open().store.read(path))
    body["properties"].update(properties)
    lake.open().store.write(path, json.dumps(body).encode())


# ---------------------------------------------------------------- the table's files


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
def test_a_corrupt_snapshot_is_named_and_nothing_is_committed(lake: Lake, data: bytes) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    damage(lake, "snapshot/snapshot-2", data)
    message = lake.write(rows(2))

    for batch in (1, 2):
        with pytest.raises(CorruptTableError, match="snapshot/snapshot-2"):
            lake.commit(batch, message)

    assert set(lake.files_of([message])) <= set(lake.data_files())
    assert [path for path in lake.files("snapshot/snapshot-") if path.endswith("-3")] == []


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
def test_a_corrupt_ledger_is_named_and_nothing_is_committed(lake: Lake, ledger: str) -> None:
    lake.append(0, rows(0))
    edit_snapshot(lake, 1, **{"pwc.ledger": ledger})
    before, message = lake.snapshots(), lake.write(rows(1))

    for batch in (0, 1):
        with pytest.raises(CorruptTableError, match=r"ledger in .*snapshot/snapshot-1"):
            lake.commit(batch, message)

    assert lake.snapshots() == before
    assert set(lake.files_of([message])) <= set(lake.data_files())


@pytest.mark.parametrize("which", ["baseManifestList", "deltaManifestList"])
@pytest.mark.parametrize("data", [b"", b"garbage", b"Obj\x01"], ids=["empty", "garbage", "cut off"])
def test_a_corrupt_manifest_list_is_named_and_nothing_is_committed(lake: Lake, which: str, data: bytes) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    before = lake.snapshots()
    name = before[-1][which]
    damage(lake, f"manifest/{name}", data)
    message = lake.write(rows(2))

    with pytest.raises(CorruptTableError, match=name):
        lake.commit(2, message)

    assert lake.snapshots() == before
    assert set(lake.files_of([message])) <= set(lake.data_files())


@pytest.mark.parametrize("which", ["baseManifestList", "deltaManifestList"])
def test_a_manifest_list_that_is_gone_is_named_and_nothing_is_committed(lake: Lake, which: str) -> None:
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    before = lake.snapshots()
    lake.open().store.delete(path_in(lake, "manifest", before[-1][which]))

    with pytest.raises((PwcError, FileNotFoundError), match=before[-1][which]):
        lake.append(2, rows(2))

    assert lake.snapshots() == before


@pytest.mark.parametrize("data", [b"garbage", None], ids=["garbage", "gone"])
def test_a_broken_manifest_fails_an_overwrite_by_name_and_leaves_the_table_alone(
    lake: Lake, data: bytes | None
) -> None:
    lake.append(0, rows(0))
    before = lake.snapshots()
    [manifest] = [path for path in lake.files("manifest/manifest-") if "list" not in path]
    if data is None:
        lake.open().store.delete(path_in(lake, manifest))
    else:
        damage(lake, manifest, data)
    message = lake.write(rows(1))

    with pytest.raises((PwcError, FileNotFoundError), match=manifest.rsplit("/", 1)[-1]):
        lake.commit(1, message, overwrite=True)

    assert lake.snapshots() == before


def test_a_broken_manifest_of_the_batch_that_is_in_is_named_to_its_replay(lake: Lake) -> None:
    first = lake.append(0, rows(0))
    [manifest] = [path for path in lake.files("manifest/manifest-") if "list" not in path]
    damage(lake, manifest, b"garbage")
    replay = lake.write(rows(0))

    with pytest.raises(CorruptTableError, match=manifest.rsplit("/", 1)[-1]):
        lake.commit(0, replay)

    # Which files are live cannot be told, so none is deleted.
    assert lake.data_files() == lake.files_of([first, replay])


def test_a_corrupt_schema_is_named_before_a_row_is_written(lake: Lake) -> None:
    lake.append(0, rows(0))
    path = path_in(lake, "schema", "schema-0")
    store = lake.open().store
    store.write(path, b"{")

    with pytest.raises(CorruptTableError, match="schema/schema-0"):
        lake.write(rows(1))


# ---------------------------------------------------------------- messages


def message_of_version(version: Any) -> PwcCommitMessage:
    body = json.loads(TaskMessage("t", 0).to_bytes())
    return PwcCommitMessage(json.dumps({**body, "version": version}).encode())


@pytest.mark.parametrize("version", [0, 2, 99, "1", None], ids=repr)
def test_a_message_of_another_version_is_refused_by_its_version(local_lake: Lake, version: Any) -> None:
    local_lake.append(0, rows(0))

    with pytest.raises(MessageError, match=f"version {version!r}.*reads version {MESSAGE_VERSION}"):
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

    assert local_lake.snapshots() == []


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


def test_a_message_survives_its_own_encoding() -> None:
    file = DataFile("day=ü/bucket-0/x.parquet", ("ü", None), 3, 17, bytes(range(256)))
    message = TaskMessage("identity", 4, (file,), "query")

    assert TaskMessage.from_bytes(message.to_bytes()) == message


def test_ledgers_of_version_1_are_read_for_as_long_as_the_version_lives(local_lake: Lake) -> None:
    local_lake.append(0, rows(1))
    ledger = (DATA / "ledger-v1.json").read_text().strip()
    edit_snapshot(local_lake, 1, **{"pwc.ledger": ledger})

    entries = local_lake.open().look(commit_user="nightly-ö").ledger.entries

    assert entries["nightly-ö"].batch_id == 41
    assert entries["nightly-ö"].query_id is None
    assert entries["orders"].query_id == "7f0f2f4e-5a0e-4c8b-9a59-0a4a4e1b2c3d"
    assert entries["orders"].snapshot_id == 12
