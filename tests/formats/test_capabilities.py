"""Every row of docs/capabilities.md is held by tests: what a format says of itself is what it does."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import get_type_hints

import pytest

from paimon_sink.core.capabilities import Capabilities
from paimon_sink.formats.registry import BUILT_IN, FORMATS
from tests.support.lake import Lake, rows

ROOT = Path(__file__).parents[2]
OUTSIDE = "formats/test_formats_from_outside.py"
COLUMNS, READER = "spark/test_columns.py", "spark/test_reader.py"

HELD_BY: dict[str, tuple[str, ...]] = {
    "streams": ("spark/test_stream_replay.py::*", "spark/test_stream.py::*"),
    "overwrites": ("spark/test_batch.py::*",),
    "repeatable_jobs": ("faults/test_identity.py::test_batch_jobs_land_once_in_whatever_order_their_identifiers_come",),
    "sql": ("spark/test_sql.py::test_an_insert_overwrite_replaces_the_rows_of_the_view",),
    "filtered_reads": (
        f"{READER}::test_the_option_where_gives_the_rows_of_sparks_own_where",
        "read/test_pruning.py::*",
    ),
    "followed": ("spark/test_following.py::*", "faults/test_following.py::*"),
    "spark_pushdown": (f"{READER}::test_a_filtered_read_does_not_narrow_the_next_read_of_the_same_rows",),
    "statistics": ("write/test_statistics.py::*", "formats/test_iceberg_other_readers.py::*"),
    "partition_transforms": (
        f"{OUTSIDE}::test_branches_and_transforms_are_refused_exactly_where_the_capabilities_say_so",
        "formats/test_iceberg_tasks.py::*",
    ),
    "branches": (
        f"{OUTSIDE}::test_branches_and_transforms_are_refused_exactly_where_the_capabilities_say_so",
        "formats/test_iceberg_ledger.py::test_a_branch_has_its_own_rows_and_its_own_line_of_history",
        "formats/test_iceberg_ledger.py::test_paimon_has_no_branches_here",
    ),
    "lasting_ledger": (
        "formats/test_iceberg_ledger.py::test_a_replay_is_known_after_every_snapshot_of_its_user_expired",
        "faults/test_lost_ledger.py::*",
    ),
    "catalogs": ("formats/test_rest_catalog.py::*", "formats/test_iceberg_catalogs.py::*"),
    "tables_by_path": (f"{OUTSIDE}::test_a_table_by_its_path_alone_is_refused_exactly_where_the_capabilities_say_so",),
    "stores": ("storage/test_store_conformance.py::*", "storage/test_opening_a_store.py::*"),
    "alike_columns": (
        f"{COLUMNS}::test_columns_that_differ_only_in_case_are_kept_apart_when_the_session_minds_case",
        f"{COLUMNS}::test_a_table_with_columns_that_differ_only_in_case_is_created_when_the_session_minds_case",
    ),
    "read_schemas": (
        f"{READER}::test_some_columns_in_any_order_case_and_wider_type_can_be_read",
        f"{READER}::test_some_fields_of_a_struct_can_be_read_and_no_unknown_one_becomes_null",
    ),
    "verify": (
        "maintain/test_verify.py::test_a_whole_table_has_no_problems_and_its_figures_are_right",
        "formats/test_iceberg_audit.py::*",
    ),
    "expiry": ("maintain/test_expire.py::test_what_stays_reads_as_before_and_what_goes_is_gone",),
    "clean": ("maintain/test_clean.py::test_what_the_dead_left_goes_and_all_else_stays",),
    "deletes": (
        "maintain/test_delete.py::test_random_tables_less_random_conditions",
        "faults/test_deleting.py::*",
        "spark/test_delete.py::*",
    ),
    "replace_where": (
        "faults/test_deleting.py::*",
        "spark/test_delete.py::test_a_day_is_replaced_once_by_the_writer_and_in_sql",
    ),
    "compaction": (
        "maintain/test_compact.py::test_files_are_about_the_target_size_and_as_many_as_that_takes",
        "spark/test_compact.py::*",
    ),
    "watermarks": ("formats/test_watermark.py::test_it_stands_where_engines_of_the_format_look_for_it",),
    "mark_done": (
        "listen/test_mark_done.py::test_a_partition_is_marked_once_the_watermark_is_past_its_end_and_the_idle_time",
    ),
    "done_partitions": (
        "listen/test_mark_done.py::test_done_partition_adds_it_to_the_list_of_a_rest_catalog",
        "listen/test_mark_done.py::test_a_catalog_without_a_list_is_refused_before_the_first_row",
    ),
    "erased": ("maintain/test_erased.py::test_rows_that_an_overwrite_took_out_are_found_in_the_snapshots_before_it",),
    "rollback": ("maintain/test_rollback.py::test_the_ledger_says_afterwards_what_the_plan_said",),
    "tags": (
        "maintain/test_people_tags.py::test_any_snapshot_that_stands_can_have_a_tag_and_stays",
        "listen/test_tags.py::test_hours_get_their_tags_and_so_many_stay",
        "listen/test_tags.py::test_by_the_clock_a_day_gets_its_tag_with_the_first_batch",
    ),
    "table_kinds": ("formats/test_paimon_refused_features.py::test_a_plain_table_made_by_another_engine_is_written",),
    "keyed_tables": (
        "formats/test_paimon_refused_features.py::test_an_existing_table_with_a_feature_we_cannot_write_is_refused",
        "formats/test_paimon_refused_features.py::test_a_table_with_a_primary_key_is_not_created",
    ),
    "other_versions": ("formats/test_iceberg_tasks.py::test_a_table_we_cannot_write_is_refused_by_name",),
    "data_elsewhere": ("formats/test_iceberg_tasks.py::test_a_table_we_cannot_write_is_refused_by_name",),
    "position_deletes": ("formats/test_iceberg_reader.py::test_rows_that_another_engine_deleted_are_gone",),
    "equality_deletes": ("formats/test_iceberg_reader.py::*",),
    "routing": ("faults/test_routes.py::*", "sink/test_routes.py::*", "spark/test_routes.py::*"),
    "quarantine": ("faults/test_quarantine.py::*", "faults/test_requeue.py::*", "spark/test_quarantine.py::*"),
    "merge_schema": (
        "formats/test_evolution.py::*",
        "spark/test_changing.py::test_a_job_adds_the_columns_and_nested_fields_that_its_rows_have",
        "formats/test_rest_catalog.py::test_columns_are_not_changed_through_a_rest_catalog",
    ),
}
"""By feature; a star stands for the whole file, where each of its tests is about it."""


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def features() -> set[str]:
    hints = get_type_hints(Capabilities, include_extras=True)
    return {name for name, hint in hints.items() if hasattr(hint, "__metadata__")}


def test_every_feature_is_held_by_tests_and_no_test_is_named_for_one_that_is_gone() -> None:
    assert HELD_BY.keys() == features()


@pytest.mark.parametrize("feature", sorted(HELD_BY))
def test_the_tests_that_hold_a_feature_are_there(feature: str) -> None:
    for node in HELD_BY[feature]:
        file, _, name = node.partition("::")
        assert names_in(file) if name == "*" else name in names_in(file), f"{node} is not there"


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_a_format_has_is_a_feature_with_a_text(name: str) -> None:
    for feature in features():
        value = getattr(FORMATS[name], feature)
        assert isinstance(value.text, str)
        assert not (value and not value.text), f"{name} has {feature} and does not say how much of it"


def test_a_table_says_what_its_format_can_do(lake: Lake) -> None:
    lake.append(0, rows(1))

    assert lake.open().capabilities == FORMATS[lake.format]
