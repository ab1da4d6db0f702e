"""Protections of expiry and cleaning."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["MAINTENANCE_MUTANTS"]

EXPIRE = "tests/maintain/test_expire.py"
CLEAN = "tests/maintain/test_clean.py"
STORIES = f"{EXPIRE}::test_what_stays_reads_as_before_and_what_goes_is_gone"
DEATHS = f"{EXPIRE}::test_after_a_death_before_any_deletion_the_table_is_whole_and_the_next_run_finishes"
OLD_BATCHES = f"{CLEAN}::test_a_batch_of_old_files_is_in_whole_or_not_at_all"

PAIMON = "paimon_sink/formats/paimon/expiry.py"
ICEBERG = "paimon_sink/formats/iceberg/expiry.py"
LEDGER = "paimon_sink/formats/iceberg/ledger.py"
CLEANING = "paimon_sink/maintain/clean.py"
PRESENCE = "paimon_sink/commit/presence.py"

OWN = "tests/maintain/test_own_retention.py"

MAINTENANCE_MUTANTS = (
    Mutant(
        "expiry-by-who-only-writes",
        "a table that is only written to is expired by others",
        "paimon_sink/formats/paimon/retention.py",
        "    if options.get(_WRITE_ONLY",
        "    if False and options.get(_WRITE_ONLY",
        (f"{OWN}::test_who_only_writes_expires_nothing",),
    ),
    Mutant(
        "expiry-from-its-own-time",
        "by its table a snapshot stays for so long after another took its place",
        "paimon_sink/maintain/expire.py",
        "pairwise(snapshots) if retention.from_next else",
        "pairwise(snapshots) if False else",
        (f"{OWN}::test_the_same_snapshots_go_as_in_java",),
    ),
    Mutant(
        "expiry-never-means-nothing",
        "never removes none, whatever the table says",
        "paimon_sink/maintain/after_commit.py",
        "    if options.expire_older_than_ms == NEVER_MS:\n        return\n"
        "    if options.expire_older_than_ms is not None:\n",
        "    if options.expire_older_than_ms not in (None, NEVER_MS):\n",
        (f"{OWN}::test_there_are_ways_to_keep_them",),
    ),
    Mutant(
        "expiry-takes-the-ledger",
        "the newest snapshot with a ledger stays",
        PAIMON,
        "self._newest_ledger(newest), ",
        "",
        (f"{EXPIRE}::test_the_ledger_below_snapshots_of_other_engines_is_not_lost",),
    ),
    Mutant(
        "expiry-passes-consumers",
        "what a consumer has not read stays",
        PAIMON,
        ", *_consumed(self.handle, now_ms=now_ms)])",
        "])",
        (f"{EXPIRE}::test_a_consumer_keeps_what_it_has_not_read",),
    ),
    Mutant(
        "expiry-forgets-tags",
        "what a tag names stays",
        PAIMON,
        "            yield line.newest\n        yield from line.tags\n",
        "            yield line.newest\n",
        (DEATHS,),
    ),
    Mutant(
        "expiry-deletes-live-files",
        "a data file that something still names stays",
        PAIMON,
        "            each.data_files -= live\n",
        "            pass\n",
        (DEATHS,),
    ),
    Mutant(
        "expiry-removes-the-snapshot-first",
        "a snapshot goes after all that it names",
        PAIMON,
        "        self._delete(each.data_files)\n",
        "        self.handle.store.delete(self.handle.snapshots.path(each.snapshot.id))\n"
        "        self._delete(each.data_files)\n",
        (DEATHS,),
    ),
    Mutant(
        "expiry-cuts-a-tag-off",
        "a batch in a tagged snapshot is known when what led to it has gone",
        LEDGER,
        "    return _encoded(entry, metadata, number=-(snapshot.sequence_number or 0))\n",
        "    return None\n",
        (STORIES,),
    ),
    Mutant(
        "expiry-forgets-a-rollback",
        "a batch that was rolled back is not taken for one that expired",
        LEDGER,
        "        return None if entry == stored_entry else _encoded(entry, metadata)\n",
        "        return None\n",
        (f"{EXPIRE}::test_expiry_is_told_of_a_rollback_that_no_commit_of_ours_saw",),
    ),
    Mutant(
        "iceberg-expiry-deletes-live-files",
        "a data file that something still names stays",
        ICEBERG,
        "                    candidates -= paths\n",
        "                    pass\n",
        (f"{EXPIRE}::test_a_file_that_a_tag_or_a_branch_has_too_stays",),
    ),
    Mutant(
        "iceberg-expiry-deletes-live-manifests",
        "a manifest that something still names stays",
        ICEBERG,
        "                    candidates -= {manifest.manifest_path for manifest in manifests}\n",
        "                    pass\n",
        (DEATHS,),
    ),
    Mutant(
        "cleaning-passes-commits-under-way",
        "files of a commit under way stay",
        CLEANING,
        "                named |= audit.added_by(file.path)\n",
        "                pass\n",
        (OLD_BATCHES,),
    ),
    Mutant(
        "notices-not-read",
        "a commit of old files looks whether somebody is about to delete them",
        PRESENCE,
        " or path in doomed]",
        "]",
        (f"{CLEAN}::test_a_commit_that_meets_a_cleaning_before_it_deletes_lets_go",),
    ),
    Mutant(
        "cleaning-with-files-missing",
        "while a live file is missing, none is deleted",
        CLEANING,
        "    problems += _missing(table, files.values(), listing)\n",
        "",
        (f"{CLEAN}::test_while_a_live_file_is_missing_none_is_deleted",),
    ),
    Mutant(
        "cleaning-by-our-own-clock",
        "ages are by the clock of the store",
        CLEANING,
        "        now_ms = min(now_ms, _clock_of_the_store(table))\n",
        "        pass\n",
        (f"{CLEAN}::test_a_store_whose_clock_is_behind_makes_nothing_older",),
    ),
    Mutant(
        "cleaning-a-broken-table",
        "a table that cannot be read whole is not cleaned",
        CLEANING,
        "        if not problems:\n            return names\n",
        "        if True:\n            return names\n",
        (f"{CLEAN}::test_a_table_that_cannot_be_read_whole_is_refused",),
    ),
)
