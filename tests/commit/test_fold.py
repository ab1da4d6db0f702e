"""Folding messages into a plan: all or nothing, and nothing that a message could smuggle in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from paimon_sink.commit.fold import commit_kind, fold, fold_job, routed_files, written_files
from paimon_sink.core.errors import MessageError, OptionError, TableChangedError
from paimon_sink.core.messages import DataFile, RoutedFiles, TaskMessage
from paimon_sink.core.option_groups import CommitOptions
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import parse_options
from paimon_sink.formats.values import CommitKind, Plan

TABLE = "sales.orders"
ORDERS = {"warehouse": "/lake", "table": TABLE}


def options(extra: Mapping[str, str] | None = None, purpose: Purpose = Purpose.STREAM_WRITE) -> CommitOptions:
    return parse_options({**ORDERS, **(extra or {})}, purpose=purpose).commit


def file(path: str = "bucket-0/data-1.parquet", *, rows: int = 2) -> DataFile:
    return DataFile(path, ("monday",), rows=rows, size_bytes=100, entry=b"entry")


def message(*files: DataFile, identity: str = "table-1", schema_id: int = 0, query_id: str | None = "q") -> TaskMessage:
    return TaskMessage(identity, schema_id, files, query_id)


def folded(*messages: TaskMessage | None, overwrite: bool = False, **extra: str) -> Plan | None:
    return fold(messages, table=TABLE, options=options(extra), batch_id=7, overwrite=overwrite)


def test_messages_become_one_plan() -> None:
    first, second = file("bucket-0/a.parquet", rows=2), file("bucket-0/b.parquet", rows=3)

    plan = folded(message(first), message(), message(second, schema_id=1))

    assert plan == Plan(
        commit_user="q",
        batch_id=7,
        query_id="q",
        files=(first, second),
        kind=CommitKind.APPEND,
        table_identity="table-1",
        schema_ids=frozenset({0, 1}),
    )
    assert plan is not None
    assert (plan.rows, plan.size_bytes, plan.changes_nothing) == (5, 200, False)


def test_the_commit_user_option_wins_over_the_query_id_and_the_query_id_is_kept() -> None:
    plan = folded(message(file()), commitUser="nightly")

    assert plan is not None
    assert (plan.commit_user, plan.query_id) == ("nightly", "q")


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([None], id="the only one"),
        pytest.param([message(file()), None], id="one of two"),
        pytest.param([None, message(), None], id="two of three"),
    ],
)
def test_a_missing_message_means_no_plan(messages: list[TaskMessage | None]) -> None:
    missing = messages.count(None)

    with pytest.raises(MessageError, match=f"{missing} of {len(messages)} tasks did not report. Nothing was committed"):
        folded(*messages)
    with pytest.raises(MessageError, match=f"{missing} of {len(messages)} tasks did not report"):
        fold_job(messages, table=TABLE, options=options(), overwrite=False, unique_id="id-1")


def test_messages_of_two_incarnations_of_the_table_are_refused() -> None:
    with pytest.raises(TableChangedError, match=r"sales\.orders.*dropped and created again"):
        folded(message(identity="table-1"), message(identity="table-2"))


def test_two_messages_with_the_same_file_are_refused() -> None:
    with pytest.raises(MessageError, match=r"bucket-0/data-1\.parquet"):
        folded(message(file()), message(file()))


def test_one_message_with_the_same_file_twice_is_refused() -> None:
    with pytest.raises(MessageError, match=r"bucket-0/data-1\.parquet"):
        folded(message(file(), file()))


@pytest.mark.parametrize(
    "path",
    [
        "../orders2/bucket-0/data.parquet",
        "..",
        "bucket-0/../../other/data.parquet",
        "bucket-0/../data.parquet",
        "/etc/passwd",
        "//etc/passwd",
        "./bucket-0/data.parquet",
        "bucket-0//data.parquet",
        "bucket-0/data.parquet/",
        "bucket-0/.",
        "",
        ".",
    ],
)
def test_a_file_outside_the_table_is_refused(path: str) -> None:
    with pytest.raises(MessageError, match="is not inside the table"):
        folded(message(file(path)))
    with pytest.raises(MessageError, match="is not inside the table"):
        written_files([message(file(path)), None])


@pytest.mark.parametrize("path", ["day=../bucket-0/x.parquet", "..day/x.parquet", "day=a b/bucket-0/x.parquet"])
def test_a_file_whose_name_only_looks_like_an_escape_is_accepted(path: str) -> None:
    assert folded(message(file(path))) is not None


def test_messages_of_two_queries_are_refused() -> None:
    with pytest.raises(MessageError, match="2 different queries"):
        folded(message(query_id="q"), message(query_id="r"))
    with pytest.raises(MessageError, match="2 different queries"):
        folded(message(query_id="q"), message(query_id=None), commitUser="nightly")


def test_a_writer_without_any_name_is_refused() -> None:
    with pytest.raises(OptionError, match="set the option commitUser"):
        folded(message(file(), query_id=None))


def test_a_batch_without_tasks_needs_no_name_and_no_plan() -> None:
    assert folded() is None


def test_an_overwrite_without_tasks_needs_a_name() -> None:
    with pytest.raises(OptionError, match="set the option commitUser"):
        folded(overwrite=True)


def test_a_batch_without_tasks_under_an_explicit_name_publishes_nothing() -> None:
    plan = folded(commitUser="nightly")

    assert plan is None or plan.changes_nothing


def test_a_one_shot_write_has_a_user_of_its_own() -> None:
    first = fold_job([message(file())], table=TABLE, options=options(), overwrite=False, unique_id="id-1")
    second = fold_job([message(file())], table=TABLE, options=options(), overwrite=False, unique_id="id-2")

    assert (first.commit_user, second.commit_user) == ("id-1", "id-2")
    assert (first.batch_id, first.query_id) == (None, None)


def test_a_one_shot_write_with_a_user_only_is_still_one_shot() -> None:
    given = options({"commitUser": "nightly"}, Purpose.BATCH_WRITE)

    first = fold_job([message(file())], table=TABLE, options=given, overwrite=False, unique_id="id-1")
    second = fold_job([message(file())], table=TABLE, options=given, overwrite=False, unique_id="id-2")

    assert first.batch_id is None
    assert (first.commit_user, second.commit_user) == ("nightly-id-1", "nightly-id-2")


def test_a_batch_job_with_user_and_identifier_is_in_the_ledger() -> None:
    given = options({"commitUser": "nightly", "commitIdentifier": "20260131"}, Purpose.BATCH_WRITE)

    plan = fold_job([message(file())], table=TABLE, options=given, overwrite=False, unique_id="id-1")

    assert (plan.commit_user, plan.batch_id, plan.query_id) == ("nightly", 20260131, None)


@pytest.mark.parametrize(
    ("overwrite", "dynamic", "expected"),
    [
        pytest.param(False, False, CommitKind.APPEND, id="append"),
        pytest.param(False, True, CommitKind.APPEND, id="append ignores the overwrite mode"),
        pytest.param(True, False, CommitKind.OVERWRITE, id="static"),
        pytest.param(True, True, CommitKind.OVERWRITE_PARTITIONS, id="dynamic"),
    ],
)
def test_what_a_write_replaces(overwrite: bool, dynamic: bool, expected: CommitKind) -> None:
    assert commit_kind(overwrite=overwrite, dynamic=dynamic) is expected

    mode = "dynamic" if dynamic else "static"
    plan = folded(message(file()), overwrite=overwrite, partitionOverwriteMode=mode)
    assert plan is not None
    assert plan.kind is expected


@pytest.mark.parametrize(
    ("replace", "nothing"),
    [(CommitKind.APPEND, True), (CommitKind.OVERWRITE_PARTITIONS, True), (CommitKind.OVERWRITE, False)],
    ids=lambda value: getattr(value, "value", str(value)),
)
def test_only_a_static_overwrite_changes_the_table_with_no_files(replace: CommitKind, nothing: bool) -> None:
    plan = Plan("u", 1, "q", (), replace, "table-1", frozenset({0}))

    assert plan.changes_nothing is nothing


def job(*messages: TaskMessage, **extra: str) -> Plan:
    return fold_job(
        messages, table=TABLE, options=options(extra, Purpose.BATCH_WRITE), overwrite=True, unique_id="id-1"
    )


def test_an_overwrite_without_the_option_does_as_its_tasks_say() -> None:
    dynamic = replace(message(file(), query_id=None), dynamic_overwrite=True)

    assert job(dynamic).kind is CommitKind.OVERWRITE_PARTITIONS
    assert job(message(file(), query_id=None)).kind is CommitKind.OVERWRITE


def test_the_option_wins_over_what_tasks_say_of_overwrites() -> None:
    dynamic = replace(message(file(), query_id=None), dynamic_overwrite=True)

    assert job(dynamic, partitionOverwriteMode="static").kind is CommitKind.OVERWRITE
    assert job(message(file()), partitionOverwriteMode="dynamic").kind is CommitKind.OVERWRITE_PARTITIONS


def test_only_a_job_with_an_identifier_comes_in_any_order() -> None:
    assert job(message(), commitUser="u", commitIdentifier="3").in_any_order
    assert not job(message(), commitUser="u").in_any_order
    stream = folded(message(file()))
    assert stream is not None
    assert not stream.in_any_order


def test_a_table_that_rows_chose_and_that_is_another_one_by_now_fails_the_batch() -> None:
    def chosen(identity: str) -> TaskMessage:
        return replace(message(), routed=(RoutedFiles("shop.orders", identity, frozenset({0}), (file(),)),))

    with pytest.raises(TableChangedError, match=r"shop\.orders: the table was dropped and created again"):
        routed_files([chosen("table-1"), None, chosen("table-2")])
