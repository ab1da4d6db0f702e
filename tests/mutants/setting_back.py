"""The protections of tags, of rolling back, of branches and of the proof that rows are gone."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["SETTING_BACK_MUTANTS"]

ERASED = "tests/maintain/test_erased.py"
TAGS = "tests/maintain/test_people_tags.py"
BACK = "tests/maintain/test_rollback.py"
BESIDE = "tests/faults/test_rollback.py"
EXPIRING = "tests/faults/test_paimon_rollback.py"
BRANCHES = "tests/maintain/test_branches.py"

SEARCH = "paimon_sink/maintain/erased.py"
PAIMON_TAGS = "paimon_sink/formats/paimon/tags.py"
PAIMON_EXPIRY = "paimon_sink/formats/paimon/expiry.py"
PAIMON_BACK = "paimon_sink/formats/paimon/rollback.py"
ICEBERG_EXPIRY = "paimon_sink/formats/iceberg/expiry.py"
ICEBERG_AUDIT = "paimon_sink/formats/iceberg/audit.py"
ICEBERG_BRANCHES = "paimon_sink/formats/iceberg/branches.py"

SETTING_BACK_MUTANTS = (
    Mutant(
        "erased-one-look",
        "rows that move while they are looked for are looked for again",
        SEARCH,
        "        return bool(went) or is_new\n",
        "        return False\n",
        (
            f"{ERASED}::test_rows_that_move_while_they_are_looked_for_are_found_where_they_are_now",
            f"{ERASED}::test_a_file_that_a_writer_finishes_meanwhile_is_read_again",
        ),
    ),
    Mutant(
        "erased-unreadable-passes",
        "a file that cannot be read is a finding",
        SEARCH,
        "        return self.problem is not None or bool(self.matching)\n",
        "        return bool(self.matching)\n",
        (f"{ERASED}::test_a_file_that_cannot_be_read_is_no_pass",),
    ),
    Mutant(
        "erased-named-files-only",
        "files that nothing names are read too",
        SEARCH,
        "        paths = sorted((self.sizes.keys() | named.keys()) - ",
        "        paths = sorted(named.keys() - ",
        (f"{ERASED}::test_a_file_that_no_snapshot_names_is_an_orphan",),
    ),
    Mutant(
        "erased-first-reading",
        "of a file that may be of two schemas the worst reading counts",
        SEARCH,
        "rows, matching = max(rows, read_rows), max(matching, found)",
        "rows, matching = rows or read_rows, matching if rows else found",
        (f"{ERASED}::test_of_an_orphan_that_may_be_of_two_schemas_the_worst_counts",),
    ),
    Mutant(
        "tag-never-asks-the-expiry",
        "whoever tags the oldest snapshot asks whether an expiry is about to take it",
        PAIMON_TAGS,
        "        return announced is None or announced <= snapshot_id\n",
        "        return True\n",
        (f"{TAGS}::test_a_tag_for_what_an_expiry_is_about_to_take_keeps_it_or_comes_too_late",),
    ),
    Mutant(
        "expiry-announces-nothing",
        "an expiry says where it will end before it looks for tags",
        PAIMON_EXPIRY,
        "        self._announce(end.id)\n        for each in doomed:",
        "        for each in doomed:",
        (f"{TAGS}::test_a_tag_for_what_an_expiry_is_about_to_take_keeps_it_or_comes_too_late",),
    ),
    Mutant(
        "iceberg-expiry-takes-new-tags-along",
        "an expiry gives way to a tag that came after its look",
        ICEBERG_EXPIRY,
        "        if named:\n            raise CommitFailedException(",
        "        if False:\n            raise CommitFailedException(",
        (f"{TAGS}::test_on_iceberg_an_expiry_gives_way_to_a_tag_that_came_after_its_look",),
    ),
    Mutant(
        "iceberg-ancestors-of-tags-in-no-line",
        "what led to a tagged snapshot is in a line of its own",
        ICEBERG_AUDIT,
        "if is_branch else {ref.snapshot_id}\n",
        "if True else {ref.snapshot_id}\n",
        (f"{BACK}::test_what_led_to_a_tag_is_verified_and_no_orphan",),
    ),
    Mutant(
        "rollback-looks-once",
        "what lands on snapshots that go is found by looking again",
        PAIMON_BACK,
        "            if not landed:\n                break\n",
        "            break\n",
        (f"{BESIDE}::test_a_batch_that_lands_while_snapshots_go_is_kept_on_what_stays_or_goes",),
    ),
    Mutant(
        "rollback-of-what-is-newer",
        "a table that moved on since the plan is not rolled back",
        PAIMON_BACK,
        "standing.id not in (newest, self.target.id)",
        "False",
        (f"{BESIDE}::test_a_table_that_moved_on_since_the_plan_is_not_rolled_back",),
    ),
    Mutant(
        "rollback-unguarded",
        "what a rollback goes back to has a tag meanwhile",
        PAIMON_BACK,
        "        if not has_expired and not self.tags.put(guard, self.target.id):\n",
        "        if False:\n",
        (
            f"{EXPIRING}::test_a_snapshot_that_an_expiry_is_about_to_take_cannot_be_gone_back_to",
            f"{BESIDE}::test_an_expiry_beside_a_rollback_takes_nothing_of_what_stays",
        ),
    ),
    Mutant(
        "rollback-oldest-first",
        "snapshots go from the newest on, so that a table is left whenever it is killed",
        PAIMON_BACK,
        "        read = snapshots.read_all(sorted(above, reverse=True))\n",
        "        read = snapshots.read_all(sorted(above))\n",
        (f"{BESIDE}::test_a_rollback_that_was_killed_leaves_a_table_that_is_whole_and_is_finished_by_the_next",),
    ),
    Mutant(
        "publish-over-main",
        "a branch is published only onto the main that it was compared with",
        ICEBERG_BRANCHES,
        "        refs = {MAIN_BRANCH: onto, name: head}\n",
        "        refs = {name: head}\n",
        (f"{BRANCHES}::test_nor_over_what_lands_between_the_look_and_the_commit",),
    ),
    Mutant(
        "publish-without-the-ledger",
        "main learns the batches of a branch in the commit that publishes it",
        ICEBERG_BRANCHES,
        "users=sorted(users), table=self._label",
        "users=(), table=self._label",
        (f"{BRANCHES}::test_main_knows_the_batches_of_a_branch_that_was_published",),
    ),
)
