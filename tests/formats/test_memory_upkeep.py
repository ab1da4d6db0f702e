"""Tables in memory: put and read-back, overwrites, compaction, tags, expiry, cleaning and verification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_sink.core.condition_text import Comparison
from paimon_sink.core.errors import CommitConflictError, FilesReplacedError, RefusedError, TableChangedError
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.audit import ProblemKind
from paimon_sink.formats.contract import Prepared
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.memory import MemoryLake, memory_lake
from paimon_sink.formats.memory.table import MemoryTable
from paimon_sink.formats.values import CommitKind, Filter, Plan, PutOutcome
from paimon_sink.maintain import compact
from paimon_sink.maintain.clean import clean
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.verify import verify
from tests.support.clock import FakeClock
from tests.support.lake import rows
from tests.support.memory import TABLE, MemoryWriter, draft

HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def lake(clock: FakeClock) -> Iterator[MemoryLake]:
    with memory_lake(clock=clock) as opened:
        yield opened


def build(table: MemoryTable, plan: Plan, commit_id: str = "c-1") -> Prepared:
    commit = table.commits.begin(plan)
    head = commit.load_head()
    return commit.build(head, draft(plan, head, commit_id=commit_id))


def metadata(lake: MemoryLake) -> list[str]:
    table = lake.table(TABLE)
    return [path for path in table.store.walk_files(table.location) if not path.endswith(".parquet")]


# ---------------------------------------------------------------- put and read-back


def test_what_is_built_is_not_seen_before_it_is_put(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    prepared = build(writer.open(), writer.plan(0, writer.write(rows(1))))
    assert (writer.ids(), prepared.resolve_outcome()) == ([], PutOutcome.ABSENT)

    assert prepared.put() is PutOutcome.LANDED

    assert (writer.ids(), prepared.resolve_outcome()) == ([1], PutOutcome.LANDED)
    [info] = writer.open().upkeep.history()
    assert (info.commit_user, info.batch_id, info.commit_id, info.kind) == ("test", 0, "c-1", "append")
    assert (info.rows, info.rows_added, info.at_ms, info.properties["team"]) == (1, 1, 7, "sales")


def test_of_two_puts_on_one_base_one_is_lost_and_changes_nothing(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    first = build(writer.open(), writer.plan(0, writer.write(rows(1))), "c-1")
    second = build(writer.open(), writer.as_user("other").plan(0, writer.write(rows(2))), "c-2")

    assert (first.put(), second.put()) == (PutOutcome.LANDED, PutOutcome.LOST)

    assert (first.resolve_outcome(), second.resolve_outcome()) == (PutOutcome.LANDED, PutOutcome.LOST)
    assert first.put() is PutOutcome.LOST
    assert writer.ids() == [1]


def test_a_snapshot_that_landed_and_expired_has_landed(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    prepared = build(writer.open(), writer.plan(0, writer.write(rows(1))))
    prepared.put()
    writer.append(1, rows(2))

    writer.open().upkeep.expire([1])

    assert prepared.resolve_outcome() is PutOutcome.LANDED


def test_a_snapshot_that_was_rolled_back_has_not_landed(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    prepared = build(writer.open(), writer.plan(1, writer.write(rows(2))))
    prepared.put()

    lake.roll_back(TABLE, 1)
    assert prepared.resolve_outcome() is PutOutcome.ABSENT
    writer.as_user("other").append(0, rows(3))
    assert prepared.resolve_outcome() is PutOutcome.LOST


def test_nothing_lands_in_a_table_that_was_dropped(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    prepared = build(writer.open(), writer.plan(0, writer.write(rows(1))))

    lake.drop(TABLE)

    assert (prepared.put(), prepared.resolve_outcome()) == (PutOutcome.LOST, PutOutcome.LOST)


def test_discarding_removes_what_was_built_and_nothing_else(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    before = metadata(lake)
    plan = writer.plan(1, writer.write(rows(2)))

    prepared = build(writer.open(), plan)
    assert len(metadata(lake)) == len(before) + 1
    prepared.discard()

    assert metadata(lake) == before
    assert lake.table(TABLE).side_files.absent([file.path for file in plan.files]) == []


def test_the_files_of_a_batch_can_be_told_while_its_snapshot_stands(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    plan = writer.plan(0, writer.write(rows(1)))
    build(writer.open(), plan, "c-9").put()
    commits = writer.open().commits

    assert commits.files_added_by(LedgerEntry(0, None, "c-9", 1, 7)) == frozenset(file.path for file in plan.files)
    assert commits.files_added_by(LedgerEntry(0, None, "someone-else", 1, 7)) is None
    assert commits.files_added_by(LedgerEntry(0, None, "c-9", 2, 7)) is None


# ---------------------------------------------------------------- overwrites and filters


def test_a_static_overwrite_replaces_the_whole_table(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake, partition_by=["day"])
    writer.append(0, rows(1, day="monday"), rows(2, day="friday"))

    writer.overwrite(1, rows(3, day="monday"))

    assert writer.ids() == [3]
    assert [(info.kind, info.rows, info.rows_added) for info in writer.open().upkeep.history()] == [
        ("append", 2, 2),
        ("overwrite", 1, -1),
    ]


def test_a_dynamic_overwrite_replaces_the_written_partitions_only(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake, partition_by=["day"], dynamic=True)
    writer.append(0, rows(1, day="monday"), rows(2, day="friday"), rows(3, day=None), rows(4, day="None"))

    writer.overwrite(1, rows(5, day="monday"), rows(6, day=None))

    assert writer.ids() == [2, 4, 5, 6]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(Filter("key", Comparison.EQ, 10), [10], id="="),
        pytest.param(Filter("key", Comparison.LT, 10), [9], id="<"),
        pytest.param(Filter("key", Comparison.LE, 10), [9, 10], id="<="),
        pytest.param(Filter("key", Comparison.GT, 9), [10, 100], id=">"),
        pytest.param(Filter("key", Comparison.GE, 10), [10, 100], id=">="),
        pytest.param(Filter("key", Comparison.IN, (9, 100, 7)), [9, 100], id="in"),
        pytest.param(Filter("key", Comparison.IS_NULL), [None], id="is null"),
        pytest.param(Filter("key", Comparison.IS_NOT_NULL), [9, 10, 100], id="is not null"),
        pytest.param(Filter("id", Comparison.EQ, 0), [9, 10, 100, None], id="no partition column"),
    ],
)
def test_a_filter_leaves_out_other_partitions_by_value(
    lake: MemoryLake, wanted: Filter, expected: list[int | None]
) -> None:
    schema = pa.schema([("id", pa.int64()), ("key", pa.int32())])
    batch = pa.RecordBatch.from_pydict({"id": [0, 1, 2, 3], "key": [9, 10, 100, None]}, schema=schema)
    MemoryWriter(lake, partition_by=["key"], schema=schema).append(0, batch)
    scans = lake.table(TABLE).scans

    batches = [batch for split in scans.plan_splits([wanted]) for batch in scans.read_split(split, ["key"])]

    assert sorted((key for b in batches for key in b["key"].to_pylist()), key=str) == sorted(expected, key=str)


# ---------------------------------------------------------------- compaction


def test_a_compaction_puts_the_same_rows_into_fewer_files(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    for batch in range(4):
        writer.append(batch, rows(batch))
    table = writer.open()

    done = compact.compact_groups(table, compact.plan(table, target_bytes=1 << 20).groups)

    assert (done.files_before, done.files_after) == (4, 1)
    assert writer.ids() == [0, 1, 2, 3]
    assert len(table.scans.live_files()) == 1
    assert (table.upkeep.history()[-1].kind, table.upkeep.history()[-1].is_rewrite) == ("compact", True)
    assert verify(table, deep=True).problems == ()


def test_a_compaction_that_was_overtaken_is_refused(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    writer.append(1, rows(2))
    table = writer.open()
    groups = compact.plan(table, target_bytes=1 << 20).groups

    def overwrite_once(step: Step) -> None:
        if step is Step.AFTER_BUILD and not overtaken:
            overtaken.append(step)
            writer.overwrite(2, rows(3))

    overtaken: list[Step] = []
    with listening(overwrite_once), pytest.raises(FilesReplacedError, match="2 of the 2 files to replace"):
        compact.compact_groups(table, groups)

    assert writer.ids() == [3]
    assert verify(table).orphans == ()


def test_a_compaction_with_other_rows_is_refused(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1, 2))
    live = writer.open().scans.live_files()
    plan = replace(
        writer.plan(1, writer.write(rows(1))),
        kind=CommitKind.REWRITE,
        batch_id=None,
        removed=frozenset(file.path for file in live),
    )

    with pytest.raises(RefusedError, match="the new files have 1 rows, those to replace have 2"):
        build(writer.open(), plan)

    assert writer.ids() == [1, 2]


def test_files_are_not_listed_for_columns_of_before(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    table = writer.open()
    lake.change_schema(TABLE, table.schema.append(pa.field("note", pa.string())))

    with pytest.raises(TableChangedError, match="The columns of sales"):
        table.scans.live_files()


# ---------------------------------------------------------------- tags and expiry


def test_expiry_removes_the_oldest_and_every_file_that_only_they_name(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    writer.overwrite(1, rows(2))
    writer.append(2, rows(3))

    report = expire(writer.open(), Retention(keep_last=1), clock=FakeClock())

    assert report.removed.snapshot_ids == (1, 2)
    assert (report.removed.data_files, report.removed.metadata_files, report.removed.left_behind) == (1, 2, 0)
    assert writer.ids() == [2, 3]
    assert (verify(writer.open()).problems, verify(writer.open()).orphans) == ((), ())
    # The ledger rides in the newest snapshot.
    assert writer.append(2, rows(3)).already_committed


def test_a_tag_keeps_the_files_of_its_snapshot(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    refs = writer.open().refs
    assert refs.tag("monday", 1)
    writer.overwrite(1, rows(2))
    assert refs.tag("monday", 2)

    expire(writer.open(), Retention(keep_last=1), clock=FakeClock())

    report = verify(writer.open(), deep=True)
    assert (report.problems, report.orphans, report.tags_and_branches) == ((), (), ("tag monday",))
    assert report.data_files == 2
    assert not refs.tag("tuesday", 1)
    assert refs.tag_names() == ["monday"]
    refs.drop_tag("monday")
    refs.drop_tag("monday")
    assert len(verify(writer.open()).orphans) == 2


def test_tags_above_a_rollback_go_with_it(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    writer.append(1, rows(2))
    refs = writer.open().refs
    refs.tag("first", 1)
    refs.tag("second", 2)

    lake.roll_back(TABLE, 1)

    assert refs.tag_names() == ["first"]


def test_snapshots_that_are_not_the_oldest_do_not_expire(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    for batch in range(3):
        writer.append(batch, rows(batch))

    for chosen in ([2], [1, 2, 3], [0]):
        with pytest.raises(CommitConflictError, match="not those that were to expire"):
            writer.open().upkeep.expire(chosen)

    assert [snapshot.snapshot_id for snapshot in lake.snapshots(TABLE)] == [1, 2, 3]


# ---------------------------------------------------------------- cleaning and verification


def test_cleaning_deletes_what_nothing_names_once_it_is_old(lake: MemoryLake, clock: FakeClock) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    orphans = writer.write(rows(2)).files
    assert clean(writer.open(), older_than_ms=HOUR_MS, dry_run=False, clock=clock).deleted == 0

    clock.now += 2 * HOUR_MS
    report = clean(writer.open(), older_than_ms=HOUR_MS, dry_run=False, clock=clock)

    assert [orphan.path for orphan in report.orphans] == [file.path for file in orphans]
    assert report.deleted == 1
    assert writer.ids() == [1]


def test_cleaning_spares_the_old_files_of_a_commit_under_way(lake: MemoryLake, clock: FakeClock) -> None:
    writer = MemoryWriter(lake)
    plan = writer.plan(0, writer.write(rows(1)))
    clock.now += 2 * HOUR_MS
    prepared = build(writer.open(), plan)

    report = clean(writer.open(), older_than_ms=HOUR_MS, dry_run=False, clock=clock)

    assert report.deleted == 0
    assert prepared.put() is PutOutcome.LANDED
    assert writer.ids() == [1]


def test_verification_finds_a_file_that_is_in_twice(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    plan = writer.plan(0, writer.write(rows(1)))
    build(writer.open(), plan, "c-1").put()
    build(writer.open(), replace(plan, commit_user="other"), "c-2").put()

    assert [problem.kind for problem in verify(writer.open()).problems] == [ProblemKind.DOUBLED_FILE]
    assert writer.ids() == [1, 1]


def test_verification_finds_files_that_are_missing_or_damaged(lake: MemoryLake) -> None:
    writer = MemoryWriter(lake)
    writer.append(0, rows(1))
    writer.append(1, rows(2))
    table = writer.open()
    [first, second] = [file.path for file in table.scans.live_files()]
    table.store.delete(table.store.join(table.location, first))
    table.store.write(table.store.join(table.location, second), b"x")
    table.store.delete(metadata(lake)[0])

    kinds = sorted(problem.kind.value for problem in verify(table).problems)

    assert kinds == ["damaged file", "missing file", "missing file"]
