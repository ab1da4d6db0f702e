"""Protections of files that are under way: whether they are there, and who may delete them."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["FILES_MUTANTS"]

BESIDE = "tests/maintain/test_clean_beside_batches.py"
LONG_BATCH = f"{BESIDE}::test_what_is_gone_after_a_long_batch_is_refused_however_wrong_the_clocks_of_its_tasks_are"
WRONG_DRIVER = f"{BESIDE}::test_what_is_gone_is_refused_also_when_a_clock_of_the_driver_went_wrong_meanwhile"

PRESENCE = "paimon_sink/commit/presence.py"
CLOCK = "paimon_sink/core/clock.py"
EXPIRE = "tests/maintain/test_expire.py"
PAIMON_EXPIRY = "paimon_sink/formats/paimon/expiry.py"
SNAPSHOTS = "paimon_sink/formats/paimon/snapshots.py"
CONTEXT = "paimon_sink/spark/context.py"
SINK = "paimon_sink/sink.py"
LOCAL = "paimon_sink/storage/local.py"

FILES_MUTANTS = (
    Mutant(
        "old-files-not-looked-for",
        "a commit of old files looks whether they are there",
        PRESENCE,
        "plan.planned is not None and plan.planned.is_within(_ASKS_AFTER_MS, now)",
        "True",
        (LONG_BATCH,),
    ),
    Mutant(
        "age-by-the-clock-of-the-task",
        "how long a batch is under way is told by the clocks of its driver",
        SINK,
        "            planned=self.planned,\n            compact=",
        "            planned=Moment.by(SystemClock()),\n            compact=",
        (LONG_BATCH,),
    ),
    Mutant(
        "age-by-the-wall-clock-alone",
        "a wall clock that was set back makes no batch young",
        CLOCK,
        " for age in ages)",
        " for age in ages[:1])",
        (WRONG_DRIVER,),
    ),
    Mutant(
        "age-by-the-steady-clock-alone",
        "a driver that slept makes no batch young",
        CLOCK,
        " for age in ages)",
        " for age in ages[1:])",
        (WRONG_DRIVER,),
    ),
    Mutant(
        "age-before-the-batch-is-young",
        "a clock that stands before the batch says nothing of its age",
        CLOCK,
        "0 <= age < span_ms",
        "age < span_ms",
        (WRONG_DRIVER,),
    ),
    Mutant(
        "unknown-age-is-young",
        "files of which nobody knows the age are looked for",
        PRESENCE,
        "plan.planned is not None and ",
        "plan.planned is None or ",
        (f"{BESIDE}::test_a_batch_of_which_nobody_knows_the_age_is_looked_for_whole",),
    ),
    Mutant(
        "one-file-not-looked-for",
        "a young batch on an object store shows that this is the table it was written to",
        PRESENCE,
        " and not side_files.absent(paths[:1])",
        "",
        (f"{BESIDE}::test_a_young_batch_that_finds_none_of_its_files_is_refused",),
    ),
    Mutant(
        "looks-on-a-disk-spared",
        "on a disk a batch of any age is looked for",
        LOCAL,
        "    looks_are_cheap = True\n",
        "    looks_are_cheap = False\n",
        (f"{BESIDE}::test_on_a_disk_a_batch_of_any_age_is_looked_for_whole",),
    ),
    Mutant(
        "broken-off-rows-taken-for-all",
        "an attempt whose rows broke off removes its files",
        CONTEXT,
        "    if _input_is_closed():\n",
        "    if False:\n",
        ("tests/write/test_attempts.py::test_an_attempt_whose_rows_broke_off_leaves_no_file",),
    ),
    Mutant(
        "whole-rows-taken-for-broken-off",
        "an attempt that has all rows keeps its files",
        CONTEXT,
        "not source.peek(1)",
        "True",
        ("tests/write/test_attempts.py::test_an_attempt_whose_rows_broke_off_leaves_no_file",),
    ),
    Mutant(
        "what-came-back-deleted",
        "a data file that another engine brought back stays as long as a snapshot has it",
        PAIMON_EXPIRY,
        "        self._spare_brought_back(doomed, lines)\n",
        "",
        (
            f"{EXPIRE}::test_a_file_that_was_taken_out_brought_back_and_taken_out_again_stays_as_long_as_a_snapshot_has_it",
            f"{EXPIRE}::test_so_it_does_where_only_a_snapshot_in_the_middle_of_a_branch_has_it",
        ),
    ),
    Mutant(
        "foreign-snapshots-forgotten",
        "a snapshot of ours says which of those below may have brought files back",
        SNAPSHOTS,
        "NEWEST_FOREIGN: str(newest_foreign(base))",
        'NEWEST_FOREIGN: "0"',
        (
            f"{EXPIRE}::test_a_file_that_was_taken_out_brought_back_and_taken_out_again_stays_as_long_as_a_snapshot_has_it",
        ),
    ),
)
