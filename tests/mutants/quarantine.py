"""Protections of bad rows: that they are judged once, owed by the put, and delivered once."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["QUARANTINE_MUTANTS"]

FAULTS = "tests/faults/test_quarantine.py"
AGAIN = "tests/faults/test_requeue.py"
MODEL = "tests/model/test_outbox_model.py"
SINK = "tests/sink/test_quarantine.py"
JUDGING_TESTS = "tests/core/test_judging.py"
VALUES = "tests/core/test_outbox.py"
OUTBOX = "paimon_sink/commit/outbox.py"
QUARANTINE = "paimon_sink/maintain/quarantine.py"
PLAN = "paimon_sink/maintain/quarantine_plan.py"
JUDGING = "paimon_sink/core/judging.py"
REQUEUE = "paimon_sink/maintain/requeue.py"

QUARANTINE_MUTANTS = (
    Mutant(
        "owed-of-before-forgotten",
        "what a batch owes is delivered before the next one is put",
        OUTBOX,
        "        carried = () if before is None else self.settle(before, again=False)\n",
        "        carried = ()\n",
        (f"{FAULTS}::test_a_query_without_its_quarantine_still_delivers_what_it_owes",),
    ),
    Mutant(
        "owed-of-a-replay-forgotten",
        "a replay delivers what its first try owed",
        OUTBOX,
        "        if entry is not None:\n            self.settle(entry)\n        named =",
        "        named =",
        (f"{FAULTS}::test_a_row_that_a_replay_finds_bad_stays_in_the_table",),
    ),
    Mutant(
        "delivered-whatever-is-there",
        "a number that the quarantine has is not delivered again",
        "paimon_sink/maintain/quarantine.py",
        "user = receiving_user(self.home.identity, commit_user)\n        plan = fold(",
        "user = receiving_user(self.home.identity, commit_user) + message.files[0].path\n        plan = fold(",
        (f"{MODEL}::test_whatever_happens_each_row_is_in_one_of_the_two_tables_once",),
    ),
    Mutant(
        "tables-share-their-numbers",
        "two tables with one commit user have numbers of their own in a quarantine",
        "paimon_sink/core/outbox.py",
        '("pwc-outbox", _short(table_identity), _short(commit_user))',
        '("pwc-outbox", _short(commit_user))',
        (f"{FAULTS}::test_two_tables_share_a_quarantine_under_one_commit_user",),
    ),
    Mutant(
        "limits-of-a-replay",
        "a batch that is in is not judged by limits again",
        "paimon_sink/commit/coordinator.py",
        "        if not isinstance(decision, Publish):\n",
        "        self.outboxes.check(plan)\n        if not isinstance(decision, Publish):\n",
        (f"{FAULTS}::test_a_replay_with_too_many_bad_rows_of_a_batch_that_is_in_changes_nothing",),
    ),
    Mutant(
        "rolled-back-unnoticed",
        "a quarantine that is ahead of its table is noticed",
        OUTBOX,
        "        if taken > number_of(standing) and not self.takes_over:",
        "        if False:",
        (f"{FAULTS}::test_a_table_rolled_back_without_its_quarantine_is_refused_until_somebody_looked",),
    ),
    Mutant(
        "an-old-look-is-a-rollback",
        "a quarantine that went on since the look at the table is no rollback",
        "paimon_sink/commit/coordinator.py",
        "            if run.commit.load_head().ledger.entries.get(plan.commit_user) == before:",
        "            if True:",
        (f"{MODEL}::test_a_zombie_beside_its_successor_doubles_nothing_in_any_order",),
    ),
    Mutant(
        "owed-files-are-orphans",
        "cleaning spares what a ledger names",
        "paimon_sink/maintain/clean.py",
        "audit.notes(old=listing.old) | owed,",
        "audit.notes(old=listing.old),",
        (f"{FAULTS}::test_cleaning_either_table_takes_nothing_that_is_owed",),
    ),
    Mutant(
        "share-without-a-limit",
        "a share of bad rows above the limit fails the batch",
        QUARANTINE,
        "if bad > self.options.max_share * sent:",
        "if False:",
        (f"{FAULTS}::test_more_bad_rows_than_may_be_fail_the_batch_with_their_counts_and_change_nothing",),
    ),
    Mutant(
        "rows-without-a-limit",
        "more bad rows than the limit fail the batch",
        QUARANTINE,
        "if bad > self.options.max_rows:",
        "if False:",
        (f"{FAULTS}::test_more_bad_rows_than_may_be_fail_the_batch_with_their_counts_and_change_nothing",),
    ),
    Mutant(
        "refused-files-stay",
        "a batch that is refused leaves no files behind",
        OUTBOX,
        "            self.outboxes.refused(self.plan)\n",
        "            pass\n",
        (f"{FAULTS}::test_more_bad_rows_than_may_be_fail_the_batch_with_their_counts_and_change_nothing",),
    ),
    Mutant(
        "failed-checks-pass-without-quarantine",
        "without a quarantine a failed check fails the batch",
        QUARANTINE,
        "        if self.options.table is None:\n            raise SchemaMismatchError(",
        "        if self.options.table == '':\n            raise SchemaMismatchError(",
        (f"{FAULTS}::test_without_a_quarantine_a_failed_check_fails_the_batch_with_its_count",),
    ),
    Mutant(
        "null-fails-a-check",
        "a check that is null for a row is met",
        "paimon_sink/core/checks.py",
        "pc.fill_null(pc.invert(truths(self.conditions, batch)), False)",
        "pc.fill_null(pc.invert(truths(self.conditions, batch)), True)",
        (f"{JUDGING_TESTS}::test_a_check_that_is_null_beside_one_that_is_false_is_met",),
    ),
    Mutant(
        "error-column-unread",
        "rows that came with an error are bad",
        JUDGING,
        "        if noted is None or noted.null_count == len(noted):",
        "        if True:",
        (
            f"{JUDGING_TESTS}::test_a_noted_error_alone_makes_a_row_bad",
            f"{SINK}::test_bad_rows_have_all_their_columns_and_say_why_they_are_there",
        ),
    ),
    Mutant(
        "job-without-a-name-owes-nothing",
        "what a job without an identifier owes stands in the ledger",
        "paimon_sink/commit/fold.py",
        "    if identifier is None and any(message.rejected is not None or message.routed for message in reported):",
        "    if False:",
        (f"{FAULTS}::test_a_job_without_an_identifier_delivers_its_bad_rows_and_leaves_nothing_behind",),
    ),
    Mutant(
        "batch-of-bad-rows-alone",
        "a batch without a good row is put for its bad ones",
        "paimon_sink/formats/values.py",
        "has_rows = self.files or self.removed or self.rejected",
        "has_rows = self.files or self.removed",
        (f"{FAULTS}::test_a_batch_without_a_good_row_is_put_for_its_bad_ones",),
    ),
    Mutant(
        "any-file-of-a-message",
        "a message cannot have any other file read or deleted",
        "paimon_sink/formats/side_files.py",
        "return found is not None and self.temp_file_path(found.group()) == path",
        "return True",
        (f"{FAULTS}::test_a_message_that_names_another_file_of_bad_rows_is_refused",),
    ),
    Mutant(
        "overwrites-are-judged",
        "an overwrite that judges is refused",
        PLAN,
        "    if overwrite:\n",
        "    if False:\n",
        (f"{SINK}::test_an_overwrite_is_not_judged",),
    ),
    Mutant(
        "any-table-is-a-quarantine",
        "a table of another shape is refused while the write is planned",
        PLAN,
        "    problems = list(shape_problems(table.schema))\n",
        "    problems: list[str] = []\n",
        (f"{SINK}::test_all_that_is_wrong_is_told_together",),
    ),
    Mutant(
        "owing-users-leave-the-ledger",
        "a user who owes rows to another table stays in the ledger",
        "paimon_sink/commit/decide.py",
        "if user != commit_user and not _owes(ledger.entries[user])",
        "if user != commit_user",
        ("tests/commit/test_outboxes_in_the_ledger.py::test_who_owes_rows_stays_in_the_ledger",),
    ),
    Mutant(
        "requeued-twice",
        "rows that a run took are not taken again",
        REQUEUE,
        "is_open = [identity not in taken for identity in identities]",
        "is_open = [True for identity in identities]",
        (f"{AGAIN}::test_two_runs_write_each_row_once",),
    ),
    Mutant(
        "requeued-before-settled",
        "a run begins by finishing the one before it",
        REQUEUE,
        "        if entry.outbox is not None and entry.outbox.parts:\n            Quarantine(",
        "        if False:\n            Quarantine(",
        (f"{AGAIN}::test_a_run_that_dies_is_finished_by_the_next_and_doubles_nothing",),
    ),
    Mutant(
        "quarantine-keeps-its-first-columns",
        "a quarantine gets the columns that mergeSchema adds to the table",
        PLAN,
        "    if name is None or not write.merge_schema:\n        return\n    place",
        "    if name is None or write.merge_schema:\n        return\n    place",
        (f"{AGAIN}::test_rows_with_columns_that_came_later_and_wider_ones_are_written_with_all_of_their_values",),
    ),
    Mutant(
        "requeued-by-a-run-that-was-rolled-back",
        "rows do not count as requeued by runs that are not in the table any more",
        REQUEUE,
        "    run.refuse_what_was_rolled_back()\n",
        "",
        (f"{AGAIN}::test_rows_whose_run_was_rolled_back_are_named_and_written_once_their_record_is_gone_too",),
    ),
    Mutant(
        "requeue-to-a-branch",
        "no row is taken out of a quarantine for a branch",
        REQUEUE,
        "    if options.table.branch != MAIN_BRANCH:",
        "    if False:",
        (f"{AGAIN}::test_a_branch_gets_no_quarantined_rows",),
    ),
    Mutant(
        "delete-delivers-nothing",
        "a delete under a job's commit user delivers what the job owes",
        "paimon_sink/maintain/delete.py",
        "NO_OUTBOXES if job.place is None else Quarantine(self.table, job.place, policy=job.policy)",
        "NO_OUTBOXES",
        (f"{FAULTS}::test_a_delete_under_a_jobs_commit_user_delivers_what_the_job_owes",),
    ),
    Mutant(
        "step-of-a-delete-drops-what-is-named",
        "a commit without an entry of its own leaves the file that the entry before names",
        OUTBOX,
        "() if entry is None or before is None",
        "() if before is None",
        (f"{FAULTS}::test_a_step_of_a_delete_leaves_the_file_that_the_ledger_still_names",),
    ),
    Mutant(
        "kept-rows-unread",
        "rows are not gone while a file of bad rows holds them",
        "paimon_sink/maintain/erased.py",
        "stored_rows.may_hold_rows(path) or is_kept(self.table, path)",
        "stored_rows.may_hold_rows(path)",
        (
            "tests/maintain/test_erased.py::test_bad_rows_that_are_kept_for_a_quarantine_are_found_until_the_next_batch_is_in",
        ),
    ),
)
