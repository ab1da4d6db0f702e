"""The adapter contract, the same for every place a table can live: what the coordinator and the tasks rely on."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.errors import SchemaMismatchError, TableChangedError, TableNotFoundError
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.contract import Format, Prepared, Table
from paimon_sink.formats.ledger import Ledger, LedgerEntry
from paimon_sink.formats.registry import _format, open_table, open_to_write
from paimon_sink.formats.values import Filter, Head, Plan, PutOutcome, SnapshotDraft
from tests.support.batches import plan, sink_options, write_plan
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import Place, places

pytestmark = pytest.mark.witness  # each test is a clause

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
NOW_MS = 4_102_444_800_000
"""Later than now: a format may refuse to let a table's clock run backwards."""


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    """The contract holds in memory too."""
    where: Place = request.param
    return where


def build(table: Table, batch: Plan, head: Head, commit_id: str = "c-1", ledger: Ledger | None = None) -> Prepared:
    entry = LedgerEntry(batch.batch_id or 0, batch.query_id, commit_id, head.next_snapshot_id, NOW_MS)
    draft = SnapshotDraft(
        plan=batch,
        commit_id=commit_id,
        ledger=ledger or Ledger({batch.commit_user: entry}),
        watermark_ms=batch.watermark_ms,
        created_ms=NOW_MS,
        properties=lambda: {"pwc.commit-id": commit_id, "team": "sales"},
    )
    return table.commits.begin(batch).build(head, draft)


def publish(table: Table, batch: Plan, commit_id: str = "c-1") -> Prepared:
    prepared = build(table, batch, table.commits.load_head(commit_user=batch.commit_user), commit_id)
    assert prepared.put() is PutOutcome.LANDED
    return prepared


def adapter(lake: Lake) -> Format:
    return _format(sink_options(lake).table.table_format)


def metadata(lake: Lake) -> list[str]:
    return [path for path in lake.files() if not path.endswith(".parquet")]


# ---------------------------------------------------------------- opening and creating


def test_a_table_that_is_not_there_opens_as_none(lake: Lake) -> None:
    assert adapter(lake).open(sink_options(lake).table) is None
    with pytest.raises(TableNotFoundError, match=re.escape(lake.table)):
        lake.open()


def test_a_created_table_says_what_it_is(lake: Lake) -> None:
    created = adapter(lake).create(sink_options(lake).table, SCHEMA, ["day"])

    opened = adapter(lake).open(sink_options(lake).table)
    assert opened is not None
    for table in (created, opened):
        assert (table.label, table.schema_id, table.partition_source_columns) == (lake.table, 0, ("day",))
        assert table.schema.names == ["id", "day"]
        assert table.schema.field("id").type == pa.int64()
        assert table.files.compression == "zstd"
        assert table.identity == created.identity


def test_creating_a_table_that_is_there_opens_it(lake: Lake) -> None:
    first = adapter(lake).create(sink_options(lake).table, SCHEMA, ["day"])
    second = adapter(lake).create(sink_options(lake).table, pa.schema([("other", pa.int32())]), [])

    assert second.identity == first.identity
    assert second.schema.names == ["id", "day"]


def test_a_table_made_anew_has_another_identity(lake: Lake) -> None:
    before = adapter(lake).create(sink_options(lake).table, SCHEMA, []).identity
    other_engine(lake).drop()

    assert adapter(lake).open(sink_options(lake).table) is None
    assert adapter(lake).create(sink_options(lake).table, SCHEMA, []).identity != before


def test_two_tables_do_not_share_an_identity(lake: Lake) -> None:
    other = Lake(lake.options, table="sales.others")

    first = adapter(lake).create(sink_options(lake).table, SCHEMA, [])
    second = adapter(other).create(sink_options(other).table, SCHEMA, [])

    assert first.identity != second.identity
    assert first.location != second.location


# ---------------------------------------------------------------- look


def test_a_look_at_an_empty_table_sees_a_complete_empty_ledger(lake: Lake) -> None:
    table = adapter(lake).create(sink_options(lake).table, SCHEMA, [])

    head = table.commits.load_head(commit_user="u")

    assert (head.snapshot_id, head.ledger) == (None, Ledger())
    assert head.table_identity == table.identity


def test_a_look_sees_what_was_put_since(lake: Lake) -> None:
    batch = write_plan(lake, 7, rows(1))
    table = lake.open()
    put = publish(table, batch).snapshot_id

    head = table.commits.load_head(commit_user="test")

    assert head.snapshot_id == put != head.next_snapshot_id
    assert head.ledger == Ledger({"test": LedgerEntry(7, None, "c-1", put, NOW_MS)})


def test_a_look_at_a_table_that_is_gone_says_so(lake: Lake) -> None:
    table = adapter(lake).create(sink_options(lake).table, SCHEMA, [])
    other_engine(lake).drop()

    with pytest.raises(TableChangedError, match=re.escape(lake.table)):
        table.commits.load_head(commit_user="u")


# ---------------------------------------------------------------- build, put, settle, discard


def test_what_is_built_is_not_seen_before_it_is_put(lake: Lake) -> None:
    lake.append(0, rows(1))
    table, batch = lake.open(), write_plan(lake, 1, rows(2))

    head = table.commits.load_head(commit_user="test")
    prepared = build(table, batch, head)

    assert prepared.snapshot_id == head.next_snapshot_id
    assert lake.ids() == [1]
    assert prepared.resolve_outcome() is PutOutcome.ABSENT
    assert prepared.put() is PutOutcome.LANDED
    assert lake.ids() == [1, 2]
    assert prepared.resolve_outcome() is PutOutcome.LANDED


def test_a_snapshot_says_who_put_it_and_carries_the_properties(lake: Lake) -> None:
    batch = replace(write_plan(lake, 7, rows(1, 2)), query_id="q")
    publish(lake.open(), batch)

    [found] = lake.history()
    assert (found.commit_user, found.batch_id, found.commit_id, found.kind) == ("test", 7, "c-1", "append")
    assert (found.rows, found.rows_added) == (2, 2)
    assert found.at_ms == NOW_MS
    assert found.properties["team"] == "sales"


def test_a_put_on_an_id_that_is_taken_is_lost_and_changes_nothing(lake: Lake) -> None:
    winner, loser = write_plan(lake, 0, rows(1)), replace(write_plan(lake, 0, rows(2)), commit_user="other")
    table = lake.open()
    head = table.commits.load_head(commit_user="test")
    first, second = build(table, winner, head, "c-1"), build(table, loser, head, "c-2")

    assert first.put() is PutOutcome.LANDED
    assert second.put() is PutOutcome.LOST

    assert first.resolve_outcome() is PutOutcome.LANDED
    assert second.resolve_outcome() is PutOutcome.LOST
    assert lake.ids() == [1]


def test_a_put_that_is_repeated_settles_as_landed(lake: Lake) -> None:
    batch = write_plan(lake, 0, rows(1))
    table = lake.open()
    prepared = publish(table, batch)

    assert prepared.put() in (PutOutcome.LOST, PutOutcome.LANDED)
    assert prepared.resolve_outcome() is PutOutcome.LANDED
    assert lake.ids() == [1]
    assert len(lake.history()) == 1


def test_a_snapshot_settles_as_landed_under_later_ones(lake: Lake) -> None:
    batch = write_plan(lake, 0, rows(1))
    table = lake.open()
    prepared = publish(table, batch)
    lake.with_options(commitUser="other").append(0, rows(2))

    assert prepared.resolve_outcome() is PutOutcome.LANDED
    assert lake.ids() == [1, 2]


def test_discarding_removes_what_was_built_and_nothing_else(lake: Lake) -> None:
    lake.append(0, rows(1))
    before, table = metadata(lake), lake.open()
    batch = write_plan(lake, 1, rows(2))

    prepared = build(table, batch, table.commits.load_head(commit_user="test"))
    assert len(metadata(lake)) > len(before)
    prepared.discard()

    assert metadata(lake) == before
    assert {file.path for file in batch.files} <= set(lake.data_files())
    assert lake.ids() == [1]


def test_the_files_a_batch_brought_in_can_be_told(lake: Lake) -> None:
    lake.append(0, rows(1))
    batch = plan(lake, 1, lake.write(rows(2)), lake.write(rows(3, day="friday")))
    table = lake.open()
    put = publish(table, batch, "c-9").snapshot_id
    lake.append(2, rows(4))

    found = table.commits.files_added_by(LedgerEntry(1, None, "c-9", put, NOW_MS))

    assert found == frozenset(file.path for file in batch.files)


def test_the_files_of_a_snapshot_that_is_gone_or_anothers_cannot_be_told(lake: Lake) -> None:
    batch = write_plan(lake, 0, rows(1))
    table = lake.open()
    put = publish(table, batch, "c-1").snapshot_id

    assert table.commits.files_added_by(LedgerEntry(0, None, "c-1", put + 98, NOW_MS)) is None
    assert table.commits.files_added_by(LedgerEntry(0, None, "someone-else", put, NOW_MS)) is None


def test_a_plan_whose_files_fit_is_not_refused(lake: Lake) -> None:
    batch = write_plan(lake, 0, rows(1))
    table = lake.open()

    table.commits.begin(batch).check_fits(table.commits.load_head(commit_user="test"))


# ---------------------------------------------------------------- overwrites


def test_a_static_overwrite_replaces_the_whole_table(lake: Lake) -> None:
    lake.append(0, rows(1, day="monday"))
    lake.append(1, rows(2, day="friday"))

    lake.commit(2, lake.write(rows(3)), overwrite=True)
    assert lake.ids() == [3]
    lake.commit(3, lake.write(rows(4)), overwrite=True)
    assert lake.ids() == [4]
    lake.append(4, rows(5))

    assert lake.ids() == [4, 5]
    assert [found.kind for found in lake.history()] == ["append", "append", "overwrite", "overwrite", "append"]
    assert [found.rows for found in lake.history()] == [1, 2, 1, 1, 2]
    assert other_engine(lake).read_ids() == [4, 5]


def test_a_static_overwrite_with_no_rows_empties_the_table(lake: Lake) -> None:
    lake.append(0, rows(1))

    lake.commit(1, lake.write(), overwrite=True)

    assert lake.ids() == []
    assert lake.history()[-1].rows == 0


def test_a_static_overwrite_of_a_partitioned_table_replaces_all_partitions(lake: Lake) -> None:
    partitioned = lake.with_options(partitionBy="day")
    partitioned.append(0, rows(1, day="monday"), rows(2, day="friday"))

    partitioned.commit(1, partitioned.write(rows(3, day="monday")), overwrite=True)

    assert partitioned.ids() == [3]


def test_a_dynamic_overwrite_replaces_the_written_partitions_only(lake: Lake) -> None:
    dynamic = lake.with_options(partitionBy="day", partitionOverwriteMode="dynamic")
    dynamic.append(0, rows(1, day="monday"), rows(2, day="friday"), rows(3, day=None))
    dynamic.append(1, rows(4, day="monday"))

    dynamic.commit(2, dynamic.write(rows(5, day="monday"), rows(6, day=None), rows(7, day="sunday")), overwrite=True)

    assert {row["id"]: row["day"] for row in dynamic.read()} == {2: "friday", 5: "monday", 6: None, 7: "sunday"}


def test_a_dynamic_overwrite_with_no_rows_deletes_nothing(lake: Lake) -> None:
    dynamic = lake.with_options(partitionBy="day", partitionOverwriteMode="dynamic")
    dynamic.append(0, rows(1))

    dynamic.commit(1, dynamic.write(), overwrite=True)

    assert dynamic.ids() == [1]
    assert len(dynamic.history()) == 1


def test_a_replayed_overwrite_is_in_once(lake: Lake) -> None:
    lake.append(0, rows(1))
    lake.commit(1, lake.write(rows(2)), overwrite=True)
    lake.with_options(commitUser="other").append(0, rows(3))

    lake.commit(1, lake.write(rows(2)), overwrite=True)

    assert lake.ids() == [2, 3]


def test_an_overwrite_that_loses_the_race_replaces_the_winner_too(lake: Lake) -> None:
    lake.append(0, rows(1))
    message = lake.write(rows(2))
    other = lake.with_options(commitUser="other")
    let_in: list[Step] = []

    def let_another_in_once(step: Step) -> None:
        if step is Step.BEFORE_PUT and not let_in:
            let_in.append(step)
            other.append(0, rows(3))

    with listening(let_another_in_once):
        lake.commit(1, message, overwrite=True)

    assert lake.ids() == [2]


# ---------------------------------------------------------------- splits


def read(table: Table, filters: list[Filter], columns: list[str]) -> list[dict[str, Any]]:
    return [
        row
        for split in table.scans.plan_splits(filters)
        for batch in table.scans.read_split(split, columns)
        for row in batch.to_pylist()
    ]


def test_splits_together_are_the_newest_snapshot(lake: Lake) -> None:
    lake.append(0, rows(1, 2))
    lake.append(1, rows(3, day="friday"))
    table = lake.open()

    splits = table.scans.plan_splits([])

    assert sum(split.rows for split in splits) == 3
    assert sorted(row["id"] for row in read(table, [], ["id"])) == [1, 2, 3]
    assert [row["day"] for row in read(table, [], ["day"])].count("friday") == 1


def test_an_empty_table_has_no_splits(lake: Lake) -> None:
    adapter(lake).create(sink_options(lake).table, SCHEMA, [])

    assert lake.open().scans.plan_splits([]) == []


@pytest.mark.parametrize(
    ("filter_by", "expected"),
    [
        pytest.param(Filter("day", Comparison.EQ, "b"), ["b"], id="="),
        pytest.param(Filter("day", Comparison.LT, "b"), ["a"], id="<"),
        pytest.param(Filter("day", Comparison.LE, "b"), ["a", "b"], id="<="),
        pytest.param(Filter("day", Comparison.GT, "b"), ["c"], id=">"),
        pytest.param(Filter("day", Comparison.GE, "b"), ["b", "c"], id=">="),
        pytest.param(Filter("day", Comparison.IN, ("a", "c", "z")), ["a", "c"], id="in"),
        pytest.param(Filter("day", Comparison.IS_NULL), [None], id="is null"),
        pytest.param(Filter("day", Comparison.IS_NOT_NULL), ["a", "b", "c"], id="is not null"),
        pytest.param(Filter("day", Comparison.EQ, "z"), [], id="no match"),
    ],
)
def test_a_filter_on_the_partition_column_plans_only_those_partitions(
    lake: Lake, filter_by: Filter, expected: list[str | None]
) -> None:
    partitioned = lake.with_options(partitionBy="day")
    partitioned.append(0, *(rows(number, day=day) for number, day in enumerate(["a", "b", "c", None])))

    found = [row["day"] for row in read(partitioned.open(), [filter_by], ["day"])]

    assert Counter(found) == Counter(expected)


def test_a_filter_on_another_column_rules_out_nothing_it_should_not(lake: Lake) -> None:
    lake.append(0, rows(1, 2, 3))

    found = read(lake.open(), [Filter("id", Comparison.EQ, 2)], ["id"])

    assert {"id": 2} in found


# ---------------------------------------------------------------- other engines


def test_another_reader_sees_the_same_rows(lake: Lake) -> None:
    partitioned = lake.with_options(partitionBy="day")
    for batch, day in enumerate(["monday", None, "a/b"]):
        partitioned.append(batch, rows(batch, 10 + batch, day=day))
    partitioned.commit(3, partitioned.write(rows(99)), overwrite=False)

    assert partitioned.ids() == other_engine(partitioned).read_ids()
    assert len(partitioned.ids()) == 7


def test_another_engine_goes_on_where_we_left_off_and_we_where_it_did(lake: Lake) -> None:
    lake.append(0, rows(1))
    other_engine(lake).append(rows(2))
    lake.append(1, rows(3))
    other_engine(lake).append(rows(4))
    lake.append(1, rows(3))

    assert lake.ids() == [1, 2, 3, 4]
    assert other_engine(lake).read_ids() == [1, 2, 3, 4]
    assert [found.rows for found in lake.history()] == [1, 2, 3, 4]


# ---------------------------------------------------------------- columns that a new table cannot have


def assert_refused_before_creation(lake: Lake, schema: pa.Schema, said: str) -> None:
    with pytest.raises(SchemaMismatchError, match=said):
        open_to_write(sink_options(lake).table, schema, compression=None)
    with pytest.raises(TableNotFoundError):
        open_table(sink_options(lake).table)


def test_columns_that_differ_only_in_case_are_refused_before_the_table_is_made(lake: Lake) -> None:
    alike = pa.schema([("id", pa.int64()), ("ID", pa.int64())])

    assert_refused_before_creation(lake, alike, "id and ID differ only in case")

    opened = open_to_write(sink_options(lake).table, alike, compression=None, case_sensitive=True)
    assert opened.schema.names == ["id", "ID"]


@pytest.mark.parametrize(
    ("data_type", "path"),
    [
        (pa.struct([]), "s"),
        (pa.list_(pa.struct([])), r"s\[\]"),
        (pa.map_(pa.string(), pa.struct([])), r"s\.value"),
        (pa.struct([("a", pa.struct([]))]), r"s\.a"),
    ],
    ids=["column", "list", "map", "field"],
)
def test_a_struct_without_fields_is_refused_before_the_table_is_made(
    lake: Lake, data_type: pa.DataType, path: str
) -> None:
    assert_refused_before_creation(lake, pa.schema([("id", pa.int64()), ("s", data_type)]), f"column {path} ")
