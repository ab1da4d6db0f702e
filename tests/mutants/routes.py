"""Protections of one stream into many tables: that one put decides, each table takes a batch once, and files stay."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["ROUTES_MUTANTS"]

FAULTS = "tests/faults/test_routes.py"
MODEL = "tests/model/test_routes_model.py"
SINK = "tests/sink/test_routes.py"
REGIONS = "tests/faults/test_regions.py"
OUTBOX = "paimon_sink/route/outbox.py"
DELIVER = "paimon_sink/route/deliver.py"
TASK = "paimon_sink/route/task.py"
SPARE = "paimon_sink/route/spare.py"
NAMES = "paimon_sink/core/routes.py"
FOLD = "paimon_sink/commit/fold.py"

ROUTES_MUTANTS = (
    Mutant(
        "routed-batch-without-a-decision",
        "a replay delivers what the first try put, and not what it wrote itself",
        DELIVER,
        "            files=part.files,\n            kind=CommitKind.APPEND,",
        "            files=part.files[:0],\n            kind=CommitKind.APPEND,",
        (f"{SINK}::test_each_row_is_in_the_table_it_names_without_its_route",),
    ),
    Mutant(
        "number-taken-twice",
        "a table takes a number once",
        DELIVER,
        "            batch_id=number,\n            query_id=None,",
        "            batch_id=None,\n            query_id=None,",
        (f"{FAULTS}::test_a_restart_touches_only_the_tables_that_lack_the_batch",),
    ),
    Mutant(
        "look-is-skipped",
        "tables are looked at before the put, when a batch can still be written anew",
        OUTBOX,
        "            self._look(plan, manifest)\n",
        "            pass\n",
        (f"{FAULTS}::test_a_table_that_is_dropped_before_the_put_fails_the_batch",),
    ),
    Mutant(
        "presence-is-not-looked-at",
        "files that are gone before the put fail the batch",
        DELIVER,
        "            missing = missing_files(table.side_files, plan, now=Moment.by(self.clock))\n",
        "            missing: list[str] = []\n",
        (f"{FAULTS}::test_files_that_are_gone_before_the_put_fail_the_batch_and_it_is_written_anew",),
    ),
    Mutant(
        "rolled-back-home-unnoticed",
        "a table that is ahead of its home is noticed",
        OUTBOX,
        "        in_tables = max(self._taken.values(), default=NONE_TAKEN) if routed else NONE_TAKEN\n",
        "        in_tables = NONE_TAKEN\n",
        (f"{FAULTS}::test_a_home_rolled_back_without_its_tables_is_refused_until_somebody_looked",),
    ),
    Mutant(
        "other-table-gets-the-rows",
        "a table that was made anew does not get rows of the one before",
        DELIVER,
        "        left = [each for each in owed if table.identity == each.part.table_identity]\n",
        "        left = list(owed)\n",
        (f"{FAULTS}::test_a_table_that_was_dropped_and_made_anew_before_its_delivery_does_not_get_the_old_rows",),
    ),
    Mutant(
        "replay-leaves-its-files",
        "what a replay wrote goes",
        OUTBOX,
        "        self.courier.drop(plan.routed, spared=spared)\n",
        "        pass\n",
        (f"{FAULTS}::test_nothing_of_a_replay_with_another_number_of_tasks_stays",),
    ),
    Mutant(
        "replay-drops-what-is-in",
        "what the manifest names stays when the same messages come again",
        OUTBOX,
        "            own = frozenset(named.get(part.table, ()))\n",
        "            own: frozenset[str] = frozenset()\n",
        (f"{FAULTS}::test_the_same_messages_twice_are_one_batch_and_no_file_goes",),
    ),
    Mutant(
        "manifest-is-not-checked",
        "a damaged manifest is refused",
        "paimon_sink/route/manifest.py",
        '        if hashlib.sha256(body).hexdigest() != head["sha256"]:\n',
        "        if False:\n",
        (f"{FAULTS}::test_a_manifest_that_is_gone_or_damaged_is_refused_by_name_and_nothing_is_deleted",),
    ),
    Mutant(
        "spent-manifests-go-at-once",
        "a manifest stays for as long as a snapshot names it",
        OUTBOX,
        "if part.file in self._written)",
        "if True)",
        (f"{FAULTS}::test_a_restart_delivers_what_a_dead_driver_had_put_once_to_each_table",),
    ),
    Mutant(
        "owed-data-files-are-orphans",
        "cleaning a table spares what a home names",
        SPARE,
        "if mark not in named or path in named[mark]}",
        "if mark not in named}",
        (f"{FAULTS}::test_cleaning_takes_nothing_that_a_home_still_owes",),
    ),
    Mutant(
        "marked-files-are-orphans",
        "cleaning a table whose home is not known spares all files of routed batches",
        "paimon_sink/maintain/owed.py",
        "    return {path for path in paths if mark_in(path) is not None}\n",
        "    return frozenset()\n",
        (f"{FAULTS}::test_cleaning_takes_nothing_that_a_home_still_owes",),
    ),
    Mutant(
        "routes-leave-their-database",
        "a row chooses tables of the databases that are allowed",
        NAMES,
        "        if database not in self.databases:\n",
        "        if False:\n",
        (f"{FAULTS}::test_a_route_that_is_no_table_fails_the_batch_by_name_and_creates_none",),
    ),
    Mutant(
        "routes-choose-the-home",
        "no row chooses the home or the quarantine",
        NAMES,
        "for each in self.kept):",
        "for each in self.kept[:0]):",
        (f"{FAULTS}::test_a_route_that_is_no_table_fails_the_batch_by_name_and_creates_none",),
    ),
    Mutant(
        "tables-without-number",
        "more tables than may be are refused before any is created",
        TASK,
        "        if len(missing) + len(self.writers) > self.options.route.max_tables:\n",
        "        if False:\n",
        (f"{FAULTS}::test_more_tables_than_may_be_fail_the_batch_and_none_is_created",),
    ),
    Mutant(
        "unknown-routes-are-dropped",
        "a row without a table fails the batch or is quarantined",
        TASK,
        "        self._refuse_unknown(new)\n",
        "",
        (f"{FAULTS}::test_a_route_that_is_no_table_fails_the_batch_by_name_and_creates_none",),
    ),
    Mutant(
        "one-table-by-two-names",
        "two names of one table are refused: the second part would count as delivered",
        OUTBOX,
        "        self._refuse_two_names(plan)\n\n",
        "\n",
        (f"{FAULTS}::test_two_names_of_one_table_are_refused",),
    ),
    Mutant(
        "other-options-lose-rows",
        "tasks that route and a driver that does not commit nothing",
        "paimon_sink/sink.py",
        "        self._check_kind(plan)\n",
        "",
        (f"{FAULTS}::test_tasks_and_driver_with_other_options_commit_nothing",),
    ),
    Mutant(
        "budget-of-each-table",
        "all tables of a task share one budget",
        TASK,
        "FanOut(attempt, self.budget)",
        "FanOut(attempt, Budget(self.budget.limits))",
        (f"{SINK}::test_all_tables_of_a_task_share_one_budget_of_memory",),
    ),
    # ------------------------------------------------------------ tables that fail for a while
    Mutant(
        "fold-of-before",
        "a fold is made anew when another brought in some of its batches",
        "paimon_sink/commit/coordinator.py",
        "        if plan.follows is not None and plan.follows != last:\n",
        "        if False:\n",
        (
            f"{REGIONS}::test_a_zombie_that_brings_in_one_batch_while_its_successor_folds_it_with_the_next_doubles_"
            "nothing",
        ),
    ),
    Mutant(
        "files-of-a-fold-are-dropped",
        "files of a fold that is in already stay: others may have brought them in one by one",
        "paimon_sink/commit/coordinator.py",
        "        if is_replay and run.asked.follows is None:\n",
        "        if is_replay:\n",
        (f"{REGIONS}::test_no_file_of_a_fold_goes_when_all_of_it_is_in_by_then",),
    ),
    Mutant(
        "carried-without-a-bound",
        "past a bound the next batch waits",
        OUTBOX,
        "        if not passed:\n            return widest\n",
        "        if True:\n            return widest\n",
        (f"{REGIONS}::test_past_a_bound_the_next_batch_is_in_no_table_and_the_restart_delivers_everything_once",),
    ),
    Mutant(
        "carried-is-forgotten",
        "what is carried goes into the outbox of the next batch",
        "paimon_sink/commit/outbox.py",
        "        parts = (*self.parts, *carried)\n",
        "        parts = self.parts\n",
        (f"{REGIONS}::test_batches_that_were_carried_arrive_as_one_snapshot_with_all_rows_in_order",),
    ),
    Mutant(
        "silent-users-lose-what-they-carry",
        "who carries something stays in the ledger",
        "paimon_sink/commit/outbox.py",
        "                if not left:\n",
        "                if True:\n",
        (f"{REGIONS}::test_what_a_silent_user_carries_stays_in_the_ledger",),
    ),
    Mutant(
        "everything-is-carried",
        "only what ails one table is carried",
        OUTBOX,
        "        if self.is_regional and all(isinstance(reason, _CARRIED) for reason in failed.values()):\n",
        "        if self.is_regional:\n",
        (f"{REGIONS}::test_an_error_that_is_not_of_one_table_fails_the_batch",),
    ),
    Mutant(
        "share-of-the-last-batch",
        "the share is of the most tables that a batch had",
        "paimon_sink/core/regions.py",
        "    of = max(widest, len(batch | lacking.keys()))\n",
        "    of = len(batch | lacking.keys())\n",
        (f"{REGIONS}::test_bounds_hold_over_restarts_with_rows_for_few_tables",),
    ),
)
