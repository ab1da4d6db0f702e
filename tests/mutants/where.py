"""Protections of reads with conditions switched off: each would give other rows than Spark's own WHERE."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["WHERE_MUTANTS"]

CONDITIONS = "tests/core/test_conditions.py"
TREES = "tests/core/test_condition_trees.py"
FILTERS = "tests/read/test_pruning.py"
READS = "tests/read/test_where.py"

MEANING = "paimon_sink/core/conditions.py"
NAMES = "paimon_sink/core/condition_names.py"
LITERALS = "paimon_sink/core/condition_literals.py"
WORDS = "paimon_sink/core/condition_text.py"
PATTERNS = "paimon_sink/core/condition_patterns.py"
ROWS = "paimon_sink/core/condition_rows.py"
PRUNING = "paimon_sink/read/pruning.py"
ICEBERG_PRUNING = "paimon_sink/formats/iceberg/pruning.py"
ICEBERG_READ = "paimon_sink/formats/iceberg/read.py"
ICEBERG_PARTITIONS = "paimon_sink/formats/iceberg/partitions.py"
PAIMON_PREDICATES = "paimon_sink/formats/paimon/predicates.py"

REFUSED = f"{CONDITIONS}::test_what_spark_would_answer_otherwise_is_refused_by_name"
COMPARED = f"{CONDITIONS}::test_nan_infinities_and_zeros_are_compared_as_spark_does"
TYPED = f"{CONDITIONS}::test_a_literal_has_the_type_and_the_value_that_spark_gives_it"
NO_FILTER = f"{FILTERS}::test_what_no_statistics_can_tell_makes_no_filter"
THREE_VALUES = f"{TREES}::test_null_is_neither_true_nor_false"
BINDING = f"{TREES}::test_the_words_bind_as_they_do_in_spark"
BY_PYICEBERG = "tests/read/test_where.py::test_a_file_that_pyiceberg_reads_gives_the_same_rows"
SAME_ROWS = f"{READS}::test_the_rows_are_those_of_sparks_own_where"

WHERE_MUTANTS = (
    # ------------------------------------------------------------ rows
    Mutant(
        "where-tells-zeros-by-their-sign",
        "zeros of both signs are one value in a list",
        ROWS,
        "pc.add(column, 0.0), numbers",
        "column, numbers",
        (COMPARED,),
    ),
    Mutant(
        "where-nan-is-above-nothing",
        "NaN is above every number",
        ROWS,
        "        return pc.or_(met, is_nan) if comparison in (Comparison.GT, Comparison.GE) else met\n",
        "        return met\n",
        (COMPARED,),
    ),
    Mutant(
        "where-nan-equals-nothing",
        "NaN is equal to itself",
        ROWS,
        "    if not math.isnan(value):\n",
        "    if value is not None:\n",
        (COMPARED,),
    ),
    Mutant(
        "where-decimals-become-doubles-in-arrow",
        "decimals are rounded to doubles as Spark rounds them",
        ROWS,
        "        return column.cast(pa.string()).cast(domain)\n",
        "        return column.cast(domain)\n",
        (f"{CONDITIONS}::test_numbers_become_doubles_as_spark_rounds_them",),
    ),
    Mutant(
        "where-two-truth-values-in-or",
        "true OR null is true",
        ROWS,
        "pc.or_kleene",
        "pc.or_",
        (THREE_VALUES,),
    ),
    Mutant(
        "where-two-truth-values-in-and",
        "NOT (false AND null) is true",
        ROWS,
        "pc.and_kleene",
        "pc.and_",
        (THREE_VALUES,),
    ),
    Mutant(
        "where-null-is-false",
        "NOT of a comparison with a null column is null",
        ROWS,
        "    return pc.if_else(is_known, met, pa.scalar(None, pa.bool_()))\n",
        "    return pc.fill_null(pc.and_(is_known, met), False)\n",
        (THREE_VALUES,),
    ),
    Mutant(
        "where-a-null-literal-is-false",
        "NOT of a comparison with NULL is null",
        ROWS,
        "        return pa.nulls(len(column), pa.bool_())\n",
        "        return pa.repeat(pa.scalar(False), len(column))\n",
        (THREE_VALUES,),
    ),
    Mutant(
        "where-forgets-null-in-a-list",
        "NOT IN with NULL in the list gives no row",
        ROWS,
        " if condition.has_null else column.is_valid()",
        " if not condition.comparison else column.is_valid()",
        (THREE_VALUES,),
    ),
    Mutant(
        "where-sees-fields-of-null-structs",
        "a field of a null struct is null",
        ROWS,
        "pc.struct_field(column, indices=[column.type.get_field_index(name)])",
        "column.field(column.type.get_field_index(name))",
        (f"{TREES}::test_a_field_of_a_null_struct_is_null_even_if_arrow_has_a_value_there",),
    ),
    # ------------------------------------------------------------ words
    Mutant(
        "where-not-binds-loosely",
        "NOT binds closer than AND",
        WORDS,
        "else self._comparison()\n        return Not(part)",
        "else (self._all_of() if is_negated else self._comparison())\n        return Not(part)",
        (BINDING,),
    ),
    Mutant(
        "where-or-binds-closely",
        "AND binds closer than OR",
        WORDS,
        """        parts = self._joined("AND", self._negation)
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))
""",
        """        parts = self._joined("AND", lambda: AnyOf(tuple(self._joined("OR", self._negation))))
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))
""",
        (BINDING,),
    ),
    Mutant(
        "where-takes-any-pattern",
        "a pattern with a wildcard in the middle is refused",
        PATTERNS,
        "    if any(is_wildcard for _, is_wildcard in found):\n",
        "    if not pattern:\n",
        (REFUSED,),
    ),
    Mutant(
        "where-takes-escaped-wildcards-for-wildcards",
        "a backslash takes the meaning of a wildcard away",
        PATTERNS,
        "        yield str(escaped), False\n",
        "        yield str(escaped), True\n",
        (f"{TREES}::test_a_pattern_asks_for_a_beginning_or_for_the_whole",),
    ),
    Mutant(
        "where-pads-patterns-of-char",
        "the pattern of LIKE is not padded as a CHAR is",
        MEANING,
        "        (asked,),\n",
        "        (asked.ljust(length or 0),),\n",
        (f"{TREES}::test_a_pattern_meets_a_padded_char",),
    ),
    # ------------------------------------------------------------ meaning
    Mutant(
        "where-texts-against-numbers",
        "a text column is compared with texts alone",
        MEANING,
        "    if not pa.types.is_string(literal.type):\n",
        "    if literal.is_null:\n",
        (REFUSED,),
    ),
    Mutant(
        "where-takes-any-case",
        "a name that fits two columns by case is refused",
        NAMES,
        "    if len(similar) > 1:\n",
        "    if len(similar) > 2:\n",
        (REFUSED,),
    ),
    Mutant(
        "where-beyond-every-long",
        "whole numbers are not compared with what is beyond all of them",
        MEANING,
        "            _check_within_long(literals)\n",
        "            pass\n",
        (REFUSED,),
    ),
    Mutant(
        "where-rounds-decimals",
        "a comparison that takes too many digits is refused",
        MEANING,
        "    if precision > MAX_DIGITS:\n",
        "    precision = min(precision, MAX_DIGITS)\n    if False:\n",
        (REFUSED,),
    ),
    Mutant(
        "where-char-beside-null",
        "NULL in a list of CHAR values is refused",
        MEANING,
        "        if has_null:\n",
        "        if not literals:\n",
        (REFUSED,),
    ),
    Mutant(
        "where-char-between",
        "BETWEEN on a CHAR column, which Spark does not pad, is refused",
        MEANING,
        "        if written.is_bound:\n",
        "        if not literals:\n",
        (REFUSED,),
    ),
    Mutant(
        "where-in-any-session",
        "a session in which Spark means something else by the condition is refused",
        MEANING,
        "        if value is not None and value.lower() != _DEFAULTS[setting]:\n",
        "        if value == _DEFAULTS:\n",
        (f"{CONDITIONS}::test_a_condition_knows_the_settings_that_change_its_meaning",),
    ),
    Mutant(
        "where-keeps-backslashes",
        "escapes in texts are those of Spark's parser",
        LITERALS,
        "_ESCAPE.sub(_unescaped, body)",
        """body.replace("''", "'")""",
        (TYPED,),
    ),
    Mutant(
        "where-instants-without-offset",
        "a time without an offset is no instant",
        LITERALS,
        "    if has_offset != (zone is not None):\n",
        "    if zone == example:\n",
        (REFUSED,),
    ),
    Mutant(
        "where-numbers-touch-words",
        "a number that touches a word is none",
        WORDS,
        r"(?:[bB][dD]|[lLsSyYdDfF])?(?![\w.]))",
        "(?:[bB][dD]|[lLsSyYdDfF])?)",
        (REFUSED,),
    ),
    # ------------------------------------------------------------ pruning
    Mutant(
        "where-prunes-above-a-float",
        "statistics that know no NaN rule nothing out from below",
        PRUNING,
        "    if condition.comparison in _BEYOND_NAN or not all(",
        "    if not all(",
        (NO_FILTER,),
    ),
    Mutant(
        "where-prunes-between-floats",
        "a double between two floats is no bound of a float column",
        PRUNING,
        "    if kind != pa.float64() and not all(",
        "    if kind == pa.string() and not all(",
        (NO_FILTER,),
    ),
    Mutant(
        "where-prunes-nested-columns",
        "structs, lists and maps rule no file out",
        PRUNING,
        "    if types.is_nested(kind):\n",
        "    if types.is_null(kind):\n",
        (NO_FILTER,),
    ),
    Mutant(
        "where-prunes-padded-texts",
        "CHAR values rule no file out: not every writer pads them",
        PRUNING,
        ' or (limit is not None and limit[0] == "CHAR"):\n',
        ":\n",
        (NO_FILTER,),
    ),
    Mutant(
        "where-asks-pyiceberg-for-infinities",
        "pyiceberg is not asked for infinities and NaN",
        ICEBERG_PRUNING,
        "    return value is not None and not (isinstance(value, float) and not math.isfinite(value))\n",
        "    return value is not None\n",
        (f"{FILTERS}::test_infinities_and_nan_are_no_filters_of_iceberg",),
    ),
    Mutant(
        "where-lets-arrow-choose-floats",
        "rows of float columns are compared by us alone",
        ICEBERG_READ,
        "key=lambda task: task.file.file_path), for_rows(native, usable)\n",
        "key=lambda task: task.file.file_path), list(usable)\n",
        (BY_PYICEBERG,),
    ),
    Mutant(
        "where-trips-over-a-filter",
        "a filter that pyiceberg cannot evaluate does not pass for a broken table",
        ICEBERG_READ,
        "        if usable:\n",
        "        if usable is None:\n",
        (f"{FILTERS}::test_a_filter_that_pyiceberg_trips_over_does_not_pass_for_a_broken_table",),
    ),
    Mutant(
        "where-dotted-names-are-paths",
        "a column with a dot in its name is not looked for inside of another",
        ICEBERG_PRUNING,
        '    if "." in condition.column:\n',
        '    if ".." in condition.column:\n',
        (BY_PYICEBERG,),
    ),
    Mutant(
        "where-trusts-wrapped-partitions",
        "rows near the smallest number are looked for in all partitions of truncate",
        ICEBERG_PRUNING,
        " or _wraps(native, condition, kind):\n",
        ":\n",
        (f"{FILTERS}::test_rows_that_another_engine_put_into_a_wrapped_partition_are_read",),
    ),
    Mutant(
        "truncate-wraps-around",
        "a number that truncate takes below its type is refused",
        ICEBERG_PARTITIONS,
        "        if part.is_floor and pc.any(",
        "        if not part.column and pc.any(",
        (f"{FILTERS}::test_a_number_that_truncate_takes_below_its_type_is_refused",),
    ),
    Mutant(
        "where-prunes-float-partitions-of-paimon",
        "a partition of NaN is not ruled out by bounds that know no NaN",
        PAIMON_PREDICATES,
        " or pa.types.is_floating(kind):\n",
        ":\n",
        (f"{FILTERS}::test_float_partitions_of_another_engine_are_read_whole",),
    ),
)
