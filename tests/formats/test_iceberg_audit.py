"""Checking an Iceberg table: planted damage is found and named, and a sound one is sound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from paimon_sink.cli.main import cli
from paimon_sink.core.errors import StorageError
from paimon_sink.formats.audit import ProblemKind
from paimon_sink.maintain.verify import Report, verify
from paimon_sink.storage.store import Store
from tests.support.iceberg_engine import IcebergEngine, native
from tests.support.lake import Lake, rows


@pytest.fixture
def lake(iceberg_sqlite_lake: Lake) -> Lake:
    """Appends, an overwrite, a merge of manifests, a branch, a tag, and another engine's commits."""
    lake = iceberg_sqlite_lake.with_options(**{"table.commit.manifest.min-count-to-merge": "3"})
    for batch in range(6):
        lake.append(batch, rows(batch))
    lake.commit(6, lake.write(rows(60)), overwrite=True)
    native(lake).manage_snapshots().create_tag(lake.history()[-1].snapshot_id, "release").commit()
    IcebergEngine(lake).append(rows(70))
    lake.with_options(branch="audit").append(7, rows(80))
    lake.append(7, rows(71))
    return lake


def check(lake: Lake) -> Report:
    return verify(lake.open(), deep=True)


def files(lake: Lake, ending: str) -> list[Path]:
    root = Path(lake.options["warehouse"])
    return sorted(path for path in root.rglob(f"*{ending}"))


def newest_file(lake: Lake) -> Path:
    return max(files(lake, ".parquet"), key=lambda path: path.stat().st_mtime_ns)


def test_a_sound_table_is_sound(lake: Lake) -> None:
    report = check(lake)

    assert report.problems == ()
    assert report.orphans == ()
    assert (report.snapshots, report.batches, report.rows, report.data_files) == (9, 8, 3, 10)
    assert report.tags_and_branches == ("branch audit", "tag release")


def test_the_command_checks_an_iceberg_table(lake: Lake) -> None:
    where = ["--warehouse", lake.options["warehouse"], "--table", lake.table, "--option", "tableFormat=iceberg"]

    answer = CliRunner().invoke(cli, ["verify", *where])

    assert answer.exit_code == 0, answer.output


def test_files_that_nothing_names_are_orphans(lake: Lake) -> None:
    left = lake.files_of([lake.write(rows(99))])

    assert [orphan.path for orphan in check(lake).orphans] == left


def remove_data(lake: Lake) -> None:
    newest_file(lake).unlink()


def cut_data(lake: Lake) -> None:
    path = newest_file(lake)
    path.write_bytes(path.read_bytes()[:-10])


def swap_data(lake: Lake) -> None:
    path = newest_file(lake)
    size = path.stat().st_size
    path.write_bytes(b"x" * size)


def remove_manifest(lake: Lake) -> None:
    table = native(lake)
    newest = table.current_snapshot()
    assert newest is not None
    Path(newest.manifests(table.io)[0].manifest_path.removeprefix("file://")).unlink()


def damage_list(lake: Lake) -> None:
    IcebergEngine(lake).damage_manifest_list(0, b"no avro")


def double_a_batch(lake: Lake) -> None:
    IcebergEngine(lake).commit_stream(rows(71), commit_user="test", batch_id=7)


def false_ledger(lake: Lake) -> None:
    table = native(lake)
    key = "pwc.ledger.main.test"
    with table.transaction() as transaction:
        transaction.set_properties({key: table.properties[key].replace("[7,", "[9,")})


def broken_ledger(lake: Lake) -> None:
    with native(lake).transaction() as transaction:
        transaction.set_properties({"pwc.ledger.main.test": "?"})


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (remove_data, ProblemKind.MISSING_FILE),
        (cut_data, ProblemKind.DAMAGED_FILE),
        (swap_data, ProblemKind.DAMAGED_FILE),
        (remove_manifest, ProblemKind.MISSING_FILE),
        (damage_list, ProblemKind.BROKEN_METADATA),
        (double_a_batch, ProblemKind.DOUBLED_BATCH),
        (false_ledger, ProblemKind.LEDGER),
        (broken_ledger, ProblemKind.LEDGER),
    ],
)
def test_planted_damage_is_found(lake: Lake, damage: Callable[[Lake], None], kind: ProblemKind) -> None:
    damage(lake)

    assert kind in {problem.kind for problem in check(lake).problems}


def test_a_table_that_was_expired_and_rolled_back_is_sound(lake: Lake) -> None:
    engine = IcebergEngine(lake)
    newest = lake.snapshot_ids()[-1]
    engine.roll_back(lake.snapshot_ids()[-2])
    engine.expire(3)

    report = check(lake)

    assert report.problems == ()
    # One may still go back to it, so its files are nobody's orphans.
    assert report.orphans == ()
    assert f"rolled back from {newest}" in report.tags_and_branches


def test_a_file_of_a_rolled_back_snapshot_is_missed(lake: Lake) -> None:
    gone = newest_file(lake)
    IcebergEngine(lake).roll_back(lake.snapshot_ids()[-2])
    gone.unlink()

    assert {problem.kind for problem in check(lake).problems} == {ProblemKind.MISSING_FILE}


def test_expiry_and_batches_beside_a_check_look_like_no_damage_and_no_orphans(lake: Lake) -> None:
    engine = IcebergEngine(lake)
    expired: list[int] = []

    def go_on(part: str, done: int, of: int) -> None:
        if part == "snapshots" and done == of and len(expired) < 3:
            expired.append(done)
            engine.expire(1)
            lake.append(100 + len(expired), rows(100 + len(expired)))

    report = verify(lake.open(), progress=go_on)

    assert expired
    assert report.problems == ()


def test_a_batch_that_lands_while_files_are_listed_leaves_no_orphans(lake: Lake) -> None:
    audit = lake.open().upkeep.audit()
    lake.append(100, rows(100))
    present = set(audit.files())

    named = {
        file.path
        for line in audit.histories()
        for snapshot_info in line.snapshots
        for file in audit.contents(line, snapshot_info).entered
    }

    assert present - named - audit.metadata_files == set()


def test_a_file_outside_of_the_table_is_not_looked_into(lake: Lake, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.parquet"
    pq.write_table(pa.table({"id": pa.array([5], pa.int64()), "day": ["monday"]}), elsewhere)
    native(lake).add_files([f"file://{elsewhere}"])

    report = check(lake)

    assert report.problems == ()
    assert report.unchecked_files == 1


def test_trouble_with_the_store_is_not_called_damage(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.open()
    unlucky = IcebergEngine(lake).manifest_lists()[0].rsplit("/", 1)[-1]
    read = type(table.store).read

    def refuse(self: Store, path: str) -> bytes:
        if path.endswith(unlucky):
            raise StorageError(f"Cannot read {path}: 503 SlowDown")
        return read(self, path)

    monkeypatch.setattr(type(table.store), "read", refuse)

    assert {problem.kind for problem in verify(table).problems} == {ProblemKind.UNREACHABLE}
