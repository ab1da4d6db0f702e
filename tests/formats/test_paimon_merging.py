"""Paimon's manifests, merged in the commit: what readers see stays the same, and their number stays small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.manifest.schema.manifest_file_meta import ManifestFileMeta

from paimon_sink.core.errors import CorruptTableError, StorageError
from paimon_sink.core.steps import Step, listening
from paimon_sink.maintain.verify import verify
from tests.support import foreign
from tests.support.batches import coordinator, write_plan
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.paimon_engine import PaimonEngine

NEVER = "1000000"
DAYS = ("monday", "tuesday", None)


def merging(lake: Lake, count: str = "3", **options: str) -> Lake:
    return lake.with_options(**{"table.manifest.merge-min-count": count, **options})


def manifests(lake: Lake) -> list[ManifestFileMeta]:
    native = foreign.table(lake)
    return list(ManifestListManager(native).read_all(native.snapshot_manager().get_latest_snapshot()))


def base(lake: Lake) -> list[ManifestFileMeta]:
    native = foreign.table(lake)
    return list(ManifestListManager(native).read_base(native.snapshot_manager().get_latest_snapshot()))


def records(lake: Lake, manifest: str) -> list[Any]:
    raw = Path(lake.open().location, "manifest", manifest).read_bytes()
    return list(fastavro.reader(BytesIO(raw)))


def as_java_reads(lake: Lake) -> set[str]:
    """The live files, entry by entry as ``FileEntry.mergeEntries`` goes through them, with what it refuses."""
    reader = ManifestFileManager(foreign.table(lake))
    live: set[str] = set()
    for manifest in manifests(lake):
        for entry in reader.read(manifest.file_name):
            name = entry.file.file_name
            if entry.kind == 0:
                assert name not in live, f"{name} is added twice"
                live.add(name)
            else:
                assert name in live, f"{name} is taken out before it is added"
                live.remove(name)
    return live


def as_pypaimon_reads(lake: Lake) -> list[tuple[int, str | None]]:
    return sorted(((row["id"], row["day"]) for row in foreign.read(lake).to_pylist()), key=str)


# ---------------------------------------------------------------- whatever is written


@dataclass(frozen=True)
class Write:
    """One batch: how it replaces, and the days it has a file of."""

    mode: str
    days: tuple[str | None, ...]

    def on(self, lake: Lake, batch: int) -> None:
        batches = [rows(batch, day=day) for day in self.days]
        if self.mode == "append":
            lake.append(batch, *batches)
        else:
            overwriting = lake.with_options(partitionOverwriteMode=self.mode)
            overwriting.commit(batch, overwriting.write(*batches), overwrite=True)

    def after(self, before: set[tuple[int, str | None]], batch: int) -> set[tuple[int, str | None]]:
        """The rows that are there then. Each is in a file of its own."""
        kept = {
            (row, day)
            for row, day in before
            if self.mode == "append" or (self.mode == "dynamic" and day not in self.days)
        }
        return kept | {(batch, day) for day in self.days}


WRITES = st.builds(
    Write,
    st.sampled_from(["append", "append", "append", "dynamic", "static"]),
    st.lists(st.sampled_from(DAYS), min_size=1, max_size=3, unique=True).map(tuple),
)


@settings(max_examples=9, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    writes=st.lists(WRITES, min_size=5, max_size=12),
    count=st.sampled_from(["2", "3"]),
    # Two manifests of one file are larger than the small target: merged ones are full, and stay.
    target=st.sampled_from(["8 mb", "9 kb"]),
    full=st.sampled_from(["16 mb", "5 kb"]),
)
def test_any_writes_read_the_same_as_without_merging(writes: list[Write], count: str, target: str, full: str) -> None:
    with TemporaryDirectory() as warehouse:
        sizes = {"table.manifest.target-file-size": target, "table.manifest.full-compaction-threshold-size": full}
        lake = merging(Lake({"warehouse": warehouse}).with_options(partitionBy="day"), count, **sizes)
        expected: set[tuple[int, str | None]] = set()

        for batch, write in enumerate(writes):
            write.on(lake, batch)
            expected = write.after(expected, batch)
            assert len(as_java_reads(lake)) == len(expected)

        assert as_pypaimon_reads(lake) == sorted(expected, key=str)
        if target == "8 mb":
            assert len(manifests(lake)) <= 3 * int(count) + 1
        assert verify(lake.open()).problems == ()
        assert PaimonEngine(lake).stray_metadata() == []


def test_the_number_of_manifests_stays_small(local_lake: Lake) -> None:
    lake = merging(local_lake)
    found = []

    for batch in range(30):
        lake.append(batch, rows(batch))
        found.append(len(manifests(lake)))

    assert max(found) <= 3 * 3 + 1
    assert lake.ids() == list(range(30))
    assert [snapshot["totalRecordCount"] for snapshot in lake.snapshots()] == list(range(1, 31))
    assert verify(lake.open()).problems == ()


def test_the_default_is_javas_and_merges_at_thirty(local_lake: Lake) -> None:
    for batch in range(31):
        local_lake.append(batch, rows(batch))

    assert [manifest.num_added_files for manifest in base(local_lake)] == [30]


def test_an_option_that_is_no_number_is_taken_for_none(local_lake: Lake) -> None:
    lake = merging(local_lake, "many", **{"table.manifest.full-compaction-threshold-size": "large"})
    lake.append(0, rows(0))

    lake.append(1, rows(1))

    assert len(base(lake)) == 1


# ---------------------------------------------------------------- what a merged manifest says


def test_a_merged_manifest_has_the_figures_and_the_entries_of_its_inputs(local_lake: Lake) -> None:
    lake = merging(local_lake.with_options(partitionBy="day"))
    lake.append(0, rows(0, day="friday"))
    lake.append(1, rows(1, day=None))
    foreign.append(lake, rows(2, day="sunday"))
    inputs = manifests(lake)
    carried = [record for manifest in inputs for record in records(lake, manifest.file_name)]

    lake.append(2, rows(3))

    [made] = base(lake)
    assert made.file_name not in {manifest.file_name for manifest in inputs}
    assert records(lake, made.file_name) == carried
    assert made.file_size == Path(lake.open().location, "manifest", made.file_name).stat().st_size
    stats = made.partition_stats
    assert (stats.min_values.get_field(0), stats.max_values.get_field(0), stats.null_counts) == (
        "friday",
        "sunday",
        [1],
    )
    expected = ManifestFileManager(foreign.table(lake))._build_meta(
        made.file_name,
        [entry for manifest in inputs for entry in ManifestFileManager(foreign.table(lake)).read(manifest.file_name)],
        made.file_size,
    )
    assert figures(made) == figures(expected) == (3, 0, 0, 0, 0, 0, 0, None, None, None)


def figures(manifest: ManifestFileMeta) -> tuple[int | None, ...]:
    return (
        manifest.num_added_files,
        manifest.num_deleted_files,
        manifest.schema_id,
        manifest.min_bucket,
        manifest.max_bucket,
        manifest.min_level,
        manifest.max_level,
        manifest.min_row_id,
        manifest.max_row_id,
        manifest.total_buckets,
    )


def test_files_of_an_older_schema_are_carried_with_it(local_lake: Lake) -> None:
    lake = merging(local_lake)
    lake.append(0, rows(0))
    PaimonEngine(lake).add_column("note")
    foreign.append(lake, with_note(1))
    foreign.append(lake, with_note(2))

    lake.append(1, rows(3))

    assert [manifest.schema_id for manifest in base(lake)] == [1]
    assert lake.ids() == PaimonEngine(lake).read_ids() == [0, 1, 2, 3]


def with_note(number: int) -> pa.RecordBatch:
    return rows(number).append_column("note", pa.array(["noted"]))


def rewrite(lake: Lake, manifest: str, change: Callable[[dict[str, Any]], None], **fields: Any) -> None:
    """Write a manifest as another engine would have, with fields of row tracking or of the future."""
    path = Path(lake.open().location, "manifest", manifest)
    reader = fastavro.reader(BytesIO(path.read_bytes()))
    found: list[Any] = list(reader)
    schema: Any = reader.writer_schema
    for name, type_ in fields.items():
        schema["fields"][-1]["type"]["fields"].append({"name": name, "type": type_})
    for record in found:
        change(record)
    out = BytesIO()
    fastavro.writer(out, schema, found)
    path.write_bytes(out.getvalue())


def test_row_ids_and_other_fields_that_are_not_ours_are_carried(local_lake: Lake) -> None:
    lake = merging(local_lake)
    for batch in range(3):
        lake.append(batch, rows(batch))
    for number, manifest in enumerate(manifests(lake)):
        known = {
            "_FIRST_ROW_ID": number * 10,
            "_EXTERNAL_PATH": None,
            "_EXTRA_FILES": [f"index-{number}"],
            "_EMBEDDED_FILE_INDEX": b"\x00index",
            "_WRITE_COLS": ["id", "day"],
            "_VALUE_STATS_COLS": ["id", "day"],
        }
        rewrite(lake, manifest.file_name, lambda record, known=known: record["_FILE"].update(known))  # type: ignore[misc]

    lake.append(3, rows(3))

    [made] = base(lake)
    files = [record["_FILE"] for record in records(lake, made.file_name)]
    assert [file["_FIRST_ROW_ID"] for file in files] == [0, 10, 20]
    assert [file["_EXTRA_FILES"] for file in files] == [["index-0"], ["index-1"], ["index-2"]]
    assert {(file["_EMBEDDED_FILE_INDEX"], *file["_WRITE_COLS"]) for file in files} == {(b"\x00index", "id", "day")}
    assert (made.min_row_id, made.max_row_id) == (0, 20)


def test_a_manifest_with_fields_of_the_future_is_left_alone(local_lake: Lake) -> None:
    lake = merging(local_lake)
    for batch in range(3):
        lake.append(batch, rows(batch))
    before = [manifest.file_name for manifest in manifests(lake)]
    rewrite(lake, before[1], lambda record: record["_FILE"].update(_NEW_FIELD="x"), _NEW_FIELD="string")

    lake.append(3, rows(3))

    assert [manifest.file_name for manifest in base(lake)] == before
    assert lake.ids() == [0, 1, 2, 3]


def test_a_file_that_is_in_twice_is_not_merged_away(local_lake: Lake) -> None:
    """Whoever doubled it, its rows are read twice, before and after; `pwc verify` has to find it."""
    lake = merging(local_lake)
    message = lake.append(0, rows(1))
    lake.commit(1, message)
    lake.append(2, rows(2))

    lake.append(3, rows(3))

    assert len(base(lake)) == 3
    assert lake.ids() == [1, 1, 2, 3]


def test_a_manifest_that_cannot_be_read_stops_the_merge_by_name(local_lake: Lake) -> None:
    lake = merging(local_lake)
    for batch in range(3):
        lake.append(batch, rows(batch))
    name = manifests(lake)[1].file_name
    Path(lake.open().location, "manifest", name).write_bytes(b"Obj")
    before = lake.files("manifest/")

    with pytest.raises(CorruptTableError, match=f"{name}.*Nothing was committed"):
        lake.append(3, rows(3))

    assert lake.files("manifest/") == before


# ---------------------------------------------------------------- deletions


def test_a_deletion_stays_while_its_addition_is_elsewhere_and_goes_with_it(local_lake: Lake) -> None:
    lake = merging(local_lake, "4", **{"table.manifest.full-compaction-threshold-size": "1 gb"})
    lake.append(0, *(rows(row) for row in range(2)))
    for batch in range(1, 4):
        lake.append(batch, rows(batch * 10))
    for batch in range(4, 8):
        # Each takes out all that is there.
        lake.commit(batch, lake.write(rows(batch * 10)), overwrite=True)

    lake.append(8, rows(80))

    counts = [(manifest.num_added_files, manifest.num_deleted_files) for manifest in base(lake)]
    assert sum(deleted for _, deleted in counts) == sum(added for added, _ in counts) - 1
    assert as_java_reads(lake) == live_files(lake)
    assert lake.ids() == [70, 80]


def live_files(lake: Lake) -> set[str]:
    """What pypaimon plans to read."""
    splits = foreign.table(lake).new_read_builder().new_scan().plan().splits()
    return {file.file_name for split in splits for file in split.files}


def test_manifests_are_rewritten_without_deletions_once_these_outgrow_the_threshold(local_lake: Lake) -> None:
    lake = merging(
        local_lake.with_options(partitionBy="day"), NEVER, **{"table.manifest.full-compaction-threshold-size": "1 b"}
    ).with_options(partitionOverwriteMode="dynamic")
    lake.append(0, rows(0, day="friday"), rows(1, day="monday"))
    lake.append(1, rows(2, day="friday"))
    lake.commit(2, lake.write(rows(3, day="friday")), overwrite=True)

    lake.append(3, rows(4, day="sunday"))

    assert [(manifest.num_added_files, manifest.num_deleted_files) for manifest in base(lake)] == [(2, 0)]
    assert lake.ids() == PaimonEngine(lake).read_ids() == [1, 3, 4]


def test_a_rewrite_leaves_full_manifests_of_other_partitions_as_they_are(local_lake: Lake) -> None:
    lake = merging(
        local_lake.with_options(partitionBy="day"),
        NEVER,
        **{"table.manifest.full-compaction-threshold-size": "1 b", "table.manifest.target-file-size": "1 kb"},
    ).with_options(partitionOverwriteMode="dynamic")
    lake.append(0, rows(0, day="friday"))
    lake.append(1, rows(1, day="monday"))
    lake.commit(2, lake.write(rows(2, day="monday")), overwrite=True)
    untouched = manifests(lake)[0].file_name

    lake.append(3, rows(3, day="monday"))

    assert base(lake)[0].file_name == untouched
    assert sum(manifest.num_deleted_files for manifest in base(lake)) == 0
    assert lake.ids() == PaimonEngine(lake).read_ids() == [0, 2, 3]


def test_a_deletion_whose_addition_was_not_looked_at_stays(local_lake: Lake) -> None:
    """The list of another engine has wrong bounds of partitions: the file must not come back for that."""
    lake = merging(
        local_lake.with_options(partitionBy="day"),
        NEVER,
        **{"table.manifest.full-compaction-threshold-size": "1 b", "table.manifest.target-file-size": "1 kb"},
    ).with_options(partitionOverwriteMode="dynamic")
    lake.append(0, rows(0, day="friday"))
    lake.append(1, rows(1, day="monday"))
    first, second = manifests(lake)
    native, newest = foreign.table(lake), lake.snapshots()[-1]
    lying = replace(first, partition_stats=second.partition_stats)
    ManifestListManager(native).write(newest["baseManifestList"], [lying])
    lake.commit(2, lake.write(rows(2, day="friday")), overwrite=True)

    lake.append(3, rows(3, day="sunday"))

    assert base(lake)[0].file_name == first.file_name
    assert lake.ids() == PaimonEngine(lake).read_ids() == [1, 2, 3]


def test_a_table_that_is_emptied_again_and_again_keeps_few_manifests(local_lake: Lake) -> None:
    lake = merging(local_lake)

    for batch in range(20):
        lake.commit(batch, lake.write(rows(batch)), overwrite=True)

    assert len(manifests(lake)) <= 4
    assert lake.ids() == [19]


# ---------------------------------------------------------------- rounds that are lost


def test_what_a_lost_round_merged_is_used_by_the_next(local_lake: Lake) -> None:
    lake = merging(local_lake)
    for batch in range(3):
        lake.append(batch, rows(batch))
    engine, strays = PaimonEngine(lake), list[str]()

    def lose() -> None:
        strays.extend(engine.stray_metadata())
        engine.append(rows(10))

    with listening(once_at(Step.BEFORE_PUT, lose)):
        outcome = coordinator(lake).commit(write_plan(lake, 3, rows(3)))

    assert outcome.attempts == 2
    assert [f"manifest/{manifest.file_name}" in strays for manifest in base(lake)] == [True, False]
    assert engine.stray_metadata() == []
    assert lake.ids() == engine.read_ids() == [0, 1, 2, 3, 10]


def test_what_a_lost_round_merged_goes_when_the_winner_merged_it_too(local_lake: Lake) -> None:
    lake = merging(local_lake)
    for batch in range(3):
        lake.append(batch, rows(batch))
    other = lake.with_options(commitUser="other")
    table = lake.open()

    with listening(once_at(Step.BEFORE_PUT, lambda: other.append(0, rows(10)))):
        first = coordinator(lake, table).commit(write_plan(lake, 3, rows(3)))
    # The same open table again, as a driver in one process has it.
    second = coordinator(lake, table).commit(write_plan(lake, 4, rows(4)))

    assert (first.attempts, second.attempts) == (2, 1)
    assert PaimonEngine(lake).stray_metadata() == []
    assert lake.ids() == [0, 1, 2, 3, 4, 10]
    assert verify(lake.open()).problems == ()


def test_what_was_merged_for_a_build_that_failed_is_removed(local_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = merging(local_lake)
    for batch in range(3):
        lake.append(batch, rows(batch))
    before = lake.files("manifest/")

    def full(*_: object) -> int:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ManifestListManager, "write", full)
        with pytest.raises(StorageError, match="No space left"):
            lake.append(3, rows(3))

    assert lake.files("manifest/") == before
    lake.append(3, rows(3))
    assert len(base(lake)) == 1
