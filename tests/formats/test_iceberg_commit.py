"""The commit of an Iceberg snapshot when answers get lost, others come between, or the table changes underneath."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse
from pyiceberg.table.update import AssertTableUUID, SetLocationUpdate
from pyspark.sql.types import LongType, StructField, StructType

from paimon_sink.core.errors import (
    CommitUnknownError,
    MessageError,
    OptionError,
    StorageError,
    TableChangedError,
    UnsupportedTableError,
)
from paimon_sink.core.messages import DataFile
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.iceberg.catalogs import Tables, tables
from paimon_sink.formats.iceberg.table import IcebergTable
from paimon_sink.formats.values import PutOutcome, SnapshotDraft
from paimon_sink.maintain.verify import verify
from paimon_sink.testing.format_contract import build
from tests.support.batches import coordinator, opened, plan, sealed, sink_options, write_plan
from tests.support.iceberg_engine import IcebergEngine, native
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.places import Place, places


@pytest.fixture
def sqlite_lake(iceberg_sqlite_lake: Lake) -> Lake:
    iceberg_sqlite_lake.append(0, rows(0))
    return iceberg_sqlite_lake


@pytest.fixture(params=places("sqlite", "rest", format="iceberg"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def lake(place: Place, request: pytest.FixtureRequest) -> Lake:
    """A table with one batch in it."""
    lake = place.lake(request)
    lake.append(0, rows(0))
    return lake


Response = CommitTableResponse
Sending = Callable[[Callable[[], Response]], Response]


class Between(Tables):
    """Stands between the table and its catalog: each sending goes through the next of some hands."""

    def __init__(self, inner: Tables, *hands: Sending) -> None:
        self.__dict__.update(inner.__dict__)
        self._hands = list(hands)

    def _catalog(self) -> Catalog:
        catalog = copy(super()._catalog())
        send = catalog.commit_table

        def commit_table(*arguments: Any) -> Response:
            return self._hands.pop(0)(partial(send, *arguments)) if self._hands else send(*arguments)

        vars(catalog)["commit_table"] = commit_table
        return catalog


def lands_and_the_answer_is_lost(send: Callable[[], Response]) -> Response:
    send()
    raise ConnectionResetError("the answer was lost")


def never_arrives(send: Callable[[], Response]) -> Response:
    raise ConnectionRefusedError("nobody there")


def lands_and_is_told_as_a_conflict(send: Callable[[], Response]) -> Response:
    send()
    raise CommitFailedException("somebody was first")


def through(lake: Lake, *hands: Sending) -> IcebergTable:
    table = lake.open()
    assert isinstance(table, IcebergTable)
    return IcebergTable.of(
        table.native,
        tables=Between(tables(sink_options(lake).table), *hands),
        label=table.label,
        branch=table.branch,
        compression=None,
    )


@pytest.mark.witness
@pytest.mark.parametrize(
    "hands",
    [
        (lands_and_the_answer_is_lost,),
        (never_arrives,),
        (never_arrives, never_arrives, lands_and_the_answer_is_lost),
        (lands_and_is_told_as_a_conflict,),
        (never_arrives, lands_and_is_told_as_a_conflict),
    ],
)
def test_a_batch_is_in_once_whatever_happens_to_the_answers(lake: Lake, hands: tuple[Sending, ...]) -> None:
    batch = write_plan(lake, 1, rows(1))

    outcome = coordinator(lake, through(lake, *hands)).commit(batch)
    again = coordinator(lake, lake.open()).commit(batch)

    assert again.already_committed
    assert again.snapshot_id == outcome.snapshot_id
    assert lake.ids() == [0, 1]
    assert verify(lake.open()).problems == ()


@pytest.mark.witness
def test_a_catalog_that_never_answers_leaves_the_outcome_unknown_and_a_replay_settles_it(lake: Lake) -> None:
    batch = write_plan(lake, 1, rows(1))

    with pytest.raises(CommitUnknownError):
        coordinator(lake, through(lake, *[never_arrives] * 5)).commit(batch)

    assert lake.ids() == [0]
    coordinator(lake).commit(batch)
    assert lake.ids() == [0, 1]


@pytest.mark.witness
def test_refusals_are_lost_rounds_and_never_an_unknown_outcome(lake: Lake) -> None:
    def is_refused(send: Callable[[], Response]) -> Response:
        raise CommitFailedException("somebody changed a property of the table")

    outcome = coordinator(lake, through(lake, *[is_refused] * 12)).commit(write_plan(lake, 1, rows(1)))

    assert outcome.attempts == 13
    assert lake.ids() == [0, 1]
    assert IcebergEngine(lake).stray_metadata() == []


def test_a_batch_that_landed_and_expired_before_the_read_back_is_known_by_its_ledger(lake: Lake) -> None:
    def lands_and_expires(send: Callable[[], Response]) -> Response:
        send()
        lake.with_options(commitUser="other").append(0, rows(2))
        IcebergEngine(lake).expire(2)
        raise ConnectionResetError("the answer was lost")

    outcome = coordinator(lake, through(lake, lands_and_expires)).commit(write_plan(lake, 1, rows(1)))

    assert not outcome.already_committed
    assert outcome.attempts == 1
    assert lake.ids() == [0, 1, 2]


@pytest.mark.parametrize("ledger", ["a later batch", "forgotten"])
def test_a_batch_that_landed_and_left_no_trace_is_not_taken_for_lost(lake: Lake, ledger: str) -> None:
    def lands_and_is_hidden(send: Callable[[], Response]) -> Response:
        send()
        if ledger == "a later batch":
            lake.append(2, rows(2))
        else:
            with native(lake).transaction() as transaction:
                transaction.remove_properties("pwc.ledger.main.test")
            lake.with_options(commitUser="other").append(0, rows(2))
        IcebergEngine(lake).expire(2)
        raise ConnectionResetError("the answer was lost")

    with pytest.raises(CommitUnknownError):
        coordinator(lake, through(lake, lands_and_is_hidden)).commit(write_plan(lake, 1, rows(1)))

    assert lake.ids() == [0, 1, 2]
    assert verify(lake.open()).problems == ()


@pytest.mark.witness
def test_manifests_of_a_request_that_may_be_under_way_are_kept(lake: Lake) -> None:
    table = through(lake, never_arrives)
    late = build(table, write_plan(lake, 1, rows(1)), table.commits.load_head(commit_user="test"))
    with pytest.raises(StorageError, match="nobody there"):
        late.put()
    lake.with_options(commitUser="other").append(0, rows(2))
    assert late.resolve_outcome() is PutOutcome.LOST

    late.discard()

    # A manifest and a manifest list: should the request arrive after all, the table must not point into the void.
    assert len(IcebergEngine(lake).stray_metadata()) == 2


def test_a_refused_commit_leaves_no_file_behind(lake: Lake) -> None:
    table = lake.open()
    loser = build(table, write_plan(lake, 1, rows(1)), table.commits.load_head(commit_user="test"))
    lake.with_options(commitUser="other").append(0, rows(2))

    assert loser.put() is PutOutcome.LOST
    assert loser.resolve_outcome() is PutOutcome.LOST
    loser.discard()

    assert IcebergEngine(lake).stray_metadata() == []


def test_losing_the_swap_itself_leaves_no_metadata_file(sqlite_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    table = sqlite_lake.open()
    loser = build(table, write_plan(sqlite_lake, 1, rows(1)), table.commits.load_head(commit_user="test"))
    write_metadata = SqlCatalog._write_metadata
    raced: list[int] = []

    def let_another_in(*arguments: Any, **named: Any) -> None:
        write_metadata(*arguments, **named)
        if not raced:
            raced.append(1)
            IcebergEngine(sqlite_lake).append(rows(2))

    monkeypatch.setattr(SqlCatalog, "_write_metadata", staticmethod(let_another_in))
    assert loser.put() is PutOutcome.LOST
    loser.discard()

    assert raced
    assert IcebergEngine(sqlite_lake).stray_metadata() == []
    assert sqlite_lake.ids() == [0, 2]


def test_a_commit_to_another_branch_in_between_costs_a_round_and_no_more(lake: Lake) -> None:
    audit = lake.with_options(branch="audit")
    audit.append(1, rows(1))
    let_in: list[Step] = []

    def let_another_in_once(step: Step) -> None:
        if step is Step.BEFORE_PUT and not let_in:
            let_in.append(step)
            audit.append(2, rows(2))

    with listening(let_another_in_once):
        lake.append(1, rows(11))

    assert let_in
    assert (lake.ids(), audit.ids()) == ([0, 11], [0, 1, 2])


@pytest.mark.parametrize("hands", [(), (never_arrives,)], ids=["answers", "no answer at first"])
def test_a_sequence_number_that_is_taken_meanwhile_is_a_lost_round(lake: Lake, hands: tuple[Sending, ...]) -> None:
    audit = lake.with_options(branch="audit")
    audit.append(1, rows(1))
    table = through(lake, *hands)
    prepared = build(table, write_plan(lake, 1, rows(11)), table.commits.load_head(commit_user="test"))
    audit.append(2, rows(2))

    with pytest.raises((StorageError, OSError)):
        prepared.put()

    assert prepared.resolve_outcome() is PutOutcome.LOST


# ---------------------------------------------------------------- the table changes underneath


def test_a_column_added_meanwhile_does_not_stop_a_batch(lake: Lake) -> None:
    message = lake.write(rows(1))
    IcebergEngine(lake).add_column("note")

    lake.commit(1, message)

    assert lake.ids() == [0, 1]
    assert {row["note"] for row in lake.read()} == {None}
    lake.append(2, rows(2))
    assert lake.ids() == [0, 1, 2]


@pytest.mark.witness
def test_a_column_added_between_look_and_put_costs_a_round(lake: Lake) -> None:
    done: list[Step] = []

    def change(step: Step) -> None:
        if step is Step.BEFORE_PUT and not done:
            done.append(step)
            IcebergEngine(lake).add_column("note")

    with listening(change):
        lake.append(1, rows(1))

    assert done
    assert lake.ids() == [0, 1]
    assert lake.history()[-1].properties["pwc.attempts"] == "2"


def new_partitioning(lake: Lake) -> None:
    with native(lake).update_spec() as update:
        update.add_identity("day")


def new_location(lake: Lake) -> None:
    table = native(lake)
    update = SetLocationUpdate(location=f"{table.location()}_moved")
    table.catalog.commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (update,))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lake: IcebergEngine(lake).drop_column("day"), "column day was dropped"),
        (lambda lake: IcebergEngine(lake).rename_column("day", "tag"), "became tag"),
        (new_partitioning, "the partitioning changed"),
        (lambda lake: IcebergEngine(lake).drop(), "dropped"),
        (new_location, "given another location"),
    ],
    ids=["dropped column", "renamed column", "new partitioning", "dropped table", "new location"],
)
def test_a_change_that_would_lose_or_misplace_rows_is_refused(
    lake: Lake, change: Callable[[Lake], None], words: str
) -> None:
    message = lake.write(rows(1))
    change(lake)

    with pytest.raises(TableChangedError, match=words):
        lake.commit(1, message)


def test_a_table_made_anew_gets_no_rows_of_the_old_one(lake: Lake) -> None:
    message = lake.write(rows(1))
    IcebergEngine(lake).drop()
    lake.append(0, rows(9))

    with pytest.raises(TableChangedError, match="created again"):
        lake.commit(1, message)
    assert lake.ids() == [9]


def test_files_of_an_earlier_partitioning_can_be_replaced_only_all_at_once(lake: Lake) -> None:
    new_partitioning(lake)
    dynamic = lake.with_options(partitionOverwriteMode="dynamic")

    with pytest.raises(UnsupportedTableError, match="earlier partitioning"):
        dynamic.commit(1, dynamic.write(rows(1)), overwrite=True)
    lake.commit(2, lake.write(rows(2)), overwrite=True)
    dynamic.commit(3, dynamic.write(rows(3)), overwrite=True)

    assert lake.ids() == [3]
    assert verify(lake.open()).problems == ()


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    "entry",
    [b"", b"[]", b'{"version":1}', b'{"version":1,"spec":"0"}', b'{"version":9,"spec":0,"partition":[]}'],
)
def test_a_message_that_cannot_be_read_is_refused(lake: Lake, entry: bytes) -> None:
    message = opened(lake.write(rows(1)))
    broken = sealed(replace(message, files=tuple(replace(file, entry=entry) for file in message.files)))

    with pytest.raises(MessageError):
        lake.commit(1, broken)
    assert lake.ids() == [0]


def test_a_message_whose_words_and_entry_disagree_is_found(lake: Lake) -> None:
    other = Lake(lake.options, f"{lake.table}_parted").with_options(partitionBy="day")
    [file] = opened(other.write(rows(1))).files
    table = other.open()

    table.commits.check_files([file])
    for lie in (
        replace(file, path=file.path.replace("monday", "friday")),
        replace(file, partition=("friday",)),
        replace(file, path="data/x/../" + file.path),
        replace(file, path=file.path.replace("00000-", "00001-")),
        replace(file, rows=file.rows + 1),
        replace(file, size_bytes=file.size_bytes + 1),
    ):
        with pytest.raises(MessageError):
            table.commits.check_files([lie])


def test_a_file_of_another_partitioning_still_has_to_be_the_one_described(lake: Lake) -> None:
    """Its batch is refused for the partitioning; an abort would delete what it names."""
    others = lake.files()
    [file] = opened(lake.write(rows(1))).files
    elsewhere = replace(file, entry=file.entry.replace(b'"spec":0', b'"spec":7'))
    table = lake.open()

    table.commits.check_files([elsewhere])
    for lie in others:
        with pytest.raises(MessageError, match="describes another one"):
            table.commits.check_files([replace(elsewhere, path=lie)])


def test_an_entry_holds_no_path_and_no_secret(lake: Lake) -> None:
    [file] = opened(lake.write(rows(1))).files

    assert isinstance(file, DataFile)
    assert file.path.startswith("data/")
    assert b"data/" not in file.entry


# ---------------------------------------------------------------- manifests


def test_manifests_are_merged_so_that_their_number_stays_small(lake: Lake) -> None:
    quick = lake.with_options(**{"table.commit.manifest.min-count-to-merge": "4"})
    merging = Lake(quick.options, f"{lake.table}_merging", quick.extra)
    counts = []
    for batch in range(40):
        merging.append(batch, rows(batch))
        table = native(merging)
        newest = table.current_snapshot()
        assert newest is not None
        counts.append(len(newest.manifests(table.io)))

    assert max(counts) <= 12
    assert newest is not None
    entries = [entry for manifest in newest.manifests(table.io) for entry in manifest.fetch_manifest_entry(table.io)]
    # Who brought a file in, and when, decides which deletes reach it.
    assert sorted(entry.sequence_number or 0 for entry in entries) == list(range(1, 41))
    assert sorted(entry.file_sequence_number or 0 for entry in entries) == list(range(1, 41))
    assert {entry.snapshot_id for entry in entries} == {found.snapshot_id for found in merging.history()}
    assert merging.ids() == list(range(40))
    assert verify(merging.open()).problems == ()
    assert IcebergEngine(merging).read_ids() == list(range(40))


def test_a_manifest_that_a_lost_round_merged_becomes_one_of_the_next_snapshot(sqlite_lake: Lake) -> None:
    quick = sqlite_lake.with_options(**{"table.commit.manifest.min-count-to-merge": "3"})
    merging = Lake(quick.options, f"{quick.table}_merging", quick.extra)
    for batch in range(3):
        merging.append(batch, rows(batch))
    engine = IcebergEngine(merging)

    with listening(once_at(Step.BEFORE_PUT, lambda: engine.append_beside(rows(10)))):
        outcome = coordinator(merging).commit(write_plan(merging, 3, rows(3)))

    table = native(merging)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.snapshot_id == outcome.snapshot_id
    manifests = snapshot.manifests(table.io)
    ours = [found for found in manifests if found.added_snapshot_id == snapshot.snapshot_id]
    assert sorted((found.added_files_count, found.existing_files_count) for found in ours) == [(0, 3), (1, 0)]
    assert {found.sequence_number for found in ours} == {snapshot.sequence_number} == {5}
    assert {found.min_sequence_number for found in ours} == {1, 5}
    assert engine.read_ids() == [0, 1, 2, 3, 10]


def test_a_table_that_wants_no_merging_gets_none(lake: Lake) -> None:
    plain = Lake(lake.options, f"{lake.table}_plain", {"table.commit.manifest-merge.enabled": "false"})
    quick = plain.with_options(**{"table.commit.manifest.min-count-to-merge": "2"})
    for batch in range(6):
        quick.append(batch, rows(batch))

    table = native(quick)
    newest = table.current_snapshot()
    assert newest is not None
    assert len(newest.manifests(table.io)) == 6


def test_old_metadata_files_go_and_the_newest_stay(sqlite_lake: Lake) -> None:
    few = Lake(sqlite_lake.options, f"{sqlite_lake.table}_few", {"table.write.metadata.previous-versions-max": "3"})
    for batch in range(8):
        few.append(batch, rows(batch))

    assert len([path for path in few.files() if path.endswith(".metadata.json")]) == 4
    assert few.ids() == list(range(8))


def test_a_plan_of_one_batch_may_hold_many_tasks(lake: Lake) -> None:
    messages = [lake.write(rows(10 + number)) for number in range(5)]

    coordinator(lake).commit(plan(lake, 1, *messages))

    assert lake.ids() == [0, 10, 11, 12, 13, 14]
    assert lake.history()[-1].properties["added-data-files"] == "5"


def test_a_time_before_the_tables_own_is_not_written_down(lake: Lake) -> None:
    table = lake.open()
    before = native(lake).metadata.last_updated_ms
    batch = write_plan(lake, 1, rows(1))
    head = table.commits.load_head(commit_user="test")
    draft = SnapshotDraft(
        plan=batch, commit_id="c", ledger=head.ledger, watermark_ms=None, created_ms=1, properties=dict
    )

    table.commits.begin(batch).build(head, draft).put()

    assert native(lake).metadata.last_updated_ms >= before
    assert lake.history()[-1].at_ms >= before


def test_the_schema_of_the_tables_columns_is_plain(lake: Lake) -> None:
    assert lake.open().schema.equals(pa.schema([("id", pa.int64()), ("day", pa.string())]))


def test_a_partition_column_that_was_dropped_stops_neither_writers_nor_readers(sqlite_lake: Lake) -> None:
    # Given files of a partitioning by a column that is gone
    lake = sqlite_lake
    new_partitioning(lake)
    lake.append(1, rows(1, day="d1"))
    with native(lake).update_spec() as update:
        update.remove_field("day")
    IcebergEngine(lake).drop_column("day")
    with native(lake).transaction() as transaction:
        transaction.set_properties({"commit.manifest.min-count-to-merge": "2"})
    only_id = StructType([StructField("id", LongType())])

    # When batches are added, and their manifests merged
    for number in range(2, 6):
        lake.commit(number, lake.write(rows(number).select(["id"]), schema=only_id))

    # Then all are there, and all can be replaced
    assert lake.ids() == [0, 1, 2, 3, 4, 5]
    assert verify(lake.open()).problems == ()
    lake.commit(6, lake.write(rows(9).select(["id"]), schema=only_id), overwrite=True)
    assert lake.ids() == [9]


def test_a_zombie_s_replay_deletes_no_file_that_a_tag_names(lake: Lake) -> None:
    # Given a batch that was tagged, rolled back, and written again
    base = native(lake).current_snapshot()
    first = lake.append(1, rows(1))
    tagged = native(lake).current_snapshot()
    assert base is not None
    assert tagged is not None
    native(lake).manage_snapshots().create_tag(tagged.snapshot_id, "kept").commit()
    IcebergEngine(lake).roll_back(base.snapshot_id)
    lake.append(1, rows(1))

    # When the first one's messages come again
    lake.commit(1, first)

    # Then the tag can be read
    assert lake.ids() == [0, 1]
    assert native(lake).scan(snapshot_id=tagged.snapshot_id).to_arrow().num_rows == 2


@pytest.mark.parametrize("codec", ["snappy", "uncompressed", "GZIP", "nonsense"])
def test_a_codec_that_manifests_cannot_have_stops_no_commit(sqlite_lake: Lake, codec: str) -> None:
    with native(sqlite_lake).transaction() as transaction:
        transaction.set_properties({"write.avro.compression-codec": codec})

    sqlite_lake.append(1, rows(1))

    assert IcebergEngine(sqlite_lake).read_ids() == [0, 1]


@pytest.mark.parametrize("name", ["operation", "Self"])
def test_a_snapshot_property_that_iceberg_keeps_for_itself_is_refused(sqlite_lake: Lake, name: str) -> None:
    with pytest.raises(OptionError, match="keep for themselves"):
        sqlite_lake.with_options(**{f"snapshotProperty.{name}": "x"}).write(rows(1))
