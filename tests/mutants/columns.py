"""Protections of writers that change columns, switched off."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["COLUMN_MUTANTS"]

RULES = "tests/core/test_evolve.py"
FAULTS = "tests/faults/test_columns.py"
FORMATS = "tests/formats/test_evolution.py"
COMMAND = "tests/cli/test_schema_command.py"
EVOLVE = "paimon_sink/core/evolve.py"
LOOP = "paimon_sink/formats/evolving.py"
PAIMON = "paimon_sink/formats/paimon/evolution.py"
ICEBERG = "paimon_sink/formats/iceberg/evolution.py"
SCHEMA = "paimon_sink/core/schema.py"

COLUMN_MUTANTS = (
    Mutant(
        "columns-narrow",
        "a whole number becomes no narrower one",
        EVOLVE,
        "        return _INTEGERS.index(mine) > _INTEGERS.index(theirs)\n",
        "        return mine != theirs\n",
        (f"{RULES}::test_a_type_meets_a_type",),
    ),
    Mutant(
        "columns-rescale",
        "a decimal keeps its scale",
        EVOLVE,
        "        return bool(mine.scale == theirs.scale and theirs.precision < mine.precision <= _MOST_DIGITS)\n",
        "        return bool(theirs.precision < mine.precision <= _MOST_DIGITS)\n",
        (f"{RULES}::test_a_type_meets_a_type", f"{RULES}::test_a_column_that_a_table_is_partitioned_by_keeps_its_type"),
    ),
    Mutant(
        "columns-lose-not-null",
        "a column that is widened stays not null",
        EVOLVE,
        "    return pa.field(table.name, wider.type, table.nullable, {**said, **(_said(wider) or {})})\n",
        "    return pa.field(table.name, wider.type, True, {**said, **(_said(wider) or {})})\n",
        (f"{RULES}::test_a_type_meets_a_type",),
    ),
    Mutant(
        "columns-not-nullable",
        "a new column is nullable",
        EVOLVE,
        "        new = pa.field(incoming.name, _optional(incoming.type), nullable=True, metadata=_said(incoming))\n",
        "        new = pa.field(incoming.name, incoming.type, incoming.nullable, metadata=_said(incoming))\n",
        (f"{RULES}::test_new_columns_come_last_and_are_nullable_with_all_that_is_in_them",),
    ),
    Mutant(
        "columns-widen-partitions",
        "a column that a table is partitioned by keeps its type",
        EVOLVE,
        "    elif path in rules.fixed:\n",
        "    elif False:\n",
        (f"{RULES}::test_a_column_that_a_table_is_partitioned_by_keeps_its_type",),
    ),
    Mutant(
        "columns-alike",
        "a name that differs in case alone makes no column",
        EVOLVE,
        "        elif there := [name for name in known if name.lower() == each.name.lower()]:\n",
        "        elif there := [name for name in known if name == each.name]:\n",
        (f"{RULES}::test_names",),
    ),
    Mutant(
        "columns-change-keys",
        "the keys of a map stay",
        EVOLVE,
        "        if cast_problem(mine.key_type, theirs.key_type) is not None:\n",
        "        if False:\n",
        (f"{RULES}::test_the_keys_of_a_map_stay",),
    ),
    Mutant(
        "columns-widen-unasked",
        "types are widened only when somebody says so",
        EVOLVE,
        "    elif rules.widen:\n",
        "    elif True:\n",
        (f"{RULES}::test_a_type_meets_a_type",),
    ),
    Mutant(
        "columns-half-done",
        "where one change is refused, none is made",
        EVOLVE,
        "    if refused:\n        raise SchemaMismatchError",
        "    if len(refused) == len(found):\n        raise SchemaMismatchError",
        (f"{FORMATS}::test_a_change_that_is_refused_leaves_the_table_as_it_is",),
    ),
    Mutant(
        "columns-answer-believed",
        "whether a change without an answer is in, the table tells",
        LOOP,
        "            if unknown >= _UNKNOWN_ANSWERS:\n",
        "            if True:\n",
        (f"{FAULTS}::test_a_change_without_an_answer_is_settled_by_reading_back",),
    ),
    Mutant(
        "columns-checked-late",
        "what a format has no room for is refused before anything is changed",
        LOOP,
        "    evolution.check(changes)\n",
        "",
        (f"{FORMATS}::test_what_a_format_has_no_room_for_is_refused_before_anything_is_changed",),
    ),
    Mutant(
        "columns-changed-before-refusal",
        "an event time that does not fit is refused before anything is changed",
        "paimon_sink/sink.py",
        "        event_time_of(self.options.write, columns, table=table.label, case_sensitive=case_sensitive)\n",
        "        reopen = partial(self._open_to_write, written, case_sensitive=case_sensitive)\n"
        "        change_columns(table, reopen=reopen, needed=lambda found: self._needed(found, written))\n"
        "        event_time_of(self.options.write, columns, table=table.label, case_sensitive=case_sensitive)\n",
        (f"{FORMATS}::test_nothing_is_changed_where_the_event_time_is_refused",),
    ),
    Mutant(
        "columns-changed-unplanned",
        "a write that nobody planned is refused before it changes anything",
        "paimon_sink/sink.py",
        "            table = self._evolved(table, schema, written, case_sensitive=task.case_sensitive)\n",
        "            reopen = partial(self._open_to_write, written, case_sensitive=task.case_sensitive)\n"
        "            table = change_columns(table, reopen=reopen, needed=lambda found: self._needed(found, written))\n",
        (f"{FORMATS}::test_a_write_that_nobody_planned_changes_nothing_where_it_is_refused",),
    ),
    Mutant(
        "paimon-columns-overwritten",
        "a schema file is put only if there is none (Paimon)",
        PAIMON,
        "        return handle.store.put_if_absent(schemas.path(handle.schema_id + 1), data)\n",
        "        handle.store.write(schemas.path(handle.schema_id + 1), data)\n        return True\n",
        (f"{FAULTS}::test_a_column_that_another_writer_adds_before_our_put_is_kept",),
    ),
    Mutant(
        "paimon-columns-share-ids",
        "new fields get ids that no other has (Paimon)",
        PAIMON,
        '    ids = AtomicInteger(max([int(after["highestFieldId"]), *_ids(after["fields"])]))\n',
        '    ids = AtomicInteger(len(after["fields"]) - 1)\n',
        (f"{FORMATS}::test_ids_are_the_formats_own_and_never_given_twice",),
    ),
    Mutant(
        "iceberg-columns-asserted",
        "columns are changed only if they are still what they were (Iceberg)",
        ICEBERG,
        '        AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),\n'
        '        AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": metadata.last_column_id}),\n',
        "",
        (f"{FAULTS}::test_a_column_that_another_writer_adds_before_our_put_is_kept",),
    ),
    Mutant(
        "iceberg-columns-of-partitions",
        "columns that a table is partitioned by are known (Iceberg)",
        ICEBERG,
        '            **dict.fromkeys(sources, "the table is or was partitioned by it"),\n',
        "",
        (f"{FORMATS}::test_a_partition_column_keeps_its_type_and_others_of_a_partitioned_table_do_not",),
    ),
    Mutant(
        "paimon-files-of-before-a-widening",
        "a batch of before a widening fits (Paimon)",
        "paimon_sink/formats/paimon/schemas.py",
        "        return old.type.upper() == new.type.upper() or _is_wider(old, new)\n",
        "        return old.type.upper() == new.type.upper()\n",
        (f"{FORMATS}::test_a_batch_of_before_a_widening_is_committed_after_it",),
    ),
    Mutant(
        "structs-by-position",
        "fields of structs are matched by their names",
        SCHEMA,
        "in_order_of(array, column.cast_type).cast(",
        "array.cast(",
        (f"{FORMATS}::test_a_struct_is_written_by_the_names_of_its_fields",),
    ),
    Mutant(
        "structs-of-files-by-name",
        "a name in a file may be an old one",
        SCHEMA,
        "    if not by_name or not is_whole",
        "    if not is_whole",
        ("tests/core/test_schema.py::test_fields_are_matched_by_name_for_rows_and_not_for_files",),
    ),
    Mutant(
        "schema-command-without-yes",
        "without --yes nothing is changed",
        "paimon_sink/cli/schema/command.py",
        "    if yes and changes:\n",
        "    if changes:\n",
        (f"{COMMAND}::test_without_yes_the_changes_are_shown_and_not_made",),
    ),
)
