"""The contract of a table format as tests, each a clause: what the coordinator, the tasks and readers rely on.

Whoever writes a format subclasses :class:`FormatContract` and gives it a fixture ``lake``; docs/adding-a-format.md has
an example. The clauses write through ``paimon_sink.sink``, and need no Spark.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.errors import SchemaMismatchError, SourceChangedError, TableChangedError, TableNotFoundError
from paimon_sink.core.properties import COMMIT_ID
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.contract import Prepared, Scans, Table
from paimon_sink.formats.ledger import Ledger, LedgerEntry
from paimon_sink.formats.registry import open_table, open_to_write
from paimon_sink.formats.values import (
    NEWEST,
    AllFilters,
    AnyFilter,
    AsOf,
    Filter,
    FilterTree,
    Head,
    Plan,
    PutOutcome,
    SnapshotDraft,
    SnapshotRange,
    Split,
)
from paimon_sink.testing.contract_lake import ContractLake, SecondEngine, rows

__all__ = ["FormatContract", "SecondEngineContract", "build"]

NOW_MS = 4_102_444_800_000
"""Later than now: a format may refuse to let a table's clock run backwards."""


def build(table: Table, batch: Plan, head: Head, commit_id: str = "c-1") -> Prepared:
    """What a coordinator would build of a plan, without one."""
    entry = LedgerEntry(batch.batch_id or 0, batch.query_id, commit_id, head.next_snapshot_id, NOW_MS)
    draft = SnapshotDraft(
        plan=batch,
        commit_id=commit_id,
        ledger=Ledger({batch.commit_user: entry}),
        watermark_ms=batch.watermark_ms,
        created_ms=NOW_MS,
        properties=lambda: {COMMIT_ID: commit_id, "team": "sales"},
    )
    return table.commits.begin(batch).build(head, draft)


def publish(table: Table, batch: Plan, commit_id: str = "c-1") -> Prepared:
    prepared = build(table, batch, table.commits.load_head(commit_user=batch.commit_user), commit_id)
    assert prepared.put() is PutOutcome.LANDED
    return prepared


def _ids(scans: Scans, splits: Sequence[Split]) -> list[int]:
    batches = [batch for split in splits for batch in scans.read_split(split, ["id"])]
    return sorted(number for batch in batches for number in batch.column("id").to_pylist())


def read(table: Table, filters: Sequence[FilterTree], columns: list[str]) -> list[dict[str, Any]]:
    return [
        row
        for split in table.scans.plan_splits(filters)
        for batch in table.scans.read_split(split, columns)
        for row in batch.to_pylist()
    ]


def assert_refused_before_creation(lake: ContractLake, schema: pa.Schema, message: str) -> None:
    with pytest.raises(SchemaMismatchError, match=message):
        open_to_write(lake.table_options, schema, compression=None)
    with pytest.raises(TableNotFoundError):
        open_table(lake.table_options)


class FormatContract:
    """What every format keeps. A subclass has a fixture ``lake``, which returns a new :class:`ContractLake`."""

    # ------------------------------------------------------------ opening and creating

    def test_a_table_that_is_not_there_opens_as_none(self, lake: ContractLake) -> None:
        assert lake.format.open(lake.table_options) is None
        with pytest.raises(TableNotFoundError, match=re.escape(lake.table)):
            lake.open()

    def test_a_created_table_says_what_it_is(self, lake: ContractLake) -> None:
        created = lake.create(partition_by=("day",))

        opened = lake.format.open(lake.table_options)
        assert opened is not None
        for table in (created, opened):
            assert (table.label, table.schema_id, table.partition_source_columns) == (lake.table, 0, ("day",))
            assert table.schema.names == ["id", "day"]
            assert table.schema.field("id").type == pa.int64()
            assert table.files.compression == "zstd"
            assert table.identity == created.identity

    def test_creating_a_table_that_is_there_opens_it(self, lake: ContractLake) -> None:
        first = lake.create(partition_by=("day",))
        second = lake.format.create(lake.table_options, pa.schema([("other", pa.int32())]), [])

        assert second.identity == first.identity
        assert second.schema.names == ["id", "day"]

    def test_a_table_made_anew_has_another_identity(self, lake: ContractLake) -> None:
        before = lake.create().identity
        lake.drop()

        assert lake.format.open(lake.table_options) is None
        assert lake.create().identity != before

    def test_two_tables_do_not_share_an_identity(self, lake: ContractLake) -> None:
        first, second = lake.create(), lake.beside().create()

        assert first.identity != second.identity
        assert first.location != second.location

    # ------------------------------------------------------------ look

    def test_a_look_at_an_empty_table_sees_a_complete_empty_ledger(self, lake: ContractLake) -> None:
        table = lake.create()

        head = table.commits.load_head(commit_user="u")

        assert (head.snapshot_id, head.ledger) == (None, Ledger())
        assert head.table_identity == table.identity

    def test_a_look_sees_what_was_put_since(self, lake: ContractLake) -> None:
        batch = lake.write_plan(7, rows(1))
        table = lake.open()
        put = publish(table, batch).snapshot_id

        head = table.commits.load_head(commit_user="test")

        assert head.snapshot_id == put != head.next_snapshot_id
        assert head.ledger == Ledger({"test": LedgerEntry(7, None, "c-1", put, NOW_MS)})

    def test_a_look_at_a_table_that_is_gone_says_so(self, lake: ContractLake) -> None:
        table = lake.create()
        lake.drop()

        with pytest.raises(TableChangedError, match=re.escape(lake.table)):
            table.commits.load_head(commit_user="u")

    # ------------------------------------------------------------ build, put, settle, discard

    def test_what_is_built_is_not_seen_before_it_is_put(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        table, batch = lake.open(), lake.write_plan(1, rows(2))

        head = table.commits.load_head(commit_user="test")
        prepared = build(table, batch, head)

        assert prepared.snapshot_id == head.next_snapshot_id
        assert lake.ids() == [1]
        assert prepared.resolve_outcome() is PutOutcome.ABSENT
        assert prepared.put() is PutOutcome.LANDED
        assert lake.ids() == [1, 2]
        assert prepared.resolve_outcome() is PutOutcome.LANDED

    def test_a_snapshot_says_who_put_it_and_carries_the_properties(self, lake: ContractLake) -> None:
        batch = replace(lake.write_plan(7, rows(1, 2)), query_id="q")
        publish(lake.open(), batch)

        [snapshot] = lake.history()
        assert (snapshot.commit_user, snapshot.batch_id, snapshot.commit_id) == ("test", 7, "c-1")
        assert snapshot.kind == "append"
        assert (snapshot.rows, snapshot.rows_added) == (2, 2)
        assert snapshot.at_ms == NOW_MS
        assert snapshot.properties["team"] == "sales"

    def test_a_put_on_an_id_that_is_taken_is_lost_and_changes_nothing(self, lake: ContractLake) -> None:
        winner = lake.write_plan(0, rows(1))
        loser = replace(lake.write_plan(0, rows(2)), commit_user="other")
        table = lake.open()
        head = table.commits.load_head(commit_user="test")
        first, second = build(table, winner, head, "c-1"), build(table, loser, head, "c-2")

        assert first.put() is PutOutcome.LANDED
        assert second.put() is PutOutcome.LOST

        assert first.resolve_outcome() is PutOutcome.LANDED
        assert second.resolve_outcome() is PutOutcome.LOST
        assert lake.ids() == [1]

    def test_a_put_that_is_repeated_settles_as_landed(self, lake: ContractLake) -> None:
        batch = lake.write_plan(0, rows(1))
        table = lake.open()
        prepared = publish(table, batch)

        assert prepared.put() in (PutOutcome.LOST, PutOutcome.LANDED)
        assert prepared.resolve_outcome() is PutOutcome.LANDED
        assert lake.ids() == [1]
        assert len(lake.history()) == 1

    def test_a_snapshot_settles_as_landed_under_later_ones(self, lake: ContractLake) -> None:
        batch = lake.write_plan(0, rows(1))
        table = lake.open()
        prepared = publish(table, batch)
        lake.with_options(commitUser="other").append(0, rows(2))

        assert prepared.resolve_outcome() is PutOutcome.LANDED
        assert lake.ids() == [1, 2]

    def test_discarding_removes_what_was_built_and_nothing_else(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        before, table = lake.metadata_files(), lake.open()
        batch = lake.write_plan(1, rows(2))

        prepared = build(table, batch, table.commits.load_head(commit_user="test"))
        assert len(lake.metadata_files()) > len(before)
        prepared.discard()

        assert lake.metadata_files() == before
        assert {file.path for file in batch.files} <= set(lake.data_files())
        assert lake.ids() == [1]

    def test_the_files_a_batch_brought_in_can_be_told(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        batch = lake.plan(1, lake.write(rows(2)), lake.write(rows(3, day="friday")))
        table = lake.open()
        put = publish(table, batch, "c-9").snapshot_id
        lake.append(2, rows(4))

        added = table.commits.files_added_by(LedgerEntry(1, None, "c-9", put, NOW_MS))

        assert added == frozenset(file.path for file in batch.files)

    def test_the_files_of_a_snapshot_that_is_gone_or_anothers_cannot_be_told(self, lake: ContractLake) -> None:
        batch = lake.write_plan(0, rows(1))
        table = lake.open()
        put = publish(table, batch, "c-1").snapshot_id

        assert table.commits.files_added_by(LedgerEntry(0, None, "c-1", put + 98, NOW_MS)) is None
        assert table.commits.files_added_by(LedgerEntry(0, None, "someone-else", put, NOW_MS)) is None

    def test_a_plan_whose_files_fit_is_not_refused(self, lake: ContractLake) -> None:
        batch = lake.write_plan(0, rows(1))
        table = lake.open()

        table.commits.begin(batch).check_fits(table.commits.load_head(commit_user="test"))

    # ------------------------------------------------------------ overwrites

    def test_a_static_overwrite_replaces_the_whole_table(self, lake: ContractLake) -> None:
        lake.append(0, rows(1, day="monday"))
        lake.append(1, rows(2, day="friday"))

        lake.commit(2, lake.write(rows(3)), overwrite=True)
        assert lake.ids() == [3]
        lake.commit(3, lake.write(rows(4)), overwrite=True)
        assert lake.ids() == [4]
        lake.append(4, rows(5))

        assert lake.ids() == [4, 5]
        history = lake.history()
        assert [snapshot.kind for snapshot in history] == ["append", "append", "overwrite", "overwrite", "append"]
        assert [snapshot.rows for snapshot in history] == [1, 2, 1, 1, 2]

    def test_a_static_overwrite_with_no_rows_empties_the_table(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))

        lake.commit(1, lake.write(), overwrite=True)

        assert lake.ids() == []
        assert lake.history()[-1].rows == 0

    def test_a_static_overwrite_of_a_partitioned_table_replaces_all_partitions(self, lake: ContractLake) -> None:
        partitioned = lake.with_options(partitionBy="day")
        partitioned.append(0, rows(1, day="monday"), rows(2, day="friday"))

        partitioned.commit(1, partitioned.write(rows(3, day="monday")), overwrite=True)

        assert partitioned.ids() == [3]

    def test_a_dynamic_overwrite_replaces_the_written_partitions_only(self, lake: ContractLake) -> None:
        dynamic = lake.with_options(partitionBy="day", partitionOverwriteMode="dynamic")
        dynamic.append(0, rows(1, day="monday"), rows(2, day="friday"), rows(3, day=None))
        dynamic.append(1, rows(4, day="monday"))

        message = dynamic.write(rows(5, day="monday"), rows(6, day=None), rows(7, day="sunday"))
        dynamic.commit(2, message, overwrite=True)

        assert {row["id"]: row["day"] for row in dynamic.read()} == {2: "friday", 5: "monday", 6: None, 7: "sunday"}

    def test_a_dynamic_overwrite_with_no_rows_deletes_nothing(self, lake: ContractLake) -> None:
        dynamic = lake.with_options(partitionBy="day", partitionOverwriteMode="dynamic")
        dynamic.append(0, rows(1))

        dynamic.commit(1, dynamic.write(), overwrite=True)

        assert dynamic.ids() == [1]
        assert len(dynamic.history()) == 1

    def test_a_replayed_overwrite_is_in_once(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        lake.commit(1, lake.write(rows(2)), overwrite=True)
        lake.with_options(commitUser="other").append(0, rows(3))

        lake.commit(1, lake.write(rows(2)), overwrite=True)

        assert lake.ids() == [2, 3]

    def test_an_overwrite_that_loses_the_race_replaces_the_winner_too(self, lake: ContractLake) -> None:
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

    # ------------------------------------------------------------ splits

    def test_splits_together_are_the_newest_snapshot(self, lake: ContractLake) -> None:
        lake.append(0, rows(1, 2))
        lake.append(1, rows(3, day="friday"))
        table = lake.open()

        splits = table.scans.plan_splits([])

        assert sum(split.rows for split in splits) == 3
        assert sorted(row["id"] for row in read(table, [], ["id"])) == [1, 2, 3]
        assert [row["day"] for row in read(table, [], ["day"])].count("friday") == 1

    def test_an_older_snapshot_reads_as_it_was(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        first = lake.open().scans.at(NEWEST).snapshot_id
        lake.append(1, rows(2))
        scans = lake.open().scans

        splits = scans.at(AsOf(version=str(first))).splits([])

        assert _ids(scans, splits) == [1]

    def test_a_range_gives_what_its_snapshots_added(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        lake.append(1, rows(2))
        second = lake.open().scans.at(NEWEST).snapshot_id
        lake.append(2, rows(3))
        scans = lake.open().scans

        splits = scans.appended(SnapshotRange(first=second)).splits([])

        assert _ids(scans, splits) == [2, 3]

    def test_a_range_over_an_overwrite_is_refused_or_passes_it_over(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        first = lake.open().scans.at(NEWEST).snapshot_id
        lake.commit(1, lake.write(rows(2)), overwrite=True)
        scans = lake.open().scans

        with pytest.raises(SourceChangedError):
            scans.appended(SnapshotRange(first=first)).splits([])
        [split] = scans.appended(SnapshotRange(first=first, skip_changes=True)).splits([])
        assert split.snapshot_id == first

    def test_an_empty_table_has_no_splits(self, lake: ContractLake) -> None:
        lake.create()

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
            pytest.param(Filter("day", Comparison.STARTS_WITH, "b"), ["b"], id="like"),
            pytest.param(
                AnyFilter((Filter("day", Comparison.EQ, "a"), Filter("day", Comparison.IS_NULL))), ["a", None], id="or"
            ),
            pytest.param(
                AllFilters((Filter("day", Comparison.NE, "b"), Filter("day", Comparison.IS_NOT_NULL))),
                ["a", "c"],
                id="and !=",
            ),
        ],
    )
    def test_a_filter_on_the_partition_column_plans_only_those_partitions(
        self, lake: ContractLake, filter_by: FilterTree, expected: list[str | None]
    ) -> None:
        partitioned = lake.with_options(partitionBy="day")
        partitioned.append(0, *(rows(number, day=day) for number, day in enumerate(["a", "b", "c", None])))

        days = [row["day"] for row in read(partitioned.open(), [filter_by], ["day"])]

        assert Counter(days) == Counter(expected)

    def test_a_filter_on_another_column_rules_out_nothing_it_should_not(self, lake: ContractLake) -> None:
        lake.append(0, rows(1, 2, 3))

        kept = read(lake.open(), [Filter("id", Comparison.EQ, 2)], ["id"])

        assert {"id": 2} in kept

    def test_a_filter_with_an_alternative_on_another_column_rules_out_nothing(self, lake: ContractLake) -> None:
        partitioned = lake.with_options(partitionBy="day")
        partitioned.append(0, rows(1, day="a"), rows(2, day="b"))
        either = AnyFilter((Filter("day", Comparison.EQ, "a"), Filter("id", Comparison.EQ, 2)))

        kept = read(partitioned.open(), [either], ["id"])

        assert sorted(row["id"] for row in kept) == [1, 2]

    # ------------------------------------------------------------ columns that a new table cannot have

    def test_columns_that_differ_only_in_case_are_refused_before_the_table_is_made(self, lake: ContractLake) -> None:
        alike = pa.schema([("id", pa.int64()), ("ID", pa.int64())])

        assert_refused_before_creation(lake, alike, "id and ID differ only in case")

        opened = open_to_write(lake.table_options, alike, compression=None, case_sensitive=True)
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
        self, lake: ContractLake, data_type: pa.DataType, path: str
    ) -> None:
        assert_refused_before_creation(lake, pa.schema([("id", pa.int64()), ("s", data_type)]), f"column {path} ")


class SecondEngineContract:
    """What a format keeps that another engine reads and writes, too. Its ``lake`` has a ``second_engine``.

    A format that only this package knows does not subclass it. One that does, without an engine, fails.
    """

    def test_another_reader_sees_the_same_rows(self, lake: ContractLake) -> None:
        partitioned = lake.with_options(partitionBy="day")
        for batch, day in enumerate(["monday", None, "a/b"]):
            partitioned.append(batch, rows(batch, 10 + batch, day=day))
        partitioned.commit(3, partitioned.write(rows(99)), overwrite=False)

        assert partitioned.ids() == second_engine(partitioned).read_ids()
        assert len(partitioned.ids()) == 7

    def test_another_reader_sees_what_static_overwrites_left(self, lake: ContractLake) -> None:
        lake.append(0, rows(1, day="monday"))
        lake.append(1, rows(2, day="friday"))
        lake.commit(2, lake.write(rows(3)), overwrite=True)
        lake.commit(3, lake.write(rows(4)), overwrite=True)
        lake.append(4, rows(5))

        assert second_engine(lake).read_ids() == [4, 5]

    def test_another_engine_goes_on_where_we_left_off_and_we_where_it_did(self, lake: ContractLake) -> None:
        lake.append(0, rows(1))
        second_engine(lake).append(rows(2))
        lake.append(1, rows(3))
        second_engine(lake).append(rows(4))
        lake.append(1, rows(3))

        assert lake.ids() == [1, 2, 3, 4]
        assert second_engine(lake).read_ids() == [1, 2, 3, 4]
        assert [snapshot.rows for snapshot in lake.history()] == [1, 2, 3, 4]


def second_engine(lake: ContractLake) -> SecondEngine:
    if lake.second_engine is None:
        pytest.fail(
            "The clauses of SecondEngineContract need another engine, and this ContractLake has none. Give it a "
            "second_engine, or subclass FormatContract alone."
        )
    return lake.second_engine
