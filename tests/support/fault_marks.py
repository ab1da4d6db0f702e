"""Which faults whole modules and single tests outside of ``tests/faults`` cover, beside the mark ``fault`` in them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

__all__ = ["COVERING", "mark_modules"]

COVERING: dict[str, tuple[int, ...]] = {
    "tests/commit/test_decide.py::test_a_batch_that_is_not_refused_gets_its_verdict": (10, 11, 12),
    "tests/commit/test_decide.py::test_a_refused_batch_is_refused_by_the_type_of_the_error": (8, 9, 10, 11, 12, 16),
    "tests/commit/test_decide.py::test_a_user_that_left_the_ledger_is_refused_where_nobody_knows_what_it_tried": (11,),
    "tests/commit/test_fold.py::test_a_missing_message_means_no_plan": (27,),
    "tests/commit/test_fold.py::test_messages_of_two_incarnations_of_the_table_are_refused": (31,),
    "tests/commit/test_fold.py::test_messages_of_two_queries_are_refused": (9,),
    "tests/commit/test_fold.py::test_a_file_outside_the_table_is_refused": (37,),
    "tests/core/test_columns.py": (36,),
    "tests/core/test_names.py": (37,),
    "tests/core/test_options.py": (35,),
    "tests/core/test_options_secrets.py": (40,),
    "tests/core/test_places.py": (35,),
    "tests/core/test_schema.py": (36,),
    "tests/formats/test_catalog_options.py": (35,),
    "tests/formats/test_iceberg_broken_files.py": (38,),
    "tests/formats/test_iceberg_catalogs.py::test_a_catalog_that_fails_is_a_sentence_without_secrets": (40,),
    "tests/formats/test_iceberg_commit.py::test_a_batch_is_in_once_whatever_happens_to_the_answers": (20, 22, 23),
    "tests/formats/test_iceberg_commit.py::test_a_batch_that_landed_and_left_no_trace_is_not_taken_for_lost": (11, 21),
    "tests/formats/test_iceberg_commit.py::test_a_catalog_that_never_answers_leaves_the_outcome_unknown_and_a_replay_"
    "settles_it": (24, 29),
    "tests/formats/test_iceberg_commit.py::test_a_change_that_would_lose_or_misplace_rows_is_refused": (32,),
    "tests/formats/test_iceberg_commit.py::test_a_message_that_cannot_be_read_is_refused": (39,),
    "tests/formats/test_iceberg_commit.py::test_a_message_whose_words_and_entry_disagree_is_found": (39,),
    "tests/formats/test_iceberg_commit.py::test_manifests_of_a_request_that_may_be_under_way_are_kept": (22,),
    "tests/formats/test_iceberg_ledger.py::test_a_batch_that_was_rolled_back_and_expired_is_not_taken_for_in": (11, 33),
    "tests/formats/test_iceberg_ledger.py::test_a_replay_is_known_after_every_snapshot_of_its_user_expired": (11,),
    "tests/formats/test_iceberg_ledger.py::test_a_silent_user_leaves_a_short_line_and_takes_it_back_when_it_comes_"
    "again": (11,),
    "tests/formats/test_iceberg_ledger.py::test_what_may_be_in_expired_history_is_refused_after_a_rollback": (11, 33),
    "tests/formats/test_iceberg_races.py": (14,),
    "tests/formats/test_iceberg_tasks.py::test_a_partition_value_too_long_for_a_directory_is_refused_by_name": (37,),
    "tests/formats/test_rest_catalog.py::test_an_error_after_the_commit_was_applied_is_committed_once": (20,),
    "tests/formats/test_rest_catalog.py::test_an_error_before_the_commit_is_applied_is_tried_again": (29,),
    "tests/formats/test_rest_catalog.py::test_errors_without_end_leave_the_outcome_unknown_and_a_replay_settles_it": (
        24,
        29,
    ),
    "tests/formats/test_rest_catalog.py::test_a_wrong_token_is_refused_without_quoting_it": (40,),
    "tests/spark/test_batch.py::test_a_rerun_of_a_named_batch_job_changes_nothing": (12,),
    "tests/spark/test_batch.py::test_runs_of_a_named_batch_job_are_written_once_in_whatever_order_they_come": (12,),
    "tests/spark/test_batch.py::test_only_the_attempts_that_won_leave_rows_and_files": (26,),
    "tests/spark/test_batch.py::test_a_write_with_a_task_that_fails_for_good_leaves_the_table_as_it_was": (27,),
    "tests/spark/test_batch.py::test_all_problems_with_the_options_are_said_at_once": (35,),
    "tests/spark/test_columns.py": (36,),
    "tests/spark/test_demo.py::test_the_demo_kills_the_driver_twice_and_finds_every_row_once": (2,),
    "tests/spark/test_sql.py::test_no_plan_of_an_attached_table_shows_a_secret": (40,),
    "tests/spark/test_sql.py::test_options_in_sql_text_are_redacted_in_plans": (40,),
    "tests/spark/test_sql.py::test_an_error_that_prints_the_plan_of_a_write_shows_no_secret": (40,),
    "tests/spark/test_sql.py::test_an_error_that_prints_the_plan_shows_no_query_string_of_a_location": (40,),
    "tests/spark/test_sql.py::test_no_plan_shows_the_address_of_a_catalog": (40,),
    "tests/spark/test_stream.py::test_batches_without_rows_make_no_snapshots": (6,),
    "tests/spark/test_stream.py::test_a_replay_after_a_run_of_empty_batches_is_not_committed_again": (1, 6),
    "tests/spark/test_stream.py::test_a_stream_without_tasks_makes_no_snapshot": (6,),
    "tests/spark/test_stream.py::test_two_queries_with_their_own_names_both_complete": (9,),
    "tests/spark/test_stream.py::test_a_second_query_under_the_name_of_a_live_one_is_refused": (9,),
    "tests/spark/test_stream.py::test_a_new_checkpoint_under_an_old_name_is_refused_until_it_takes_over": (8,),
    "tests/spark/test_stream.py::test_the_query_that_was_taken_over_is_refused": (8, 9),
    "tests/spark/test_stream.py::test_only_the_attempts_that_won_leave_rows_and_files": (26,),
    "tests/spark/test_stream.py::test_a_batch_with_a_task_that_fails_for_good_leaves_nothing_behind": (27,),
    "tests/spark/test_stream.py::test_the_batch_is_written_once_the_failure_is_mended": (27,),
    "tests/spark/test_stream_replay.py": (1,),
    "tests/spark/test_stream_replay.py::test_a_replay_with_another_number_of_tasks_is_not_committed_again": (5,),
    "tests/storage/test_exclusive_put.py::test_a_put_repeated_after_a_lost_answer_knows_its_own_first_try": (23,),
    "tests/storage/test_exclusive_put.py::test_a_put_that_meets_its_own_bytes_is_an_unknown_outcome": (23,),
    "tests/storage/test_local_store.py::test_a_link_repeated_by_nfs_knows_its_own_first_try": (23,),
    "tests/storage/test_opening_a_store.py::test_settings_never_show_their_secrets": (40,),
    "tests/storage/test_opening_a_store.py::test_errors_never_show_secrets": (40,),
    "tests/write/test_attempts.py": (3, 26),
    "tests/write/test_messages.py": (39,),
    "tests/write/test_messages.py::test_a_real_message_carries_no_value_of_any_option": (40,),
    "tests/write/test_partition_values.py": (37,),
}
"""A module, or one test of it, and its faults."""


def mark_modules(items: Iterable[pytest.Item]) -> None:
    for item in items:
        module = item.nodeid.split("::")[0]
        test = item.nodeid.split("[")[0]
        for key in dict.fromkeys((module, test)):
            if key in COVERING:
                item.add_marker(pytest.mark.fault(*COVERING[key]))
