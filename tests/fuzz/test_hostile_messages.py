"""Commit messages that no task of ours sent: refused by name, or right; the table reads as it should."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_sink.core.messages import TaskMessage
from tests.fuzz.strategies import any_text, broken_bytes, broken_json, junk
from tests.fuzz.support import Sample, Scene, fuzz

pytestmark = pytest.mark.fault(37, 39)


def paths_of(*payloads: bytes) -> frozenset[str]:
    return frozenset(file.path for payload in payloads for file in TaskMessage.from_bytes(payload).files)


def ids(scene: Scene) -> list[int]:
    return scene.lake.ids()


def committed_or_left_alone(scene: Scene, sample: Sample, *payloads: Any) -> None:
    """Batch 2 with these messages is in with all its rows, or refused with the table as it was."""
    before = scene.files()

    refused = scene.commit(2, *payloads)

    scene.assert_unharmed(before)
    if refused is not None:
        assert ids(scene) == [1, 2, 3, 4]
        assert sorted(name for name in scene.files() if "snapshot-" in name) == sorted(
            name for name in before if "snapshot-" in name
        )
    else:
        # A message that leaves a file out, or all, cannot be told from one of a task that wrote less.
        monday, nowhere = (file["path"] for file in json.loads(sample.fresh)["files"])
        named = {file.path for payload in payloads for file in TaskMessage.from_bytes(payload).files}
        assert ids(scene) == [1, 2, 3, 4, *[5] * (monday in named), *[6] * (nowhere in named)]
        assert named <= {monday, nowhere}


@fuzz(60)
@given(data=st.data())
def test_a_message_with_other_fields_is_refused_or_right(sample: Sample, data: st.DataObject) -> None:
    payload = data.draw(broken_json(json.loads(sample.fresh)))
    with sample.scene() as scene:
        committed_or_left_alone(scene, sample, payload)


@fuzz(60)
@given(data=st.data())
def test_a_message_whose_bytes_were_damaged_is_refused_or_right(sample: Sample, data: st.DataObject) -> None:
    payload = data.draw(broken_bytes(sample.fresh))
    with sample.scene() as scene:
        committed_or_left_alone(scene, sample, payload)


@fuzz(40)
@given(data=st.data())
def test_a_compressed_message_whose_bytes_were_damaged_is_refused_or_right(sample: Sample, data: st.DataObject) -> None:
    payload = data.draw(broken_bytes(TaskMessage.from_bytes(sample.fresh).to_bytes()))
    with sample.scene() as scene:
        committed_or_left_alone(scene, sample, payload)


@fuzz(60)
@given(data=st.data())
def test_a_compressed_message_with_other_fields_is_refused_or_right(sample: Sample, data: st.DataObject) -> None:
    unpacked = zlib.decompress(TaskMessage.from_bytes(sample.fresh).to_bytes()[4:])
    end = 4 + int.from_bytes(unpacked[:4], "big")
    head = data.draw(broken_json(json.loads(unpacked[4:end])))
    payload = b"pwc\x02" + zlib.compress(len(head).to_bytes(4, "big") + head + unpacked[end:])
    with sample.scene() as scene:
        committed_or_left_alone(scene, sample, payload)


@fuzz(60)
@given(data=st.data())
def test_a_damaged_file_entry_is_refused_or_right(sample: Sample, data: st.DataObject) -> None:
    body = json.loads(sample.fresh)
    file = data.draw(st.sampled_from(body["files"]))
    entry = data.draw(broken_bytes(base64.b64decode(file["entry"])))
    file["entry"] = base64.b64encode(entry).decode()
    with sample.scene() as scene:
        committed_or_left_alone(scene, sample, json.dumps(body).encode())


@fuzz(40)
@given(
    path=any_text | st.sampled_from(["schema/schema-0", "snapshot/snapshot-1", "../neighbour/schema/schema-0", "/x"])
)
def test_a_message_that_names_another_path_is_refused(sample: Sample, path: str) -> None:
    body = json.loads(sample.fresh)
    body["files"][0]["path"] = path
    payload = json.dumps(body).encode()
    with sample.scene() as scene:
        before = scene.files()

        assert scene.commit(2, payload) is not None
        scene.abort(2, payload)

        scene.assert_unharmed(before, may_go=paths_of(sample.fresh))
        assert ids(scene) == [1, 2, 3, 4]


@fuzz(40)
@given(payload=st.binary(max_size=200) | st.none() | st.integers() | any_text | junk)
def test_anything_for_a_message_is_refused(sample: Sample, payload: Any) -> None:
    with sample.scene() as scene:
        before = scene.files()

        assert scene.commit(2, payload) is not None
        scene.abort(2, payload)

        scene.assert_unharmed(before)


@fuzz(40)
@given(data=st.data())
def test_aborting_a_broken_message_deletes_nothing_but_its_own_files(sample: Sample, data: st.DataObject) -> None:
    other = data.draw(broken_json(json.loads(sample.fresh)) | broken_bytes(sample.fresh))
    with sample.scene() as scene:
        before = scene.files()

        scene.abort(2, sample.fresh, other)

        scene.assert_unharmed(before, may_go=paths_of(sample.fresh))


@fuzz(40)
@given(data=st.data())
def test_a_broken_replay_deletes_no_file_that_the_table_names(sample: Sample, data: st.DataObject) -> None:
    payload = data.draw(broken_json(json.loads(sample.replay)) | broken_bytes(sample.replay))
    with sample.scene() as scene:
        before = scene.files()

        scene.commit(1, payload)

        scene.assert_unharmed(before, may_go=paths_of(sample.replay))
        assert ids(scene) == [1, 2, 3, 4]


@fuzz(25)
@given(order=st.permutations(range(4)), count=st.integers(1, 4), batch_id=st.integers(0, 4), aborts=st.booleans())
def test_messages_of_other_batches_are_refused(
    sample: Sample, order: list[int], count: int, batch_id: int, aborts: bool
) -> None:
    """Each message says of which batch it is; Spark tells every task."""
    all_of_them = [(0, sample.committed[0]), (1, sample.committed[1]), (1, sample.replay), (2, sample.fresh)]
    chosen = [all_of_them[number] for number in order[:count]]
    payloads = [json.dumps({**json.loads(payload), "batch": batch}).encode() for batch, payload in chosen]
    strange = any(batch != batch_id for batch, _ in chosen)
    with sample.scene() as scene:
        before = scene.files()

        if aborts:
            scene.abort(batch_id, *payloads)
        else:
            assert (scene.commit(batch_id, *payloads) is not None) == (strange or batch_id == 0)

        scene.assert_unharmed(before, may_go=frozenset() if strange else paths_of(sample.replay, sample.fresh))
        assert ids(scene) in ([1, 2, 3, 4], [1, 2, 3, 4, 5, 6])


@fuzz(20)
@given(batch_id=st.integers(0, 4), beside=st.booleans())
def test_a_message_of_another_table_is_refused(sample: Sample, batch_id: int, beside: bool) -> None:
    payloads = [sample.neighbour, sample.fresh] if beside else [sample.neighbour]
    with sample.scene() as scene:
        before = scene.files()

        assert scene.commit(batch_id, *payloads) is not None
        scene.abort(batch_id, *payloads)

        scene.assert_unharmed(before, may_go=paths_of(sample.fresh))
        assert ids(scene) == [1, 2, 3, 4]


@fuzz(30)
@given(version=junk | st.integers())
def test_only_our_own_version_is_read(sample: Sample, version: Any) -> None:
    body = {**json.loads(sample.fresh), "version": version}
    with sample.scene() as scene:
        refused = scene.commit(2, json.dumps(body).encode())

        assert (refused is None) == (version == 1 and type(version) is int)
