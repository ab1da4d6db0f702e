"""Guards against rows that are lost, doubled or replaced in silence: options, overwrites, jobs, silent users."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["SILENCE_MUTANTS"]

IDENTITY = "tests/faults/test_identity.py"
JOBS = "tests/faults/test_jobs.py"
OPTIONS_TEST = "tests/core/test_options.py"
DECIDE = "tests/commit/test_decide.py"
FOLD = "tests/commit/test_fold.py"
SILENT_TEST = "tests/formats/test_iceberg_ledger.py"

OPTIONS = "paimon_sink/core/options.py"
DECISION = "paimon_sink/commit/decide.py"
COORDINATOR = "paimon_sink/commit/coordinator.py"
FOLDING = "paimon_sink/commit/fold.py"
IDENTIFIERS = "paimon_sink/core/identifiers.py"
LEDGER = "paimon_sink/formats/iceberg/ledger.py"
CLAIMS = "paimon_sink/formats/paimon/claims.py"

SILENCE_MUTANTS = (
    Mutant(
        "purposes-not-held",
        "a write refuses an option that it cannot heed",
        OPTIONS,
        "    return [_elsewhere(option, purpose) for option in asked if purpose not in option.purposes]\n",
        "    return []\n",
        (f"{OPTIONS_TEST}::test_what_chooses_rows_to_read_is_refused_by_a_write_which_would_replace_others",),
    ),
    Mutant(
        "bounds-without-a-switch",
        "a bound of something that is not switched on is refused",
        OPTIONS,
        "        if switch is not None and given.has(bound) and not given.has(switch)\n",
        "        if False\n",
        (f"{OPTIONS_TEST}::test_a_bound_of_something_that_is_not_switched_on_is_refused",),
    ),
    Mutant(
        "session-overwrite-mode-ignored",
        "an overwrite without the option does as the session says",
        FOLDING,
        "    return any(message.dynamic_overwrite for message in messages)\n",
        "    return False\n",
        (f"{FOLD}::test_an_overwrite_without_the_option_does_as_its_tasks_say",),
    ),
    Mutant(
        "session-overwrite-mode-wins",
        "the option wins over the session",
        FOLDING,
        '        return options.partition_overwrite_mode == "dynamic"\n',
        "        pass\n",
        (f"{FOLD}::test_the_option_wins_over_what_tasks_say_of_overwrites",),
    ),
    Mutant(
        "job-identifiers-forgotten",
        "every identifier of a job is remembered, not the last alone",
        DECISION,
        "        before = identifiers_of(entry) if _is_same_writer(entry, request) else Identifiers()\n",
        "        before = Identifiers()\n",
        (f"{IDENTITY}::test_batch_jobs_land_once_in_whatever_order_their_identifiers_come",),
    ),
    Mutant(
        "job-floor-forgotten",
        "what a job no longer remembers is not taken for new",
        IDENTIFIERS,
        "        return Identifiers(tuple(young[-MOST_RANGES:]), max([self.floor, *forgotten]))\n",
        "        return Identifiers(tuple(young[-MOST_RANGES:]), self.floor)\n",
        ("tests/core/test_identifiers.py::test_what_is_forgotten_is_neither_in_nor_new",),
    ),
    Mutant(
        "job-highest-claim-released",
        "the claim of a job's highest identifier stays",
        DECISION,
        "        is_below = is_same and plan.batch_id < entry.batch_id\n",
        "        is_below = False\n",
        (f"{IDENTITY}::test_no_batch_job_is_doubled_after_a_foreign_engine_expired_all_our_snapshots",),
    ),
    Mutant(
        "rerun-of-an-earlier-job-judged-by-the-last",
        "the files of a rerun go only beside those of its own snapshot",
        "paimon_sink/commit/unused.py",
        "    if entry.batch_id == plan.batch_id:\n        return entry\n",
        "    if entry is not None:\n        return entry\n",
        (f"{IDENTITY}::test_the_files_of_a_rerun_stay_where_nobody_can_tell_which_ones_are_in",),
    ),
    Mutant(
        "claims-across-writers",
        "a job that takes a stream's name over keeps its claim",
        DECISION,
        "        is_same = plan.in_any_order and entry.query_id == plan.query_id\n",
        "        is_same = plan.in_any_order\n",
        (f"{JOBS}::test_a_job_that_took_a_streams_name_over_is_known_after_the_ledger_was_lost",),
    ),
    Mutant(
        "own-claim-counts",
        "a coordinator's own claim is no earlier try",
        COORDINATOR,
        "        others = [claim for claim in head.ledger.claims if claim.commit_id != run.commit_id]\n",
        "        others = list(head.ledger.claims)\n",
        (f"{JOBS}::test_a_job_that_lost_a_round_leaves_room_for_a_backfill",),
    ),
    Mutant(
        "tries-under-way-count-as-in",
        "a try that no snapshot since holds is not in",
        CLAIMS,
        "        return [claim for claim in self._of(commit_user) if not _is_out(claim, newest, read)]\n",
        "        return list(self._of(commit_user))\n",
        (f"{JOBS}::test_a_job_that_died_before_its_put_is_run_again_although_the_ledger_is_not_complete",),
    ),
    Mutant(
        "settled-claims-say-where-they-began",
        "a claim whose try is in speaks for those below it, whatever becomes of its snapshot",
        COORDINATOR,
        "            self.table.commits.claim(replace(run.claim, base=None))\n",
        "            pass\n",
        (f"{JOBS}::test_a_batch_below_one_that_was_rolled_back_is_not_doubled",),
    ),
    Mutant(
        "tries-that-expired-count-as-out",
        "a try whose snapshots have expired may be in",
        CLAIMS,
        "snapshot is not None and _commit_id(snapshot) != claim.commit_id",
        "snapshot is None or _commit_id(snapshot) != claim.commit_id",
        (f"{JOBS}::test_a_job_that_died_after_its_put_and_whose_snapshot_expired_is_not_doubled",),
    ),
    Mutant(
        "files-of-a-job-let-in-twice",
        "a rerun deletes no file that the newest snapshot has",
        "paimon_sink/commit/unused.py",
        "        live = with_live_files(table, live)\n",
        "        pass\n",
        (f"{JOBS}::test_no_live_file_goes_when_a_job_that_was_let_in_twice_commits_its_first_files_again",),
    ),
    Mutant(
        "rolled-back-beside-a-branch",
        "what one branch rolled back is remembered for the others",
        LEDGER,
        " and not _has_other_branches(metadata, branch):\n",
        ":\n",
        (f"{SILENT_TEST}::test_a_batch_that_was_rolled_back_on_one_branch_is_not_doubled_on_another",),
    ),
    Mutant(
        "silent-users-without-a-trace",
        "a user that leaves the ledger of an Iceberg table leaves a short line",
        LEDGER,
        "    changed = silent.changed(left=left, ",
        "    changed = silent.changed(left={}, ",
        (f"{IDENTITY}::test_the_only_batch_of_a_user_that_was_silent_for_long_is_not_doubled",),
    ),
    Mutant(
        "forgotten-users-taken-for-new",
        "nobody is taken for new where an older version forgot who was silent",
        LEDGER,
        "    register = Register.CUT if any(branch.forgot_some for branch in silent) else Register.WHOLE\n",
        "    register = Register.WHOLE\n",
        (f"{SILENT_TEST}::test_nobody_is_taken_for_new_where_an_older_version_forgot_who_was_silent",),
    ),
    Mutant(
        "register-not-read",
        "a user that never tried is let in although others left the ledger",
        CLAIMS,
        "        return Register.WHOLE if next(self.paths(), None) is not None else Register.EMPTY\n",
        "        return Register.CUT\n",
        (f"{IDENTITY}::test_a_new_batch_job_is_not_refused_because_others_left_the_ledger",),
    ),
    Mutant(
        "deleted-register-taken-for-whole",
        "a stream past its first batch is refused where history and every claim are gone",
        CLAIMS,
        "        return Register.WHOLE if next(self.paths(), None) is not None else Register.EMPTY\n",
        "        return Register.WHOLE\n",
        (f"{IDENTITY}::test_a_later_batch_is_refused_where_history_and_every_claim_are_gone",),
    ),
)
