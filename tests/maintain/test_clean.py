"""Cleaning: what killed tasks and commits leave goes, and nothing that anybody needs ever does."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest

from paimon_sink.core.errors import CorruptTableError, OptionError, TableChangedError, UnsupportedTableError
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.audit import FileKind
from paimon_sink.maintain.clean import CleanReport, clean
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.verify import verify
from paimon_sink.spark.writers import PwcCommitMessage
from paimon_sink.storage.remote import RemoteStore
from paimon_sink.storage.store import Store, Upload
from tests.support.ages import TWO_DAYS_MS, Ages, aged
from tests.support.engines import other_engine
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.places import Place
from tests.support.story import Story
from tests.support.time_travel import time_travel
from tests.support.turns import KilledError

A_DAY = 24 * 3600 * 1000
OTHERS = ("notes/readme.txt", "data/readme.txt", "bucket-0/copy of a file.parquet")


@pytest.fixture
def ages(monkeypatch: pytest.MonkeyPatch) -> Ages:
    found = Ages()
    found.install(monkeypatch)
    return found


def cleaned(lake: Lake, *, dry_run: bool = False) -> CleanReport:
    return clean(lake.open(), older_than_ms=A_DAY, dry_run=dry_run)


def killed_commit(lake: Lake, batch: int) -> list[str]:
    """A driver that dies between its manifests and its put; gives the data files."""
    message = lake.write(rows(batch))

    def die() -> None:
        raise KilledError

    with pytest.raises(KilledError), listening(once_at(Step.BEFORE_PUT, die)):
        lake.commit(batch, message)
    return lake.files_of([message])


def put(lake: Lake, *names: str) -> None:
    table = lake.open()
    for name in names:
        table.store.write(table.store.join(table.location, name), b"x")


def without_claims(paths: Iterable[str]) -> set[str]:
    return {path for path in paths if "pwc/claims/" not in path}


def old_message(lake: Lake, *ids: int) -> PwcCommitMessage:
    """What a task wrote two days ago."""
    return aged(lake.write(rows(*ids)))


@pytest.mark.witness
def test_what_the_dead_left_goes_and_all_else_stays(place: Place, lake: Lake, ages: Ages) -> None:
    others, temporary = set(OTHERS), f"{'metadata' if lake.format == 'iceberg' else 'manifest'}/.x.{'0' * 32}.tmp"
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    live = set(lake.files())
    left = {*lake.files_of([lake.write(rows(8))]), *killed_commit(lake, 9)}
    if "odd names" in place.lacks:
        others, temporary = set(), lake.open().side_files.temp_file_path(f"x.{'0' * 32}")
    put(lake, temporary, *others)
    ages.grow_old(lake)
    before = lake.files()

    dry = cleaned(lake, dry_run=True)

    assert lake.files() == before
    assert {found.path for found in dry.orphans if found.kind is FileKind.DATA} == left
    assert {found.kind for found in dry.orphans} >= {FileKind.DATA, FileKind.MANIFEST, FileKind.TEMPORARY}
    assert {found.path for found in dry.not_ours} == others

    done = cleaned(lake)

    assert done.deleted == len(dry.orphans)
    assert {found.path for found in done.orphans} == {found.path for found in dry.orphans}
    assert without_claims(lake.files()) == without_claims(live) | others
    assert other_engine(lake).stray_metadata() == []
    assert lake.ids() == [0, 1]
    assert verify(lake.open()).problems == ()
    lake.append(9, rows(9))
    assert lake.ids() == [0, 1, 9]


def test_what_is_young_stays(lake: Lake, ages: Ages) -> None:
    lake.append(0, rows(0))
    ages.grow_old(lake)
    message = lake.write(rows(1))
    killed_commit(lake, 2)

    report = cleaned(lake)

    assert report.orphans == ()
    assert report.young >= 3
    lake.commit(1, message)
    assert lake.ids() == [0, 1]


@pytest.mark.parametrize("seed", [3, 4])
def test_whatever_a_table_went_through_every_state_of_it_stays(place: Place, lake: Lake, ages: Ages, seed: int) -> None:
    story = Story(lake, seed, can_roll_back="rollback" not in place.lacks)
    story.play(8)
    killed_commit(lake.with_options(commitUser="dead"), 0)
    states, verdicts = time_travel(lake).states(), story.verdicts()
    ages.grow_old(lake)

    report = cleaned(lake)

    assert report.deleted > 0
    assert time_travel(lake).states() == states, story.told
    assert story.verdicts() == verdicts, story.told
    after = verify(lake.open())
    assert after.problems == ()
    # A REST catalog names its own files in a way that only it knows.
    assert [found.path for found in after.orphans if lake.open().upkeep.audit().kind(found.path).needs_a_name] == []


@pytest.mark.parametrize("step", [Step.BEFORE_LOOK, Step.AFTER_LOOK, Step.AFTER_BUILD, Step.BEFORE_PUT, Step.AFTER_PUT])
def test_a_batch_of_old_files_is_in_whole_or_not_at_all(lake: Lake, ages: Ages, step: Step) -> None:
    lake.append(0, rows(0))
    message = old_message(lake, 1, 2)
    ages.grow_old(lake)

    def cleaning() -> None:
        with listening(lambda _: None):
            cleaned(lake)

    refused = False
    with listening(once_at(step, cleaning)):
        try:
            lake.commit(1, message)
        except TableChangedError as error:
            refused = "written anew" in str(error)

    assert refused == (step in (Step.BEFORE_LOOK, Step.AFTER_LOOK))
    assert lake.ids() == ([0] if refused else [0, 1, 2])
    assert verify(lake.open()).problems == ()
    if refused:
        lake.append(1, rows(1, 2))
        assert lake.ids() == [0, 1, 2]


def test_a_commit_that_meets_a_cleaning_before_it_deletes_lets_go(
    lake: Lake, ages: Ages, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.append(0, rows(0))
    message = old_message(lake, 1)
    ages.grow_old(lake)
    kind = type(lake.open().store)
    delete_many = kind.delete_many
    ends: list[str] = []

    def first_let_the_commit_in(self: object, paths: object) -> None:
        if not ends:
            ends.append("tried")
            try:
                lake.commit(1, message)
            except TableChangedError:
                ends.append("refused")
        delete_many(self, paths)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "delete_many", first_let_the_commit_in)

    cleaned(lake)

    assert ends == ["tried", "refused"]
    assert lake.ids() == [0]
    assert verify(lake.open()).problems == ()


def test_old_claims_go_when_a_later_one_speaks_for_them(local_lake: Lake, ages: Ages) -> None:
    for batch in range(3):
        killed_commit(local_lake, batch)
    ages.grow_old(local_lake)
    local_lake.append(7, rows(7))

    # A try that may still be under way speaks for nobody.
    assert len([found for found in cleaned(local_lake).orphans if found.kind is FileKind.CLAIM]) == 2
    ages.grow_old(local_lake)

    report = cleaned(local_lake)

    assert len([found for found in report.orphans if found.kind is FileKind.CLAIM]) == 1
    (claim,) = [path for path in local_lake.files() if "pwc/claims/" in path]
    assert claim.rpartition("/")[2].startswith("7.")


@pytest.mark.damages
def test_a_table_that_cannot_be_read_whole_is_refused(lake: Lake, ages: Ages) -> None:
    lake.append(0, rows(0))
    lake.write(rows(1))
    other_engine(lake).damage_manifest_list(0, b"broken")
    ages.grow_old(lake)
    files = lake.files()

    with pytest.raises(CorruptTableError, match="Nothing was deleted"):
        cleaned(lake)

    assert [path for path in lake.files() if "pwc/clean" not in path] == files


@pytest.mark.witness
@pytest.mark.needs("odd names")
def test_odd_partition_values_make_no_live_file_look_dead(lake: Lake, ages: Ages) -> None:
    odd = ["a/b", "ä ö", "100%", "a=b", "a%2Fb", "[x]*?", "x+y&z", ".", "#1", None]
    writer = lake.with_options(partitionBy="day")
    message = writer.write(*(rows(number, day=day) for number, day in enumerate(odd)))
    writer.commit(0, message)
    other_engine(lake).append(rows(100, day="c/d e"))
    ages.grow_old(lake)
    files = lake.data_files()

    report = cleaned(lake)

    assert report.not_ours == ()
    assert lake.data_files() == files
    assert lake.ids() == [*range(len(odd)), 100]


@pytest.mark.damages
def test_while_a_live_file_is_missing_none_is_deleted(lake: Lake, ages: Ages) -> None:
    """It may be there under another spelling, which then looks like an orphan."""
    lake.append(0, rows(0))
    table = lake.open()
    (live,) = lake.data_files()
    lake.write(rows(1))
    table.store.delete(table.store.join(table.location, live))
    ages.grow_old(lake)
    files = lake.data_files()

    with pytest.raises(CorruptTableError, match="is not there"):
        cleaned(lake)

    assert lake.data_files() == files


def test_an_iceberg_table_that_forbids_deletion_is_left_alone(iceberg_sqlite_lake: Lake, ages: Ages) -> None:
    lake = iceberg_sqlite_lake.with_options(table__gc__enabled="false")
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    lake.write(rows(2))
    ages.grow_old(lake)
    files = lake.data_files()

    with pytest.raises(UnsupportedTableError, match=r"gc\.enabled"):
        cleaned(lake)
    with pytest.raises(UnsupportedTableError, match=r"gc\.enabled"):
        expire(lake.open(), Retention(keep_last=1))

    assert lake.data_files() == files
    assert len(lake.snapshot_ids()) == 2


def test_less_than_an_hour_is_refused(local_lake: Lake) -> None:
    local_lake.append(0, rows(0))

    with pytest.raises(OptionError, match="at least 1h"):
        clean(local_lake.open(), older_than_ms=A_DAY // 24 - 1)


def test_a_store_whose_clock_is_behind_makes_nothing_older(local_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    local_lake.append(0, rows(0))
    local_lake.write(rows(1))
    behind = Ages()
    behind.install(monkeypatch)
    walk = type(local_lake.open().store).walk

    def all_behind(self: object, path: str) -> object:
        return (
            replace(found, modified_ms=(found.modified_ms or 0) - TWO_DAYS_MS)
            for found in walk(self, path)  # type: ignore[arg-type]
        )

    monkeypatch.setattr(type(local_lake.open().store), "walk", all_behind)

    assert cleaned(local_lake).deleted == 0


@pytest.mark.s3
def test_uploads_that_dead_tasks_never_finished_are_ended_and_young_ones_and_those_of_others_stay(
    s3_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On MinIO, which lists uploads by the whole name of a file only, none is seen; it ends them by itself."""
    s3_lake.append(0, rows(0))
    table = s3_lake.open()
    names = [table.files.new_path((), attempt=str(uuid.uuid4()), number=0) for _ in range(2)] + ["notes/big.parquet"]
    begun = []
    for name in names:
        begun.append(table.store.open_output(table.store.join(table.location, name), block_bytes=5 << 20))
        # Of two parts the first has arrived.
        begun[-1].write(bytes(6 << 20))
        begun[-1].write(bytes(6 << 20))
    root = table.location.rstrip("/") + "/"
    listed = {upload.path.removeprefix(root) for upload in table.store.uploads(table.location)}
    if not listed:
        for output in begun:
            output.discard()
        pytest.skip("this server does not list uploads")
    young = names[1]

    def aged(store: Store, path: str) -> Iterator[Upload]:
        return (
            replace(found, started_ms=(found.started_ms or 0) - (0 if found.path.endswith(young) else TWO_DAYS_MS))
            for found in uploads(store, path)
        )

    uploads: Callable[[Store, str], Iterator[Upload]] = type(table.store).uploads
    monkeypatch.setattr(RemoteStore, "uploads", aged)

    dry = cleaned(s3_lake, dry_run=True)
    after_dry_run = len(list(uploads(table.store, table.location)))
    done = cleaned(s3_lake)

    left = {found.path.removeprefix(root) for found in uploads(table.store, table.location)}
    for output in begun:
        output.discard()
    assert listed == set(names)
    assert after_dry_run == 3
    assert dry.uploads == done.uploads
    assert [found.path.rpartition("/")[2] for found in done.uploads or ()] == [names[0].rpartition("/")[2]]
    assert left == {young, "notes/big.parquet"}
    assert s3_lake.ids() == [0]
