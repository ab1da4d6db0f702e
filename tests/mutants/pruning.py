"""Rules by which files are left out, switched off or turned wrong: each would lose rows, or rule nothing out."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["PRUNING_MUTANTS"]

BOUND_TESTS = "tests/formats/test_bounds.py"
PAIMON_TESTS = "tests/formats/test_paimon_pruning.py"
FILTER_TESTS = "tests/read/test_pruning.py"

BOUNDS = "paimon_sink/formats/bounds.py"
PAIMON = "paimon_sink/formats/paimon/pruning.py"
PAIMON_PREDICATES = "paimon_sink/formats/paimon/predicates.py"
ICEBERG = "paimon_sink/formats/iceberg/pruning.py"
FILTERS = "paimon_sink/read/pruning.py"

OUTSIDE = f"{BOUND_TESTS}::test_values_outside_of_the_bounds_are_not_there"
UNKNOWN = f"{BOUND_TESTS}::test_what_nobody_knows_rules_nothing_out"
ONLY_NULLS = f"{BOUND_TESTS}::test_a_column_of_nulls_meets_no_comparison"
INCOMPARABLE = f"{BOUND_TESTS}::test_values_that_cannot_be_compared_with_bounds_may_be_there"
CUT_OFF = f"{BOUND_TESTS}::test_a_text_that_is_longer_than_its_bounds_may_be_there"
BEGINNINGS = f"{BOUND_TESTS}::test_a_beginning_is_looked_for_between_the_bounds"
ALONE = f"{BOUND_TESTS}::test_one_value_alone_is_not_another"
JOINED_BOUNDS = f"{BOUND_TESTS}::test_filters_are_joined_as_they_say"

OURS = f"{PAIMON_TESTS}::test_a_file_is_left_out_only_where_its_statistics_rule_it_out"
PARTIAL = f"{PAIMON_TESTS}::test_rows_that_are_not_whole_in_one_file_are_kept"
LATER = f"{PAIMON_TESTS}::test_a_column_that_came_later_is_null_in_older_files"

MADE = f"{FILTER_TESTS}::test_a_filter_has_a_value_of_the_columns_own_type"
NONE_MADE = f"{FILTER_TESTS}::test_what_no_statistics_can_tell_makes_no_filter"
JOINED = f"{FILTER_TESTS}::test_filters_are_joined_as_the_conditions_are"
ALTERNATIVES = f"{FILTER_TESTS}::test_alternatives_plan_the_partitions_of_each"

PRUNING_MUTANTS = (
    # ------------------------------------------------------------ bounds
    Mutant(
        "bounds-know-nan",
        "NaN, which no bounds contain, is above all of them and unlike every number",
        BOUNDS,
        "    if isinstance(value, float) and comparison in _BEYOND_NAN:\n",
        "    if value is None and comparison in _BEYOND_NAN:\n",
        (INCOMPARABLE,),
    ),
    Mutant(
        "bounds-of-nan",
        "a bound that is NaN is none",
        BOUNDS,
        "        return not (math.isnan(end) or math.isnan(value))\n",
        "        return True\n",
        (INCOMPARABLE,),
    ),
    Mutant(
        "bounds-of-other-types",
        "a bound of another type than the value is none",
        BOUNDS,
        "    if type(end) is not type(value) or end is None:\n",
        "    if end is None:\n",
        (INCOMPARABLE,),
    ),
    Mutant(
        "bounds-count-unknown-nulls",
        "a count of nulls that is not known does not make a column of nulls",
        BOUNDS,
        "        return self.null_count is not None and self.null_count == self.rows\n",
        "        return self.null_count == self.rows\n",
        (UNKNOWN,),
    ),
    Mutant(
        "bounds-miss-unknown-nulls",
        "nulls that were not counted may be there",
        BOUNDS,
        "        return bounds.null_count != 0\n",
        "        return bool(bounds.null_count)\n",
        (UNKNOWN,),
    ),
    Mutant(
        "bounds-keep-columns-of-nulls",
        "a column of nulls meets no comparison",
        BOUNDS,
        "    if bounds.only_nulls:\n",
        "    if bounds is None:\n",
        (ONLY_NULLS,),
    ),
    Mutant(
        "bounds-look-below",
        "what is equal to the lower bound may be there",
        BOUNDS,
        "(low is None or low <= value) and",
        "(low is None or low < value) and",
        (OUTSIDE,),
    ),
    Mutant(
        "bounds-look-above",
        "what is equal to the upper bound may be there",
        BOUNDS,
        "            return high is None or bool(high >= value)\n",
        "            return high is None or bool(high > value)\n",
        (OUTSIDE,),
    ),
    Mutant(
        "bounds-are-values",
        "only a file with one value alone has none that differs from it",
        BOUNDS,
        "not (low == value == high)",
        "value not in (low, high)",
        (CUT_OFF,),
    ),
    Mutant(
        "bounds-never-equal",
        "a file with one value alone has none that differs from it",
        BOUNDS,
        "            return low is None or high is None or not (low == value == high)\n",
        "            return True\n",
        (ALONE,),
    ),
    Mutant(
        "bounds-begin-before",
        "a text that begins so may come after the lower bound",
        BOUNDS,
        "low[: len(value)] <= value",
        "low <= value",
        (BEGINNINGS,),
    ),
    Mutant(
        "bounds-end-after",
        "no text that begins so comes before it",
        BOUNDS,
        "<= value) and (high is None or value <= high)\n    raise",
        "<= value)\n    raise",
        (BEGINNINGS,),
    ),
    Mutant(
        "bounds-take-one-filter-for-all",
        "one alternative that may hold is enough",
        BOUNDS,
        "        return any(_may_hold(part, bounds_of) for part in pruning.parts)\n",
        "        return all(_may_hold(part, bounds_of) for part in pruning.parts)\n",
        (JOINED_BOUNDS,),
    ),
    # ------------------------------------------------------------ Paimon's files
    Mutant(
        "paimon-statistics-by-name",
        "the statistics of a renamed column are found by its id",
        PAIMON,
        "enumerate(stats.min_values.fields) if field.id == today.id)",
        "enumerate(stats.min_values.fields) if field.name == today.name)",
        (f"{PAIMON_TESTS}::test_a_renamed_column_is_found_by_its_id",),
    ),
    Mutant(
        "paimon-columns-by-name",
        "a column that was dropped and came again is another one",
        PAIMON,
        "for field in written if field.id == today.id)",
        "for field in written if field.name == today.name)",
        (f"{PAIMON_TESTS}::test_a_column_that_was_dropped_and_came_again_is_another_one",),
    ),
    Mutant(
        "paimon-statistics-of-another-type",
        "statistics of a column that had another type rule nothing out",
        PAIMON,
        "    if _type_text(then) != _type_text(today):\n",
        "    if then == 0:\n",
        (f"{PAIMON_TESTS}::test_a_column_of_another_type_then_rules_nothing_out",),
    ),
    Mutant(
        "paimon-later-columns-are-unknown",
        "a column that came later is null in older files",
        PAIMON,
        "        return Bounds(null_count=file.row_count, rows=file.row_count) if",
        "        return None if",
        (LATER,),
    ),
    Mutant(
        "paimon-later-columns-are-null",
        "a column that came later with a default is not known in older files",
        PAIMON,
        " if today.default_value is None else None\n",
        "\n",
        (f"{PAIMON_TESTS}::test_a_column_with_a_default_is_not_known_in_older_files",),
    ),
    Mutant(
        "paimon-prunes-what-is-merged",
        "a file whose rows are merged with others by key is kept",
        PAIMON,
        "    return not written.primary_keys and file.write_cols is None\n",
        "    return file.write_cols is None\n",
        (PARTIAL,),
    ),
    Mutant(
        "paimon-prunes-parts-of-rows",
        "a file with some columns of its rows is kept",
        PAIMON,
        "    return not written.primary_keys and file.write_cols is None\n",
        "    return not written.primary_keys\n",
        (PARTIAL,),
    ),
    Mutant(
        "paimon-prunes-padded-texts",
        "CHAR values rule no file out: not every writer pads them",
        PAIMON,
        " or _is_padded(schema.field(column)):\n",
        ":\n",
        (f"{PAIMON_TESTS}::test_a_char_that_is_padded_or_not_rules_nothing_out",),
    ),
    Mutant(
        "paimon-has-no-null-counts",
        "counts of nulls rule files out",
        PAIMON,
        "counts[position] if position < len(counts) else None",
        "None",
        (OURS,),
    ),
    Mutant(
        "paimon-partitions-lose-an-alternative",
        "an alternative that is not about partitions may be met in any of them",
        PAIMON_PREDICATES,
        " if len(known) == len(found) else None\n",
        "\n",
        (ALTERNATIVES,),
    ),
    # ------------------------------------------------------------ filters from conditions
    Mutant(
        "filters-lose-an-alternative",
        "alternatives of which one cannot be told rule nothing out",
        FILTERS,
        "    return AnyFilter(tuple(known)) if len(known) == len(parts) else None\n",
        "    return AnyFilter(tuple(known))\n",
        (NONE_MADE,),
    ),
    Mutant(
        "filters-not-of-all-is-all",
        "NOT of AND is OR of what is not so",
        FILTERS,
        "by_and=isinstance(tree, AllOf) != is_negated)",
        "by_and=isinstance(tree, AllOf))",
        (JOINED,),
    ),
    Mutant(
        "filters-forget-not",
        "NOT turns a comparison around",
        FILTERS,
        "is_negated=not is_negated)",
        "is_negated=is_negated)",
        (MADE,),
    ),
    Mutant(
        "filters-not-below-is-above",
        "NOT < is >=",
        FILTERS,
        "    Comparison.LT: Comparison.GE,\n",
        "    Comparison.LT: Comparison.GT,\n",
        (MADE,),
    ),
    Mutant(
        "filters-not-above-is-below",
        "NOT > is <=",
        FILTERS,
        "    Comparison.GT: Comparison.LE,\n",
        "    Comparison.GT: Comparison.LT,\n",
        (MADE,),
    ),
    Mutant(
        "filters-unlike-a-float",
        "NaN is unlike every number, and in no statistics",
        FILTERS,
        "_BEYOND_NAN = _ABOVE | {Comparison.NE}\n",
        "_BEYOND_NAN = _ABOVE\n",
        (NONE_MADE,),
    ),
    Mutant(
        "filters-in-with-null",
        "NOT IN with NULL in the list makes no filter",
        FILTERS,
        "Comparison.IN and not condition.has_null:\n",
        "Comparison.IN:\n",
        (NONE_MADE,),
    ),
    Mutant(
        "filters-nearly-equal",
        "a value between two of a column's own differs from all of them",
        FILTERS,
        "    exact = [value for value in condition.values if _at_scale(value, kind, ROUND_FLOOR) == value]\n",
        "    exact = list(condition.values)\n",
        (NONE_MADE,),
    ),
    # ------------------------------------------------------------ Iceberg's expressions
    Mutant(
        "iceberg-loses-an-alternative",
        "alternatives of which Arrow compares one otherwise are left to the rows",
        ICEBERG,
        "    if join == _ANY and len(known) < len(parts):\n",
        "    if join == _ANY and not known:\n",
        ("tests/read/test_where.py::test_a_file_that_pyiceberg_reads_gives_the_same_rows",),
    ),
    Mutant(
        "iceberg-takes-or-for-and",
        "alternatives are joined by OR",
        ICEBERG,
        "_ANY: Or}",
        "_ANY: And}",
        (ALTERNATIVES,),
    ),
)
