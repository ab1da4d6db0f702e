"""Guards of streams that follow a table, switched off: each would lose, double or mistake rows."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["FOLLOWING_MUTANTS"]

FAULTS = "tests/faults/test_following.py"
FOLLOW = "tests/follow/test_following.py"
MODEL = "tests/follow/test_model.py"

ENUMERATOR = "paimon_sink/follow/enumerator.py"
PLANS = "paimon_sink/follow/plans.py"

CALM = f"{MODEL}::test_every_row_once_where_the_table_only_grows_and_is_kept_in_order"
WILD = f"{MODEL}::test_every_row_once_or_a_named_stop_whatever_happens_to_the_table"
ROLLED_BACK = f"{FAULTS}::test_a_table_that_was_rolled_back_below_the_stream_is_named_however_far_it_grew_again"

FOLLOWING_MUTANTS = (
    Mutant(
        "follow-index-off-by-one",
        "a batch begins with the file that the one before ended at",
        PLANS,
        "        for number in range(start[0], min(end[0] + 1, len(files))):\n",
        "        for number in range(start[0] + bool(start[0]), min(end[0] + 1, len(files))):\n",
        (CALM,),
    ),
    Mutant(
        "follow-seal-unchecked-in-memory",
        "a snapshot number that came again after a rollback is noticed",
        "paimon_sink/formats/memory/lineage.py",
        "            if found.commit_id != mark.seal:\n                raise rolled_back",
        "            if found.commit_id != mark.seal and not found:\n                raise rolled_back",
        (WILD, ROLLED_BACK),
    ),
    Mutant(
        "follow-seal-unchecked-in-paimon",
        "a snapshot number that came again after a rollback is noticed (Paimon)",
        "paimon_sink/formats/paimon/lineage.py",
        "            if _seal(found) != mark.seal:\n                raise rolled_back",
        "            if _seal(found) != mark.seal and not found:\n                raise rolled_back",
        (ROLLED_BACK,),
    ),
    Mutant(
        "follow-pin-after-the-plan",
        "snapshots are held before anything is planned",
        ENUMERATOR,
        "        self._trying(lambda: self._pin.hold(self._named(end), begin.mark))\n"
        "        reached(Step.PINNED)\n"
        "        found = self._trying(lambda: self._between(begin, end))\n",
        "        reached(Step.PINNED)\n"
        "        found = self._trying(lambda: self._between(begin, end))\n"
        "        self._trying(lambda: self._pin.hold(self._named(end), begin.mark))\n",
        (f"{FAULTS}::test_a_hold_is_written_before_anything_is_planned",),
    ),
    Mutant(
        "follow-begin-found-again",
        "where a stream began is what its first offset says, and not looked for again",
        ENUMERATOR,
        "        begin = start if start is not None and start.origin == end.origin else _beginning(end)\n",
        "        begin = start if start is not None and start.origin == end.origin else self._begin(self._look())\n",
        (
            f"{FAULTS}::test_a_batch_that_was_logged_has_the_same_rows_after_the_table_grew",
            f"{FAULTS}::test_a_stream_of_what_comes_keeps_its_anchor_through_a_restart",
        ),
    ),
    Mutant(
        "follow-from-nowhere",
        "a batch whose end was found without knowing its begin is not read",
        ENUMERATOR,
        "        if start is not None and start.key != end.key:\n",
        "        if start is not None and not end.key:\n",
        ("tests/spark/test_source.py::test_a_stream_of_spark_41_that_does_not_know_its_place_reads_nothing",),
    ),
    Mutant(
        "follow-limits-at-a-replay",
        "a batch that was logged is planned whole, whatever the limits are now",
        ENUMERATOR,
        "                place = (end.file, end.group) if is_last else (len(files), 0)\n",
        "                most = self._follow.max_files or 1000\n"
        "                place = (min(end.file, most), end.group) if is_last else (len(files), 0)\n",
        (f"{FAULTS}::test_a_batch_planned_again_with_other_limits_is_what_was_logged",),
    ),
    Mutant(
        "follow-changes-passed-over",
        "a snapshot that took rows out ends the stream, unless such are passed over",
        ENUMERATOR,
        "        if added.took_rows_out and not self._read.skip_change_commits:\n",
        "        if added.took_rows_out and self._read.skip_change_commits is None:\n",
        (f"{FAULTS}::test_rows_taken_out_are_named_or_passed_over_and_the_appends_around_come_once",),
    ),
    Mutant(
        "follow-new-columns-unseen",
        "a snapshot with columns that the DataFrame does not know ends the stream",
        ENUMERATOR,
        "        if snapshot.schema_id > self._frame.newest_schema_id:\n",
        "        if snapshot.schema_id > self._frame.newest_schema_id + 9:\n",
        (f"{FAULTS}::test_a_column_added_in_the_middle_stops_the_stream_between_and_a_restart_reads_both_sides_whole",),
    ),
    Mutant(
        "follow-bound-not-fixed",
        "a bounded run ends where the table was when it began",
        ENUMERATOR,
        "        if self._target is None:\n            newest = line.newest()\n",
        "        if self._is_bounded:\n            newest = line.newest()\n",
        (f"{FOLLOW}::test_a_bounded_run_ends_where_the_table_was_when_it_began",),
    ),
    Mutant(
        "follow-polls-without-rest",
        "an idle stream asks the table once a poll interval",
        ENUMERATOR,
        "            if idle == start and now_ms - since_ms < self._follow.poll_ms:\n",
        "            if idle == start and now_ms < since_ms:\n",
        (f"{FAULTS}::test_an_idle_stream_looks_at_the_table_once_a_poll_interval",),
    ),
    Mutant(
        "follow-groups-cut-again",
        "a piece of a file is cut into its own row groups alone",
        "paimon_sink/formats/row_groups.py",
        "        return split.row_groups\n",
        "        return None\n",
        ("tests/read/test_balance.py::test_a_piece_of_a_file_is_cut_into_its_own_row_groups_alone",),
    ),
    Mutant(
        "follow-consumer-of-another",
        "no two queries follow a table under one name",
        "paimon_sink/follow/pin.py",
        "        if there is None or there.key == wanted.key or there.is_dead(self.clock.now_ms()):\n",
        "        if there is None or there.key != wanted or there.is_dead(self.clock.now_ms()):\n",
        (f"{FAULTS}::test_a_second_query_under_one_consumer_is_refused",),
    ),
    Mutant(
        "follow-paimon-expiry-looks-once",
        "expiry looks for consumers again before each snapshot it removes",
        "paimon_sink/formats/paimon/expiry.py",
        "            if any(number <= each.snapshot.id for number in consumed):\n",
        "            if any(number < 0 for number in consumed):\n",
        (f"{FAULTS}::test_an_expiry_that_was_under_way_looks_for_new_streams_before_each_snapshot",),
    ),
    Mutant(
        "follow-iceberg-keeps-the-tag-alone",
        "expiry keeps all that came after the snapshot of a consumer",
        "paimon_sink/formats/iceberg/consumers.py",
        "            needed |= set(line[: oldest + 1])\n",
        "            needed |= set(line[oldest:1])\n",
        (f"{FAULTS}::test_a_silent_query_that_lives_keeps_its_hold",),
    ),
    Mutant(
        "follow-begin-not-held",
        "where a new stream begins is held before its first offset is logged",
        "paimon_sink/follow/pin.py",
        "        if not self._is_wanted(begin) or begin.mark is None or self.consumers is None:\n",
        "        if not self._is_wanted(begin) or begin.mark is None or self.consumers is not None:\n",
        (f"{FAULTS}::test_an_expiry_while_a_stream_starts_leaves_it_its_snapshot",),
    ),
    Mutant(
        "follow-begin-held-for-good",
        "what was held for a stream that never was goes soon",
        "paimon_sink/follow/pin.py",
        "        keep_ms = min(self.keep_ms, _FOR_NOW_MS)\n",
        "        keep_ms = max(self.keep_ms, _FOR_NOW_MS)\n",
        (f"{FAULTS}::test_what_a_stream_held_that_died_before_its_first_offset_was_logged_goes_soon",),
    ),
    Mutant(
        "follow-iceberg-tag-is-a-rollback",
        "a snapshot that only a tag of ours keeps was not rolled back",
        "paimon_sink/formats/iceberg/lineage.py",
        "        if oldest is None or age_of(oldest) <= age or",
        "        if oldest is None or self._native.metadata.snapshot_by_id(mark.snapshot_id) is not None or",
        (f"{FAULTS}::test_a_stream_is_told_what_happened_when_an_engine_expired_all_but_its_tag",),
    ),
    Mutant(
        "follow-iceberg-rollback-is-a-loss",
        "rows from before a rollback are not delivered again where losses are accepted",
        "paimon_sink/formats/iceberg/lineage.py",
        "        if oldest is None or age_of(oldest) <= age or",
        "        if oldest is None or",
        (f"{FAULTS}::test_a_rollback_whose_snapshots_expired_is_no_loss_to_accept",),
    ),
    Mutant(
        "follow-iceberg-rollback-unread-in-the-log",
        "a rollback is told by the log where what came right after it has expired, too",
        "paimon_sink/formats/iceberg/lineage.py",
        " or self._versions.was_taken_back(mark.snapshot_id, age=age):\n",
        ":\n",
        (f"{FAULTS}::test_a_rollback_is_told_by_the_log_where_what_came_after_it_expired",),
    ),
    Mutant(
        "follow-plan-of-what-was-seen",
        "the first snapshot of a batch is asked for again when the batch is planned",
        ENUMERATOR,
        "            walked = None if snapshot is None else self._walked.get(cursor.mark)\n",
        "            walked = self._walked.get(cursor.mark)\n",
        (f"{FAULTS}::test_what_expired_between_a_look_and_the_plan_of_its_batch_is_no_shorter_batch",),
    ),
    Mutant(
        "follow-errors-ahead-of-their-turn",
        "what is wrong with a snapshot does not keep back the rows before it",
        PLANS,
        "            except (PwcError, OSError):\n                # An error when it is its turn.\n",
        "            except RecursionError:\n                # An error when it is its turn.\n",
        ("tests/follow/test_far.py::test_what_comes_before_a_broken_manifest_is_delivered",),
    ),
    Mutant(
        "follow-name-looked-at-once",
        "of two queries that took one name at the same time one is stopped",
        "paimon_sink/follow/pin.py",
        "        self._check_ours(consumer)\n        if",
        "        if self.held is None:\n            self._check_ours(consumer)\n        if",
        (f"{FAULTS}::test_of_two_queries_that_took_one_name_at_the_same_time_one_is_stopped",),
    ),
    Mutant(
        "follow-end-not-confirmed",
        "a batch is of one line, also where the table is rolled back while it is planned",
        ENUMERATOR,
        "        if end.mark is not None:\n            line.confirm(end.mark)\n",
        "",
        (f"{FAULTS}::test_a_batch_is_never_planned_from_before_and_after_a_rollback",),
    ),
)
