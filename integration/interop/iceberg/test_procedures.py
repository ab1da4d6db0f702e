"""Java's procedures on a table while our stream goes on: no row is lost or doubled, and the ledger is intact."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from integration.interop.iceberg.shared import Shared
from paimon_sink.cli.main import cli
from paimon_sink.maintain.branches import create_branch, publish_branch
from paimon_sink.maintain.rollback import plan_rollback, roll_back
from paimon_sink.maintain.tags import create_tag
from tests.spark.support import Checkpoint, Source
from tests.support.lake import rows

LATER = "TIMESTAMP '2100-01-01 00:00:00'"
THREE_DAYS_S = 3 * 24 * 3600


def expire_snapshots(shared: Shared) -> None:
    """All but the newest, which is Java's own: no snapshot tells of our batches any more."""
    shared.insert(1000)
    gone = shared.call("expire_snapshots", older_than=LATER, retain_last="1")
    assert gone["deleted_manifest_lists_count"] == 2
    assert len(shared.snapshots()) == 1


def rewrite_data_files(shared: Shared) -> None:
    done = shared.call("rewrite_data_files", options="map('rewrite-all', 'true')")
    assert done["rewritten_data_files_count"] >= 2
    shared.insert(1000)


def rewrite_data_files_and_expire(shared: Shared) -> None:
    shared.call("rewrite_data_files", options="map('rewrite-all', 'true')")
    expired = shared.call("expire_snapshots", older_than=LATER, retain_last="1")
    assert expired["deleted_data_files_count"] >= 2
    shared.insert(1000)


def rewrite_manifests(shared: Shared) -> None:
    shared.insert(1000)
    done = shared.call("rewrite_manifests")
    assert done["rewritten_manifests_count"] == 3


def branch_and_tag(shared: Shared) -> None:
    shared.insert(1000)
    shared.sql("ALTER TABLE {t} CREATE TAG before RETAIN 30 DAYS")
    shared.sql("ALTER TABLE {t} CREATE BRANCH audit WITH SNAPSHOT RETENTION 2 SNAPSHOTS")
    shared.sql("INSERT INTO {t}.branch_audit (id, day) VALUES (5000, 'audit')")


def set_and_unset_properties(shared: Shared) -> None:
    """The ledger is in the properties. Java rewrites those that it is told to, and no others."""
    shared.insert(1000)
    shared.sql("ALTER TABLE {t} SET TBLPROPERTIES ('comment'='mine')")
    shared.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('comment')")


PROCEDURES: list[Callable[[Shared], None]] = [
    expire_snapshots,
    rewrite_data_files,
    rewrite_data_files_and_expire,
    rewrite_manifests,
    branch_and_tag,
    set_and_unset_properties,
]


@pytest.mark.parametrize("procedure", PROCEDURES, ids=lambda found: found.__name__)
def test_our_stream_knows_its_batches_after(
    local: Shared, source: Source, checkpoint: Checkpoint, procedure: Callable[[Shared], None]
) -> None:
    source.add(range(4))
    source.add(range(4, 8))
    checkpoint.run(source.stream(local.spark), local.options(partitionBy="day"))

    procedure(local)
    checkpoint.forget(1)
    source.add(range(8, 12))
    runs = checkpoint.run(source.stream(local.spark), local.options())

    assert [(run["batchId"], run["numInputRows"]) for run in runs] == [(1, 4), (2, 4)]
    local.assert_agreed([*range(12), 1000])
    assert _verified(local) == 0


@pytest.mark.parametrize("procedure", PROCEDURES, ids=lambda found: found.__name__)
def test_our_coordinator_knows_its_batches_after(shared: Shared, procedure: Callable[[Shared], None]) -> None:
    """As above, in both catalogs, with the calls that Spark would make."""
    shared.lake.append(0, rows(0, 1))
    shared.lake.append(1, rows(2, 3))

    procedure(shared)
    shared.lake.append(1, rows(2, 3))
    shared.lake.append(2, rows(4, 5))

    shared.assert_agreed([*range(6), 1000])


# ---------------------------------------------------------------- rollback


@pytest.mark.parametrize("afterwards", ["at once", "after another commit", "after expiry"])
def test_a_batch_that_java_rolled_back_is_written_again(shared: Shared, afterwards: str) -> None:
    shared.lake.append(0, rows(0, 1))
    shared.lake.append(1, rows(2, 3))
    [first, _] = shared.snapshots()

    shared.call("rollback_to_snapshot", snapshot_id=str(first.snapshot_id))
    shared.assert_agreed([0, 1])
    others: list[int] = []
    if afterwards != "at once":
        # A batch of another stream of ours, which writes down what was rolled back.
        shared.with_options(commitUser="another").lake.append(0, rows(1000))
        others = [1000]
    if afterwards == "after expiry":
        shared.call("expire_snapshots", older_than=LATER, retain_last="1")
    for _ in range(2):
        shared.lake.append(1, rows(2, 3))

    shared.assert_agreed([0, 1, 2, 3, *others])


def test_a_stream_goes_on_after_java_rolled_its_last_batch_back(
    local: Shared, source: Source, checkpoint: Checkpoint
) -> None:
    source.add(range(4))
    source.add(range(4, 8))
    checkpoint.run(source.stream(local.spark), local.options())
    [first, _] = local.snapshots()

    local.call("rollback_to_snapshot", snapshot_id=str(first.snapshot_id))
    checkpoint.forget(1)
    checkpoint.run(source.stream(local.spark), local.options())
    checkpoint.forget(1)
    checkpoint.run(source.stream(local.spark), local.options())

    local.assert_agreed(range(8))


def test_java_reads_our_tag_and_goes_on_from_where_we_rolled_back_to(shared: Shared) -> None:
    for batch in range(3):
        shared.lake.append(batch, rows(batch))
    first = shared.lake.snapshot_ids()[0]
    create_tag(shared.lake.open(), "release", snapshot_id=first)
    assert [row.id for row in shared.sql("SELECT id FROM {t} VERSION AS OF 'release'")] == [0]

    table = shared.lake.open()
    roll_back(table, plan_rollback(table, "release"))
    shared.assert_agreed([0])
    shared.insert(1000)
    shared.lake.append(1, rows(1))

    shared.assert_agreed([0, 1, 1000])


def test_java_reads_a_branch_that_we_published(shared: Shared) -> None:
    shared.lake.append(0, rows(0))
    create_branch(shared.lake.open(), "audit")
    shared.with_options(branch="audit").lake.append(1, rows(1))
    shared.assert_agreed([0])

    publish_branch(shared.lake.open(), "audit")

    shared.assert_agreed([0, 1])


def test_a_branch_that_java_published_to_main_is_known_there(shared: Shared) -> None:
    shared.lake.append(0, rows(0))
    shared.with_options(branch="audit").lake.append(1, rows(1))
    shared.assert_agreed([0])

    shared.sql(f"CALL `{shared.catalog}`.system.fast_forward('{shared.lake.table}', 'main', 'audit')")
    shared.lake.append(1, rows(1))

    shared.assert_agreed([0, 1])


# ---------------------------------------------------------------- orphans


def test_java_removes_what_nothing_names_and_leaves_what_is_ours(local: Shared) -> None:
    merging = local.with_options(**{"table.commit.manifest.min-count-to-merge": "3", "partitionBy": "day"})
    for batch in range(5):
        merging.lake.append(batch, rows(batch))
    orphan = local.lake.write(rows(666))
    root = Path(local.lake.open().location)
    for path in filter(Path.is_file, root.rglob("*")):
        # So old that only its name in the metadata saves a file.
        os.utime(path, (time.time() - THREE_DAYS_S,) * 2)
    in_flight = local.lake.write(rows(100))
    before = set(local.lake.files())
    [doomed] = local.lake.files_of([orphan])

    listed = local.sql(
        f"CALL `{local.catalog}`.system.remove_orphan_files(table => '{local.lake.table}', dry_run => true)"
    )
    assert set(local.lake.files()) == before
    local.call("remove_orphan_files")

    assert {Path(row.orphan_file_location).name for row in listed} >= {Path(doomed).name}
    assert not [path for path in local.lake.files() if path.endswith(doomed)]
    removed = before - set(local.lake.files())
    assert [path for path in removed if path.endswith(".parquet")] == [
        path for path in before if path.endswith(Path(doomed).name)
    ]
    local.assert_agreed(range(5))
    local.lake.commit(5, in_flight)
    local.assert_agreed([*range(5), 100])
    # The ledger is in no file of its own that could be taken for an orphan.
    local.lake.append(5, rows(100))
    local.assert_agreed([*range(5), 100])
    assert _verified(local) == 0


def _verified(shared: Shared) -> int:
    """The exit status of the command that a user types."""
    arguments = ["verify", "--warehouse", shared.lake.options["warehouse"], "--table", shared.lake.table]
    arguments += ["--option", "tableFormat=iceberg"]
    return CliRunner().invoke(cli, arguments).exit_code
