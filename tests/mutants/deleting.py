"""Protections of deletes, replacements and purges switched off."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["DELETING_MUTANTS"]

FAULTS = "tests/faults/test_deleting.py"
DELETES = "tests/maintain/test_delete.py"
COORDINATOR = "paimon_sink/commit/coordinator.py"
CHOOSING = "paimon_sink/maintain/choosing.py"
DELETE = "paimon_sink/maintain/delete.py"
REPLACE = "paimon_sink/maintain/replace.py"
PURGE = "paimon_sink/maintain/purge.py"
ROWS = "paimon_sink/core/condition_rows.py"
FILTERS = "paimon_sink/read/pruning.py"
VALUES = "paimon_sink/formats/values.py"

DELETING_MUTANTS = (
    Mutant(
        "delete-passes-over-partitionby",
        "whoever names another partitioning than the table has is told so, not only by writes",
        "paimon_sink/formats/registry.py",
        "    format_named(options.table_format).check_writable(table)\n    _check_partitioning(options, table)\n",
        "    format_named(options.table_format).check_writable(table)\n",
        ("tests/cli/test_delete_command.py::test_a_partitioning_that_is_not_the_tables_is_refused_and_its_own_is_not",),
    ),
    Mutant(
        "delete-of-gone-files",
        "rows in files that others replaced are found in the new ones",
        "paimon_sink/formats/paimon/compacting.py",
        "    check_all_there(removed, entries.keys(), table=table)\n",
        "",
        (f"{FAULTS}::test_rows_that_others_put_into_other_files_meanwhile_are_found_there",),
    ),
    Mutant(
        "delete-takes-null-rows",
        "rows for which the condition is null stay",
        ROWS,
        "    return pc.fill_null(truths(conditions, batch), False)\n",
        "    return pc.fill_null(truths(conditions, batch), True)\n",
        (f"{DELETES}::test_a_file_with_nulls_beside_such_rows_is_not_taken_out_whole",),
    ),
    Mutant(
        "delete-takes-files-beside-a-null-in-a-list",
        "NOT IN with NULL in its list is null, and true for no row: no file goes unread for it",
        FILTERS,
        "    if tree.has_null:\n",
        "    if False:\n",
        (f"{DELETES}::test_what_is_taken_out_unread_meets_the_condition",),
    ),
    Mutant(
        "delete-takes-files-with-null-rows",
        "a file with rows for which the condition is null does not go unread",
        FILTERS,
        "    return AnyFilter((found, Filter(tree.column, Comparison.IS_NULL)))\n",
        "    return found\n",
        (f"{DELETES}::test_a_file_with_nulls_beside_such_rows_is_not_taken_out_whole",),
    ),
    Mutant(
        "delete-that-found-nothing-leaves-no-mark",
        "a delete that found nothing is known when it is run again",
        VALUES,
        "        is_mark = self.kind in (CommitKind.DELETE, CommitKind.REPLACE) and self.batch_id is not None\n",
        "        is_mark = False\n",
        (f"{FAULTS}::test_a_delete_that_found_nothing_is_a_no_op_when_it_is_run_again",),
    ),
    Mutant(
        "delete-marks-a-step",
        "a job whose rows others were adding to is not in before a look found none",
        COORDINATOR,
        "        if plan.planned_on is None or plan.planned_on.snapshot_id == head.snapshot_id:\n",
        "        if plan.planned_on is None or plan.kind is CommitKind.DELETE:\n",
        (f"{FAULTS}::test_the_snapshot_of_a_job_that_others_overtook_is_no_mark_of_it_and_the_last_one_is",),
    ),
    Mutant(
        "delete-stops-after-one-round",
        "rows that come meanwhile go too",
        DELETE,
        "_CHASES = 8\n",
        "_CHASES = 1\n",
        (f"{FAULTS}::test_rows_that_come_meanwhile_go_too_and_no_append_is_refused",),
    ),
    Mutant(
        "delete-rewrites-what-has-no-such-row",
        "files without such rows stay as they are",
        CHOOSING,
        "        if not any(_matches(table, group, conditions, to=to)):\n",
        "        if False:\n",
        (f"{DELETES}::test_a_file_that_is_read_in_vain_stays_as_it_is",),
    ),
    Mutant(
        "delete-of-foreign-files",
        "a file that cannot be written anew and may hold such rows is refused",
        CHOOSING,
        "        if possible == found.keys():\n",
        "        if True:\n",
        (f"{DELETES}::test_files_of_an_earlier_partitioning_are_refused_by_name_where_they_may_hold_such_rows",),
    ),
    Mutant(
        "stream-passes-deletes",
        "a reader of changes stops at a delete (Paimon)",
        "paimon_sink/formats/paimon/commit.py",
        'CommitKind.REWRITE: "COMPACT"}',
        'CommitKind.REWRITE: "COMPACT", CommitKind.DELETE: "COMPACT"}',
        (f"{DELETES}::test_readers_of_changes_stop_at_a_delete_or_pass_over_it",),
    ),
    Mutant(
        "replace-outside-condition-accepted",
        "new rows meet the condition of those they replace",
        REPLACE,
        "        outside += batch.num_rows - met_by(replacement.conditions, batch).true_count\n",
        "",
        (f"{FAULTS}::test_new_rows_outside_of_the_condition_are_counted_and_refused_before_anything_is_committed",),
    ),
    Mutant(
        "replace-on-any-snapshot",
        "two jobs that replace the same rows leave those of one",
        COORDINATOR,
        "        if plan.kind is not CommitKind.DELETE:\n",
        "        if False:\n",
        (f"{FAULTS}::test_what_others_commit_meanwhile_is_replaced_where_it_meets_the_condition",),
    ),
    Mutant(
        "purge-takes-what-a-tag-keeps",
        "what a tag keeps is refused, and nothing expires",
        PURGE,
        "    _refuse_kept(table, before)\n",
        "",
        (f"{FAULTS}::test_a_tag_that_keeps_such_rows_is_named_and_nothing_expires_until_it_is_gone",),
    ),
    Mutant(
        "purge-takes-young-orphans",
        "a young file that nothing ever named may be of a batch",
        PURGE,
        "    gone = [path for path in orphans if path in published]\n",
        "    gone = list(orphans)\n",
        (
            f"{FAULTS}::test_a_young_file_that_nothing_ever_named_may_be_of_a_batch_and_stays_with_a_word_on_when_it_"
            "may_go",
        ),
    ),
    Mutant(
        "purge-expires-what-came-since",
        "what came after the delete does not expire",
        PURGE,
        "    return frozenset(line[: last + 1]) | holding\n",
        "    return frozenset(line)\n",
        (f"{FAULTS}::test_what_came_after_the_delete_does_not_expire",),
    ),
)
