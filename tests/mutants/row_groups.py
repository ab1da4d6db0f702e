"""Rules by which row groups, and files of old snapshots and ranges, are left out, switched off or turned wrong."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["ROW_GROUP_MUTANTS"]

GROUP_TESTS = "tests/formats/test_row_groups.py"
FILE_TESTS = "tests/formats/test_iceberg_file_bounds.py"
VERSION_TESTS = "tests/read/test_pruned_versions.py"

GROUPS = "paimon_sink/formats/row_groups.py"
ICEBERG = "paimon_sink/formats/iceberg/file_bounds.py"
ICEBERG_READ = "paimon_sink/formats/iceberg/read.py"
ICEBERG_SCANS = "paimon_sink/formats/iceberg/scans.py"

OUTSIDE = f"{GROUP_TESTS}::test_row_groups_without_such_a_value_are_left_out"
IN_A_TASK = f"{VERSION_TESTS}::test_a_task_leaves_out_row_groups_without_cutting_the_file"
RANGE = f"{VERSION_TESTS}::test_a_range_opens_only_files_that_may_hold_rows"
OLD = f"{VERSION_TESTS}::test_an_old_snapshot_is_pruned_by_the_columns_it_had"

ROW_GROUP_MUTANTS = (
    # ------------------------------------------------------------ row groups
    Mutant(
        "row-groups-are-added",
        "only row groups of the split are read",
        GROUPS,
        " if split.row_groups is None else split.row_groups\n",
        "\n",
        (f"{GROUP_TESTS}::test_of_the_row_groups_of_a_split_none_is_added",),
    ),
    Mutant(
        "row-groups-believe-any-decimal",
        "decimals in bytes are believed only where it is known how they are ordered",
        GROUPS,
        "        return not in_bytes or str(self._metadata.created_by).startswith(_ORDERS_BY_SIGN)\n",
        "        return True\n",
        (f"{GROUP_TESTS}::test_decimals_in_bytes_are_believed_only_where_it_is_known_how_they_are_ordered",),
    ),
    Mutant(
        "row-groups-forget-decimals",
        "decimals in integers are compared",
        GROUPS,
        "        if pa.types.is_decimal(kind) and isinstance(raw, int):\n",
        "        if kind is None:\n",
        (f"{GROUP_TESTS}::test_decimals_in_integers_are_compared",),
    ),
    Mutant(
        "row-groups-by-a-path-of-two",
        "a column with a dot in its name is not taken for a field of a struct",
        GROUPS,
        " if counts[path] == 1}\n",
        "}\n",
        (f"{GROUP_TESTS}::test_a_column_with_a_dot_is_not_taken_for_a_field_of_a_struct",),
    ),
    Mutant(
        "row-groups-by-name",
        "a column is looked for where it is in the file, whatever it is called there",
        GROUPS,
        "        field = self._schema.field(position)\n",
        "        field = self._schema.field(name)\n",
        (f"{GROUP_TESTS}::test_a_renamed_column_is_found_where_it_is_in_the_file",),
    ),
    Mutant(
        "row-groups-without-a-column-are-unknown",
        "a column that a file does not have is null in all its rows",
        GROUPS,
        "            return Bounds(null_count=rows, rows=rows)\n",
        "            return None\n",
        (f"{GROUP_TESTS}::test_a_column_that_the_file_does_not_have_is_null_in_every_row",),
    ),
    Mutant(
        "row-groups-without-bounds",
        "bounds in footers rule row groups out",
        GROUPS,
        "        if not found.has_min_max or",
        "        if found.has_min_max or",
        (OUTSIDE,),
    ),
    Mutant(
        "row-groups-take-the-highest-for-the-lowest",
        "the lower bound is the lowest value",
        GROUPS,
        'return _end(found, "min", kind),',
        'return _end(found, "max", kind),',
        (OUTSIDE,),
    ),
    Mutant(
        "splits-without-filters",
        "a split carries its filters to the task",
        "paimon_sink/read/scan.py",
        "replace(split, filters=filters)",
        "replace(split, filters=())",
        (IN_A_TASK,),
    ),
    # ------------------------------------------------------------ files of Iceberg
    Mutant(
        "iceberg-bounds-of-one-length",
        "bounds from before a column became wider are read",
        ICEBERG,
        '{8: "<q", 4: "<i"}',
        '{8: "<q"}',
        (f"{FILE_TESTS}::test_a_column_that_became_wider_keeps_the_bounds_of_older_files",),
    ),
    Mutant(
        "iceberg-instants-without-a-zone",
        "bounds of instants have a zone",
        ICEBERG,
        "_EPOCH.replace(tzinfo=UTC)",
        "_EPOCH",
        (f"{FILE_TESTS}::test_a_value_outside_of_the_bounds_is_not_there",),
    ),
    Mutant(
        "iceberg-counts-no-nulls",
        "counts of nulls rule files out",
        ICEBERG,
        "null_count=(file.null_value_counts or {}).get(field_id)",
        "null_count=None",
        (f"{FILE_TESTS}::test_nulls_are_counted",),
    ),
    Mutant(
        "iceberg-uncounted-nulls-are-none",
        "nulls that a file does not count may be there",
        ICEBERG,
        "null_count=(file.null_value_counts or {}).get(field_id)",
        "null_count=(file.null_value_counts or {}).get(field_id, 0)",
        (f"{FILE_TESTS}::test_a_file_that_says_nothing_of_a_column_may_hold_any_value",),
    ),
    Mutant(
        "iceberg-ranges-open-every-file",
        "a range opens only files that may hold rows",
        ICEBERG_SCANS,
        "[task for task in self._added(snapshot) if may_hold(task.file)]",
        "self._added(snapshot)",
        (RANGE,),
    ),
    Mutant(
        "iceberg-old-files-by-todays-columns",
        "files of an old snapshot are tested by the columns it had",
        ICEBERG_READ,
        "    may_hold = file_test(filters, native.schemas()[schema_id])\n",
        "    may_hold = file_test(filters, native.schema())\n",
        (OLD,),
    ),
    Mutant(
        "iceberg-plans-old-columns-as-todays",
        "pyiceberg, to which filters are on the columns of today, gets none on those of an old snapshot",
        ICEBERG_READ,
        " if schema_id == native.metadata.current_schema_id else []\n",
        "\n",
        (OLD,),
    ),
    Mutant(
        "iceberg-ranges-across-branches",
        "a range from a snapshot of another branch is not called expired",
        "paimon_sink/formats/iceberg/versions.py",
        "        if first is not None and self.is_first(snapshots[-1]):\n",
        "        if first is None:\n",
        ("tests/read/test_branches.py::test_a_range_from_another_branch_is_refused",),
    ),
)
