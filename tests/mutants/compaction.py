"""Protections of compaction switched off."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["COMPACTION_MUTANTS"]

FAULTS = "tests/faults/test_compaction.py"
ICEBERG = "tests/formats/test_iceberg_compaction.py"
PAIMON = "tests/formats/test_paimon_compaction.py"
REWRITES = "tests/maintain/test_compact.py"
COORDINATOR = "paimon_sink/commit/coordinator.py"
COMPACT = "paimon_sink/maintain/compact.py"
REWRITING = "paimon_sink/maintain/rewriting.py"
PAIMON_SIDE = "paimon_sink/formats/paimon/compacting.py"
PAIMON_SCANS = "paimon_sink/formats/paimon/scans.py"
PAIMON_COMMIT = "paimon_sink/formats/paimon/commit.py"
ICEBERG_SIDE = "paimon_sink/formats/iceberg/compacting.py"
ICEBERG_SCANS = "paimon_sink/formats/iceberg/scans.py"
ICEBERG_BUILD = "paimon_sink/formats/iceberg/build.py"

COMPACTION_MUTANTS = (
    Mutant(
        "compaction-deletes-what-may-be-in",
        "new files stay while a put that names them may land",
        COORDINATOR,
        "            if not run.may_be_in:\n",
        "            if True:\n",
        (f"{FAULTS}::test_a_put_without_an_answer_keeps_its_files_also_when_it_is_overtaken_later",),
    ),
    Mutant(
        "compaction-deletes-what-was-published",
        "the files of a plan that is in are not deleted when it comes again",
        "paimon_sink/commit/unused.py",
        "    if live is not None and live.isdisjoint(file.path for file in plan.files):\n",
        "    if live is not None:\n",
        (f"{FAULTS}::test_what_is_published_a_second_time_deletes_nothing",),
    ),
    Mutant(
        "compaction-deletes-live-rewrites",
        "the files of groups that were published before are not deleted",
        COMPACT,
        "for file in done.message.files if file.path not in live)",
        "for file in done.message.files)",
        (f"{FAULTS}::test_what_is_published_a_second_time_deletes_nothing",),
    ),
    Mutant(
        "compaction-drops-silent-users",
        "the ledger goes on as it is",
        COMPACT,
        "Policy(ledger_retention_ms=sys.maxsize)",
        "Policy()",
        (f"{FAULTS}::test_a_user_who_is_silent_for_long_stays_in_the_ledger",),
    ),
    Mutant(
        "compaction-leaves-its-files",
        "a compaction that gives up leaves no files",
        COORDINATOR,
        "                drop_unpublished_files(self.table, plan)\n",
        "                pass\n",
        (f"{FAULTS}::test_files_that_others_replace_meanwhile_are_left_to_them",),
    ),
    Mutant(
        "compaction-mixes-partitions",
        "rows are not moved to another partition",
        REWRITING,
        "    strange = [file for file in message.files if file.partition != group.partition]\n",
        "    strange: list[DataFile] = []\n",
        (f"{REWRITES}::test_rows_that_belong_to_another_partition_are_not_moved_there",),
    ),
    Mutant(
        "compaction-counts-no-rows",
        "a file that has other rows than its manifest says is not rewritten",
        REWRITING,
        "        if rows != file.rows:\n",
        "        if False:\n",
        (f"{REWRITES}::test_a_file_with_other_rows_than_its_manifest_says_ends_it_and_leaves_nothing",),
    ),
    Mutant(
        "paimon-compaction-of-gone-files",
        "files that are not in the table any more are not replaced (Paimon)",
        PAIMON_SIDE,
        "    check_all_there(removed, entries.keys(), table=table)\n",
        "",
        (f"{FAULTS}::test_files_that_others_replace_meanwhile_are_left_to_them",),
    ),
    Mutant(
        "iceberg-compaction-of-gone-files",
        "files that are not in the table any more are not replaced (Iceberg)",
        ICEBERG_SIDE,
        "        check_all_there(self._plan.removed, self._rows.keys(), table=self._table)\n",
        "",
        (f"{FAULTS}::test_files_that_others_replace_meanwhile_are_left_to_them",),
    ),
    Mutant(
        "paimon-compaction-of-other-rows",
        "new files have as many rows as those they replace (Paimon)",
        PAIMON_COMMIT,
        "            check_rows(sum(entry.file.row_count for entry in live), plan, table=handle.label)\n",
        "",
        (f"{FAULTS}::test_files_with_other_rows_are_never_put_in_place_of_these",),
    ),
    Mutant(
        "iceberg-compaction-of-other-rows",
        "new files have as many rows as those they replace (Iceberg)",
        ICEBERG_SIDE,
        "        if self._plan.kind.names_files:\n",
        "        if False:\n",
        (f"{FAULTS}::test_files_with_other_rows_are_never_put_in_place_of_these",),
    ),
    Mutant(
        "paimon-compaction-forgets-columns",
        "a column that came after the table was opened is not lost (Paimon)",
        PAIMON_SCANS,
        "        if max(handle.schemas.ids(), default=None) != handle.schema_id:\n",
        "        if False:\n",
        (f"{FAULTS}::test_a_column_that_came_after_the_table_was_opened_is_not_lost",),
    ),
    Mutant(
        "iceberg-compaction-forgets-columns",
        "a column that came after the table was opened is not lost (Iceberg)",
        ICEBERG_SCANS,
        "        if metadata.current_schema_id != self._schema_id or metadata.spec()",
        "        if metadata.spec()",
        (f"{FAULTS}::test_a_column_that_came_after_the_table_was_opened_is_not_lost",),
    ),
    Mutant(
        "paimon-compaction-ignores-deletion-vectors",
        "rows that deletion vectors hide do not come back",
        PAIMON_SIDE,
        "    if snapshot.index_manifest:\n",
        "    if False:\n",
        (f"{PAIMON}::test_a_table_with_an_index_is_refused_by_name",),
    ),
    Mutant(
        "iceberg-compaction-ignores-later-deletes",
        "rows that are deleted meanwhile do not come back",
        ICEBERG_BUILD,
        '                require_no_deletes(deletes, table=".".join(self.native.name()))\n',
        "",
        (f"{ICEBERG}::test_a_row_that_is_deleted_meanwhile_does_not_come_back",),
    ),
    Mutant(
        "paimon-compaction-is-an-append",
        "readers of changes see no row again (Paimon)",
        PAIMON_COMMIT,
        'CommitKind.REWRITE: "COMPACT"}',
        'CommitKind.REWRITE: "APPEND"}',
        (f"{FAULTS}::test_small_files_become_one_a_partition_and_rows_and_their_order_stay",),
    ),
    Mutant(
        "iceberg-compaction-is-an-append",
        "readers of changes see no row again (Iceberg)",
        ICEBERG_BUILD,
        "Operation.REPLACE",
        "Operation.APPEND",
        (f"{FAULTS}::test_small_files_become_one_a_partition_and_rows_and_their_order_stay",),
    ),
)
