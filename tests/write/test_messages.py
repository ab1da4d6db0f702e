"""What a task sends to the coordinator: a frozen value, the same after its journey, with nothing secret in it."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paimon_sink.core.clock import Moment
from paimon_sink.core.errors import MessageError
from paimon_sink.core.messages import MESSAGE_VERSION, DataFile, TaskMessage
from tests.support.batches import opened
from tests.support.lake import Lake, rows
from tests.support.old_messages import as_version_1, body_of_version_1

any_text = st.text()  # whole characters: Arrow and Spark know no others, and halves are refused when a message is read
counts = st.integers(min_value=0, max_value=2**63 - 1)
files = st.builds(
    DataFile,
    path=any_text,
    partition=st.lists(st.none() | any_text, max_size=4).map(tuple),
    rows=counts,
    size_bytes=counts,
    entry=st.binary(max_size=200),
)
messages = st.builds(
    TaskMessage,
    table_identity=any_text,
    schema_id=counts,
    files=st.lists(files, max_size=5).map(tuple),
    query_id=st.none() | any_text,
    planned=st.none() | st.builds(Moment, counts, counts),
)


@given(message=messages)
@example(message=TaskMessage("", 0))
@example(message=TaskMessage("t", 0, (DataFile("/p", (), 0, 0, b""), DataFile("p/", (), 0, 0, b"e"))))
@example(message=TaskMessage("t", 0, (DataFile("p", ("", None, "null", "None"), 0, 0, b""),), ""))
def test_a_message_is_the_same_after_its_journey(message: TaskMessage) -> None:
    raw = message.to_bytes()

    assert TaskMessage.from_bytes(raw) == message
    assert TaskMessage.from_bytes(raw).to_bytes() == raw


@given(raw=st.binary(max_size=300))
def test_any_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(MessageError, match="Nothing was committed"):
        TaskMessage.from_bytes(raw)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(value=json_values)
@example(value=[])
@example(value={"version": True})
@example(value={"version": 1})
@example(value={"version": MESSAGE_VERSION})
@example(value={"version": 1, "table": "t", "schema": 0, "query": None, "files": [7]})
@example(value={"version": 1, "table": "t", "schema": 0, "query": None, "files": [{"path": "p"}]})
@example(value={"version": 1, "table": "t", "schema": 0, "query": None, "files": None})
def test_other_json_is_refused(value: object) -> None:
    with pytest.raises(MessageError, match="Nothing was committed"):
        TaskMessage.from_bytes(json.dumps(value).encode("utf-8"))


@pytest.mark.parametrize("planned", [-1, True, "yesterday", [], [1], [1, -1], [1.5, 1], [1, 1, 1]])
def test_a_time_that_is_none_is_refused(planned: object) -> None:
    body = {**body_of_version_1(TaskMessage("t", 0).to_bytes()), "planned": planned}

    with pytest.raises(MessageError, match="Nothing was committed"):
        TaskMessage.from_bytes(json.dumps(body).encode("utf-8"))


def test_a_message_without_a_time_is_read() -> None:
    body = {**body_of_version_1(TaskMessage("t", 0, planned=Moment(7, 7)).to_bytes()), "written": 7}
    del body["planned"]

    assert TaskMessage.from_bytes(json.dumps(body).encode("utf-8")) == TaskMessage("t", 0)


@given(message=messages.filter(lambda message: bool(message.files)), cut=st.floats(min_value=0, max_value=0.999))
def test_a_message_cut_short_is_refused(message: TaskMessage, cut: float) -> None:
    raw = message.to_bytes()

    with pytest.raises(MessageError, match="Nothing was committed"):
        TaskMessage.from_bytes(raw[: int(len(raw) * cut)])


@pytest.mark.parametrize("value", [TaskMessage("t", 0), DataFile("p", (), 1, 1, b"")], ids=["message", "file"])
def test_it_cannot_be_changed(value: TaskMessage | DataFile) -> None:
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, None)
    assert hash(value) == hash(dataclasses.replace(value))


@pytest.mark.s3
def test_a_real_message_carries_no_value_of_any_option(s3_lake: Lake) -> None:
    lake = s3_lake.with_options(
        partitionBy="day", commitUser="nightly-9f2c", snapshotProperty__owner="team-4d1e", targetFileSize="777kb"
    )

    payload = lake.write(rows(1, 2, day="friday")).payload

    (file,) = TaskMessage.from_bytes(payload).files
    readable = as_version_1(payload) + file.entry
    told = {key: value for key, value in lake.all_options().items() if value.encode("utf-8") in readable}
    # The partition column's name is in the path.
    assert told == {"partitionBy": "day"}


@pytest.mark.witness
def test_paths_in_a_real_message_are_relative_to_the_table(lake: Lake) -> None:
    message = opened(lake.write(rows(1)))

    assert [file.path.split("/")[0] for file in message.files] == ["bucket-0"]
    assert lake.data_files() == [file.path for file in message.files]
