"""Guards of reads, switched off: each would give other rows than those of the snapshots that were asked for."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["READS_MUTANTS"]

VERSIONS = "tests/read/test_versions.py"
TIMES = "tests/read/test_iceberg_times.py"
BALANCE = "tests/read/test_balance.py"
PLAIN = "tests/formats/test_plain_files.py"

COMPACTED = f"{VERSIONS}::test_compacted_rows_are_not_added_again"
OVERWRITTEN = f"{VERSIONS}::test_an_overwrite_in_a_range_is_named_or_passed_over"

PAIMON_ADDED = "paimon_sink/formats/paimon/added.py"
ICEBERG_ADDED = "paimon_sink/formats/iceberg/added.py"
PAIMON_VERSIONS = "paimon_sink/formats/paimon/versions.py"
ICEBERG_VERSIONS = "paimon_sink/formats/iceberg/versions.py"

READS_MUTANTS = (
    Mutant(
        "paimon-plain-in-another-case",
        "a name in another case may be taken for the same by who reads by names (Paimon)",
        "paimon_sink/formats/paimon/scans.py",
        "        names = {field.name.lower() for field in then.values()}\n",
        "        names = {field.name for field in then.values()}\n",
        (f"{PLAIN}::test_a_column_of_another_case_is_none_of_today",),
    ),
    Mutant(
        "paimon-plain-without-default",
        "a column with a default value is not null in files without it (Paimon)",
        "paimon_sink/formats/paimon/scans.py",
        " or field.default_value is not None):\n",
        "):\n",
        (f"{PLAIN}::test_a_column_with_a_default_value_is_not_null_in_files_without_it",),
    ),
    Mutant(
        "iceberg-plain-in-another-case",
        "a name in another case may be taken for the same by who reads by names (Iceberg)",
        "paimon_sink/formats/iceberg/read.py",
        "        field.name.lower() not in names\n",
        "        field.name not in file.names\n",
        (f"{PLAIN}::test_files_have_their_columns_under_the_names_of_today_or_not",),
    ),
    Mutant(
        "iceberg-plain-by-metadata",
        "where schemas were removed from the metadata, footers tell (Iceberg)",
        "paimon_sink/formats/iceberg/scans.py",
        "        if not others and schema.schema_id == 0 and",
        "        if not others and",
        (f"{PLAIN}::test_a_schema_that_was_removed_from_the_metadata_is_in_the_footers",),
    ),
    Mutant(
        "paimon-range-takes-compactions",
        "rows that a compaction put into other files are not added again (Paimon)",
        PAIMON_ADDED,
        "    if snapshot_info(snapshot).is_rewrite:\n",
        "    if snapshot_info(snapshot).is_rewrite and not handle.label:\n",
        (COMPACTED,),
    ),
    Mutant(
        "iceberg-range-takes-compactions",
        "rows that a compaction put into other files are not added again (Iceberg)",
        ICEBERG_ADDED,
        "    if snapshot_info(snapshot).is_rewrite:\n",
        "    if snapshot_info(snapshot).is_rewrite and not table:\n",
        (COMPACTED,),
    ),
    Mutant(
        "paimon-range-overlooks-overwrites",
        "a snapshot that took rows out ends the read of a range (Paimon)",
        PAIMON_ADDED,
        "    if any(entry.kind != ADD for entry in entries) or _index_changed(handle, snapshot):\n",
        "    if _index_changed(handle, snapshot):\n",
        (OVERWRITTEN,),
    ),
    Mutant(
        "iceberg-range-overlooks-overwrites",
        "a snapshot that took rows out ends the read of a range (Iceberg)",
        ICEBERG_ADDED,
        "    if entries is None or any(entry.status == ManifestEntryStatus.DELETED for entry in entries):\n",
        "    if entries is None:\n",
        (OVERWRITTEN,),
    ),
    Mutant(
        "iceberg-forgets-who-was-first",
        "snapshots that expired below the oldest are not taken for never having been",
        ICEBERG_VERSIONS,
        "            return snapshot.sequence_number == 1\n",
        "            return True\n",
        (f"{VERSIONS}::test_a_time_whose_snapshots_expired_says_so",),
    ),
    Mutant(
        "iceberg-time-ignores-rollbacks",
        "a time before a rollback reads what was current then",
        ICEBERG_VERSIONS,
        "        if self.branch != MAIN_BRANCH or not log:\n",
        "        if True:\n",
        (f"{TIMES}::test_each_time_reads_what_was_current_then",),
    ),
    Mutant(
        "iceberg-log-believed-after-expiry",
        "a log that lost an entry is not taken for whole",
        ICEBERG_VERSIONS,
        "        if snapshot is None or (following and not self._is_next(snapshot, following[0])):\n",
        "        if snapshot is None:\n",
        (f"{TIMES}::test_the_time_of_what_was_rolled_back_and_expired_is_refused",),
    ),
    Mutant(
        "iceberg-range-leaves-its-line",
        "a range by time ends on the line of its branch",
        ICEBERG_VERSIONS,
        "self.newest() if span.to_ms is None else self._newest_on_line(span.to_ms)",
        "self.newest() if span.to_ms is None else self.newest_until(span.to_ms)",
        (f"{TIMES}::test_a_range_of_times_stays_on_the_line_of_the_branch",),
    ),
    Mutant(
        "number-or-tag",
        "a number that is a snapshot and a tag on another one is refused",
        "paimon_sink/formats/versions.py",
        "        if tagged is not None and snapshot is not None and self.id_of(tagged) != number:\n",
        "        if tagged is not None and snapshot is not None and self.id_of(tagged) == -1:\n",
        (f"{VERSIONS}::test_a_snapshot_and_a_tag_of_one_name_are_told_apart_by_nobody",),
    ),
    Mutant(
        "old-snapshot-newest-files",
        "a snapshot is read with its own files",
        PAIMON_VERSIONS,
        "        return self.snapshots.read(snapshot_id)\n",
        "        return self.snapshots.newest()\n",
        (f"{VERSIONS}::test_every_snapshot_reads_as_it_was",),
    ),
    Mutant(
        "row-groups-joined-short",
        "all row groups of a file are read",
        "paimon_sink/read/balance.py",
        "        groups = tuple(group for part in parts for group in part.row_groups or ())\n",
        "        groups = parts[0].row_groups\n",
        (f"{BALANCE}::test_every_row_group_of_every_file_is_in_one_task",),
    ),
    Mutant(
        "row-groups-count-as-files",
        "there are as many tasks as the size of splits asks for",
        "paimon_sink/read/balance.py",
        "_OPEN_FILE_BYTES / pieces[split.path, split.body]",
        "_OPEN_FILE_BYTES",
        (f"{BALANCE}::test_there_are_as_many_tasks_as_the_size_of_splits_asks_for",),
    ),
)
