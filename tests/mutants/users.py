"""Protections of what people read: the cause of a failure, the figures of a history, and their terminal."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["USERS_MUTANTS"]

CAUSES = "tests/spark/test_causes.py"
SOURCE = "tests/spark/test_source.py"
HISTORY = "tests/maintain/test_history.py"
HISTORY_COMMAND = "tests/cli/test_history_command.py"
TERMINAL = "tests/cli/test_terminal.py"
CAUSE_OF = "paimon_sink/spark/causes.py"
FIGURES = "paimon_sink/maintain/history.py"
DOOR = "paimon_sink/cli/terminal.py"
COMMAND = "paimon_sink/cli/main.py"

USERS_MUTANTS = (
    Mutant(
        "quotation-is-a-cause",
        "only the line that a traceback ends with is taken for an error of ours",
        CAUSE_OF,
        r"last\):\n(?: .*\n)*",
        r"last\):\n(?:.*\n)*",
        (f"{CAUSES}::test_a_users_message_that_quotes_one_of_ours_is_not_mistaken",),
    ),
    Mutant(
        "any-text-is-a-cause",
        "only Spark carries errors as text",
        CAUSE_OF,
        '_SPARKS = ("pyspark.", "py4j.")',
        '_SPARKS = ("",)',
        (f"{CAUSES}::test_what_is_not_ours_has_no_cause_and_neither_has_nothing",),
    ),
    Mutant(
        "innermost-cause",
        "the outermost of our errors is told",
        CAUSE_OF,
        "raised = list(_RAISED.finditer(part))",
        "raised = list(_RAISED.finditer(part))[:1]",
        (f"{CAUSES}::test_the_outermost_of_ours_is_told",),
    ),
    Mutant(
        "cause-with-sparks-words",
        "a sentence of ours ends where Spark goes on",
        CAUSE_OF,
        r'r"\s+SQLSTATE: [0-9A-Z]{5}\b"',
        r'r"\s+SQLSTATE: none"',
        (f"{CAUSES}::test_class_and_sentence_are_told_whatever_spark_says_around_them",),
    ),
    Mutant(
        "cause-of-a-cut-chain",
        "a chain of exceptions that was cut is not followed",
        CAUSE_OF,
        "if not exception.__suppress_context__:",
        "if True:",
        (f"{CAUSES}::test_chains_of_exceptions_are_followed_unless_they_are_cut",),
    ),
    Mutant(
        "catalog-table-from-options",
        "no catalog table is created whose options nobody would ever see",
        "paimon_sink/spark/source.py",
        '        if str(self.options.get(_PROVIDER, "")).lower() == self.name():',
        '        if self.options.get(_PROVIDER) == "":',
        (f"{SOURCE}::test_the_columns_of_a_catalog_table_are_refused_with_both_forms_that_work",),
    ),
    Mutant(
        "followed-without-a-sentence",
        "a stream with wrong options is refused with a sentence that Spark does not hide",
        "paimon_sink/spark/source.py",
        "            return RefusedStreamReader(error)\n",
        "            raise error\n",
        (f"{SOURCE}::test_whatever_a_stream_with_wrong_options_asks_first_the_sentence_is_the_answer",),
    ),
    Mutant(
        "compacted-rows-written",
        "rows that a compaction rewrote are not written ones",
        FIGURES,
        "rows=0 if info.is_rewrite else rows,",
        "rows=rows,",
        (f"{HISTORY}::test_rows_that_a_compaction_rewrote_are_not_written_and_it_is_no_batch_of_anybody",),
    ),
    Mutant(
        "lag-since-a-compaction",
        "the lag of a batch is counted from the batch before",
        FIGURES,
        "if name is not None and not info.is_rewrite:",
        "if name is not None:",
        (f"{HISTORY}::test_rows_that_a_compaction_rewrote_are_not_written_and_it_is_no_batch_of_anybody",),
    ),
    Mutant(
        "paimon-compaction-is-a-batch",
        "a Paimon snapshot of the kind COMPACT brings no rows",
        "paimon_sink/formats/paimon/snapshots.py",
        '"COMPACT": SnapshotKind.REWRITE,',
        '"COMPACT": SnapshotKind.APPEND,',
        (f"{HISTORY_COMMAND}::test_rows_that_a_compaction_rewrote_are_not_counted_as_written",),
    ),
    Mutant(
        "iceberg-replace-is-a-batch",
        "an Iceberg snapshot of the operation replace brings no rows",
        "paimon_sink/formats/iceberg/snapshot_info.py",
        "Operation.REPLACE: SnapshotKind.REWRITE,",
        "Operation.REPLACE: SnapshotKind.APPEND,",
        (f"{HISTORY_COMMAND}::test_rows_that_a_compaction_rewrote_are_not_counted_as_written",),
    ),
    Mutant(
        "snapshot-ids-make-room",
        "the ids of snapshots are told whole, however narrow the terminal",
        "paimon_sink/cli/history/show.py",
        'Column("snapshot", [str(entry.snapshot_id) for entry in entries])',
        'Column("snapshot", [str(entry.snapshot_id) for entry in entries], leaves=10)',
        (f"{HISTORY_COMMAND}::test_the_ids_of_snapshots_are_told_whole",),
    ),
    Mutant(
        "names-break-lines",
        "a name of the table is on one line",
        DOOR,
        "renderable.plain = printable(renderable.plain)",
        "renderable.plain = printable_lines(renderable.plain)",
        (f"{TERMINAL}::test_what_stands_in_a_table_is_printed_without_what_a_terminal_acts_upon",),
    ),
    Mutant(
        "raw-characters-at-the-door",
        "whatever is rendered, nothing of it moves a terminal",
        DOOR,
        "segment._replace(text=printable_lines(segment.text))",
        "segment",
        (f"{TERMINAL}::test_text_keeps_its_styles_its_lines_and_its_letters",),
    ),
    Mutant(
        "raw-characters-in-errors",
        "an error that quotes a name of the table moves no terminal",
        COMMAND,
        "click.echo(printable_lines(str(error)), err=True)",
        "click.echo(str(error), err=True)",
        (f"{TERMINAL}::test_an_error_and_bad_usage_that_quote_a_name_of_the_table_move_nothing",),
    ),
    Mutant(
        "raw-characters-in-bad-usage",
        "bad usage that quotes a name of the table moves no terminal",
        COMMAND,
        "click.UsageError(printable_lines(error.message), ctx=error.ctx)",
        "click.UsageError(error.message, ctx=error.ctx)",
        (f"{TERMINAL}::test_an_error_and_bad_usage_that_quote_a_name_of_the_table_move_nothing",),
    ),
)
