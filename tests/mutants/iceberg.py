"""The protections of Iceberg tables, switched off one by one."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["ICEBERG_MUTANTS"]

COMMITS = "tests/formats/test_iceberg_commit.py"
LEDGERS = "tests/formats/test_iceberg_ledger.py"

PREPARED = "paimon_sink/formats/iceberg/prepared.py"
BUILD = "paimon_sink/formats/iceberg/build.py"
ENTRIES = "paimon_sink/formats/iceberg/entries.py"
LEDGER = "paimon_sink/formats/iceberg/ledger.py"
CATALOGS = "paimon_sink/formats/iceberg/catalogs.py"

KEPT = "tests/formats/test_iceberg_kept.py"
REST = "tests/formats/test_iceberg_rest_snapshots.py"
KEPT_TEXT = "paimon_sink/formats/iceberg/kept_text.py"

BLOCKS = "tests/formats/test_iceberg_blocks.py"

ICEBERG_MUTANTS = (
    Mutant(
        "iceberg-last-block-forgotten",
        "a manifest is closed with all its entries written",
        "paimon_sink/formats/iceberg/blocks.py",
        "        yield writer\n        blocks.flush()\n",
        "        yield writer\n",
        (f"{BLOCKS}::test_readers_find_what_the_library_would_have_written",),
    ),
    Mutant(
        "iceberg-unknown-fields-lost",
        "what pyiceberg does not know of the metadata is kept",
        KEPT_TEXT,
        "        unknown = {key: value for key, value in found.items() if key not in plain and key not in after}\n",
        "        unknown: Json = {}\n",
        (f"{KEPT}::test_a_commit_leaves_what_pyiceberg_would_and_all_it_does_not_know",),
    ),
    Mutant(
        "iceberg-links-of-another-order",
        "parents are read off the text only where each snapshot has them where they are looked for",
        KEPT_TEXT,
        "        if all(count == self.text.count(key) for count, key in counts):\n",
        "        if matches:\n",
        (f"{KEPT}::test_whatever_stands_in_it_reads_as_pyiceberg_reads_it",),
    ),
    Mutant(
        "iceberg-escaped-names-absent",
        "a name that may be escaped is looked for in every snapshot",
        KEPT_TEXT,
        "        return not _NEVER_ESCAPED.fullmatch(text) or ",
        "        return ",
        (f"{KEPT}::test_a_name_that_engines_spell_differently_may_be_anywhere",),
    ),
    Mutant(
        "iceberg-removal-from-some-snapshots",
        "snapshots are removed from metadata that has all of them",
        CATALOGS,
        "files_on_record(self._known, slim_only=_only_adds(updates))",
        "files_on_record(self._known, slim_only=True)",
        (f"{KEPT}::test_what_a_newer_engine_wrote_is_there_after_our_commits",),
    ),
    Mutant(
        "iceberg-named-snapshots-for-all",
        "what a REST catalog left out is asked for before it counts as expired",
        CATALOGS,
        "rest=self._all_kept if self._has_named_only else None",
        "rest=None",
        (
            f"{REST}::test_a_replayed_batch_is_in_once_though_others_wrote_since",
            f"{REST}::test_history_and_reads_of_the_past_see_every_snapshot",
        ),
    ),
    Mutant(
        "iceberg-metadata-names-believed",
        "only metadata whose name never comes again is known without reading it",
        "paimon_sink/formats/iceberg/file_io.py",
        "        if _NEVER_AGAIN.search(file.location):\n",
        "        if True:\n",
        (
            "tests/formats/test_iceberg_catalogs.py::"
            "test_a_table_made_anew_under_the_old_name_of_its_metadata_is_not_taken_for_the_old_one",
        ),
    ),
    Mutant(
        "iceberg-false-conflict-believed",
        "a conflict is read back: it may be our own commit",
        PREPARED,
        "        if self._is_in(now.metadata):\n            return PutOutcome.LANDED\n",
        "",
        (f"{COMMITS}::test_a_batch_is_in_once_whatever_happens_to_the_answers",),
    ),
    Mutant(
        "iceberg-metadata-of-a-conflict-deleted",
        "a metadata file goes only once the commit is known not to be in",
        CATALOGS,
        "                raise CatalogConflictError(tuple(record.written)) from error\n",
        "                for location in record.written:\n"
        "                    table.io.delete(location)\n"
        "                raise CatalogConflictError(()) from error\n",
        (f"{COMMITS}::test_a_batch_is_in_once_whatever_happens_to_the_answers",),
    ),
    Mutant(
        "iceberg-base-not-required",
        "a commit is for the very snapshot it was built on",
        BUILD,
        '{"ref": self.branch, "snapshot-id": None if ref is None else ref.snapshot_id}',
        '{"ref": "nobody", "snapshot-id": None}',
        ("tests/faults/test_races.py::test_whatever_lands_between_look_and_put_costs_one_round_and_leaves_one_copy",),
    ),
    Mutant(
        "iceberg-manifests-deleted-under-way",
        "what a request without an answer names is kept",
        PREPARED,
        "        if not self.may_be_under_way:\n",
        "        if True:\n",
        (f"{COMMITS}::test_manifests_of_a_request_that_may_be_under_way_are_kept",),
    ),
    Mutant(
        "iceberg-lost-without-proof",
        "a put that left no trace is not taken for lost",
        PREPARED,
        "        if self._is_certainly_out(now.metadata):\n",
        "        if True:\n",
        (f"{COMMITS}::test_a_batch_that_landed_and_left_no_trace_is_not_taken_for_lost",),
    ),
    Mutant(
        "iceberg-property-believed-after-rollback",
        "a ledger line is checked against the snapshots of its branch",
        LEDGER,
        "        if is_cut_off and (lowest is None or abs(number) < lowest):\n",
        "        if is_cut_off:\n",
        (f"{LEDGERS}::test_a_batch_that_was_rolled_back_and_expired_is_not_taken_for_in",),
    ),
    Mutant(
        "iceberg-ledger-line-above-a-rollback-stays",
        "a ledger line of a batch that was rolled back is set right while the snapshots show it",
        LEDGER,
        "            return None if stored_entry in (None, entry) else _encoded(entry, metadata)\n",
        "            return None\n",
        (f"{LEDGERS}::test_the_last_batch_before_a_rollback_is_what_others_write_down",),
    ),
    Mutant(
        "iceberg-schema-not-required",
        "a schema that changes between look and put costs a round",
        BUILD,
        '            AssertCurrentSchemaId.model_validate({"current-schema-id": self._metadata.current_schema_id}),\n',
        "",
        (f"{COMMITS}::test_a_column_added_between_look_and_put_costs_a_round",),
    ),
    Mutant(
        "iceberg-partitioning-not-compared",
        "files of another partitioning are refused",
        ENTRIES,
        "        if seen.spec_id != spec_id:\n",
        "        if False:\n",
        (f"{COMMITS}::test_a_change_that_would_lose_or_misplace_rows_is_refused",),
    ),
    Mutant(
        "iceberg-message-not-compared",
        "a message means the same file in its words and in its entry",
        ENTRIES,
        "    if not is_data or named != described or (file.path, file.partition) != (path, labels):\n",
        "    if False:\n",
        (f"{COMMITS}::test_a_message_whose_words_and_entry_disagree_is_found",),
    ),
)
