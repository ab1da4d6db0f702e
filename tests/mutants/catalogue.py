"""Protections switched off one by one, each with the tests that must then turn red. ``make mutants`` runs them."""

from __future__ import annotations

from pathlib import Path

from tests.mutants.columns import COLUMN_MUTANTS
from tests.mutants.compaction import COMPACTION_MUTANTS
from tests.mutants.deleting import DELETING_MUTANTS
from tests.mutants.files import FILES_MUTANTS
from tests.mutants.following import FOLLOWING_MUTANTS
from tests.mutants.iceberg import ICEBERG_MUTANTS
from tests.mutants.listening import LISTENING_MUTANTS
from tests.mutants.maintenance import MAINTENANCE_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.placing import PLACING_MUTANTS
from tests.mutants.pruning import PRUNING_MUTANTS
from tests.mutants.quarantine import QUARANTINE_MUTANTS
from tests.mutants.reads import READS_MUTANTS
from tests.mutants.routes import ROUTES_MUTANTS
from tests.mutants.row_groups import ROW_GROUP_MUTANTS
from tests.mutants.setting_back import SETTING_BACK_MUTANTS
from tests.mutants.silence import SILENCE_MUTANTS
from tests.mutants.users import USERS_MUTANTS
from tests.mutants.where import WHERE_MUTANTS

__all__ = ["MUTANTS", "ROOT", "Mutant"]

ROOT = Path(__file__).parent.parent.parent

# Where the tests are, so that a file can be renamed in one place.
IDENTITY = "tests/faults/test_identity.py"
REPLAYS = "tests/faults/test_replays.py"
CHANGES = "tests/faults/test_table_changes.py"
ANSWERS = "tests/faults/test_lying_answers.py"
SNAPSHOTS = "tests/faults/test_paimon_snapshots.py"
SLEEPERS = "tests/faults/test_paimon_sleepers.py"
ORDERS = "tests/faults/test_interleavings.py"
RACES = "tests/faults/test_races.py"
BROKEN_FILES = "tests/faults/test_broken_files.py"
BROKEN_MESSAGES = "tests/faults/test_broken_messages.py"
GUARDS = "tests/faults/test_guards.py"
DECIDE = "tests/commit/test_decide.py"
FOLD = "tests/commit/test_fold.py"
ATTEMPTS = "tests/write/test_attempts.py"
PARTITIONS = "tests/write/test_partition_values.py"
HOSTILE_FILES = "tests/fuzz/test_hostile_table_files.py"
OPENING = "tests/storage/test_opening_a_store.py"
FAR_LOOKS = "tests/faults/test_paimon_far_looks.py"
S3_LISTING = "tests/storage/test_s3_listing.py"
RENAMING = "tests/storage/test_renaming_engines.py"
LOCAL_STORE = "tests/storage/test_local_store.py"
MERGED = "tests/formats/test_paimon_merging.py"
BASES = "tests/formats/test_paimon_base.py"

COORDINATOR = "paimon_sink/commit/coordinator.py"
DECISION = "paimon_sink/commit/decide.py"
FOLDING = "paimon_sink/commit/fold.py"
HANDLE = "paimon_sink/formats/paimon/handle.py"
HEAD = "paimon_sink/formats/paimon/head.py"
COMMIT = "paimon_sink/formats/paimon/commit.py"
CHAIN = "paimon_sink/formats/paimon/chain.py"
SNAPSHOT_FILES = "paimon_sink/formats/paimon/snapshots.py"
ENTRIES = "paimon_sink/formats/paimon/entries.py"
MERGING = "paimon_sink/formats/paimon/merging.py"
EXCLUSIVE = "paimon_sink/storage/exclusive.py"
STORE = "paimon_sink/storage/store.py"
MESSAGES = "paimon_sink/core/messages.py"
TASK = "paimon_sink/write/task.py"


MUTANTS = (
    # ------------------------------------------------------------ the decision table
    Mutant(
        "ledger-looked-at-once",
        "the ledger is looked at again in every round",
        COORDINATOR,
        "        if not isinstance(decision, Publish):\n",
        "        if attempt == 1 and not isinstance(decision, Publish):\n",
        (f"{ORDERS}::test_the_same_batch_twice_is_one_snapshot_in_every_order",),
    ),
    Mutant(
        "replay-commits-again",
        "a batch that is in is not committed again",
        DECISION,
        "    if entry.batch_id == request.batch_id:\n        return Verdict.ALREADY_IN\n",
        "    if entry.batch_id == request.batch_id:\n        return Verdict.COMMIT\n",
        (f"{REPLAYS}::test_a_replay_with_another_number_of_tasks_is_recognised",),
    ),
    Mutant(
        "stale-batch-accepted",
        "a batch older than the last one is refused",
        DECISION,
        "    if entry.batch_id < request.batch_id:\n",
        "    if entry.batch_id != request.batch_id:\n",
        (f"{IDENTITY}::test_a_zombie_that_finishes_its_batch_after_its_successor_is_refused",),
    ),
    Mutant(
        "other-query-accepted",
        "a name that belongs to another query is refused",
        DECISION,
        "    if not _is_same_writer(entry, request):\n",
        "    if not _is_same_writer(entry, request) and policy.takeover:\n",
        (f"{IDENTITY}::test_two_live_queries_with_one_name_the_second_is_refused",),
    ),
    Mutant(
        "lost-ledger-commits",
        "a batch that may be in is refused where history has expired",
        DECISION,
        '    if _was_never_tried(ledger.register, same_query, request) or policy.on_ledger_lost == "commit":\n',
        '    if _was_never_tried(ledger.register, same_query, request) or policy.on_ledger_lost != "skip":\n',
        (f"{IDENTITY}::test_a_replay_is_refused_by_name_after_a_foreign_engine_expired_our_snapshots",),
    ),
    Mutant(
        "claims-not-read",
        "claims tell which batches were tried where the ledger is lost",
        HEAD,
        "    if not ledger.complete and commit_user not in ledger.entries:\n",
        "    if False:\n",
        (f"{IDENTITY}::test_the_next_batch_goes_on_after_a_foreign_engine_expired_our_snapshots",),
    ),
    Mutant(
        "claims-not-written",
        "every try is on record before its put",
        COORDINATOR,
        "        self.table.commits.claim(claim)\n",
        "",
        (f"{IDENTITY}::test_the_next_batch_goes_on_after_a_foreign_engine_expired_our_snapshots",),
    ),
    # ------------------------------------------------------------ the ledger
    Mutant(
        "ledger-not-carried-forward",
        "each snapshot carries the last batch of all users",
        DECISION,
        "        kept[commit_user] = entry\n",
        "        kept = {commit_user: entry}\n",
        (
            f"{DECIDE}::test_the_ledger_takes_the_new_entry_and_keeps_the_others",
            f"{IDENTITY}::test_a_replay_is_recognised_after_our_own_snapshot_expired_under_another_user_of_ours",
        ),
    ),
    Mutant(
        "retention-drops-live-users",
        "only users silent for longer than the retention leave the ledger",
        DECISION,
        "now_ms - entry.at_ms > retention_ms",
        "now_ms - entry.at_ms >= 0",
        (f"{DECIDE}::test_a_user_leaves_the_ledger_when_it_was_silent_for_longer_than_the_retention",),
    ),
    Mutant(
        "dropped-user-forgotten",
        "a ledger that dropped a user says that it is incomplete",
        DECISION,
        "    complete = ledger.complete and len(kept) == len(ledger.entries)\n",
        "    complete = ledger.complete\n",
        (f"{DECIDE}::test_a_user_that_left_the_ledger_is_refused_where_nobody_knows_what_it_tried",),
    ),
    Mutant(
        "corrupt-ledger-is-empty",
        "a ledger that cannot be read is an error, not an empty one",
        SNAPSHOT_FILES,
        "    except (ValueError, TypeError, KeyError, AttributeError) as error:\n",
        "    except (ValueError, TypeError, KeyError, AttributeError) as error:\n        return Ledger()\n",
        (f"{BROKEN_FILES}::test_a_corrupt_ledger_is_named_and_nothing_is_committed",),
    ),
    Mutant(
        "ledger-may-contradict",
        "a ledger must agree with the snapshot that carries it",
        SNAPSHOT_FILES,
        "    if (entry.batch_id, entry.snapshot_id) != (of_snapshot.batch_id, of_snapshot.snapshot_id):\n",
        "    if False:\n",
        (f"{HOSTILE_FILES}::test_a_ledger_that_contradicts_its_snapshot_is_refused_and_no_file_goes",),
    ),
    # ------------------------------------------------------------ the put and its answer
    Mutant(
        "put-overwrites",
        "a put never replaces a file that is there",
        EXCLUSIVE,
        "        os.link(temporary, path)\n",
        "        os.replace(temporary, path)\n",
        (f"{GUARDS}::test_a_put_that_comes_second_by_a_moment_replaces_nothing",),
    ),
    Mutant(
        "manifests-not-on-the-disk",
        "what a snapshot names is on the disk before it",
        "paimon_sink/storage/durable.py",
        "        yield\n        later.wait()\n",
        "        yield\n",
        ("tests/faults/test_power_cut.py::test_all_that_a_snapshot_names_is_on_the_disk_before_it",),
    ),
    Mutant(
        "lost-part-ignored",
        "a file of which a part was lost on its way is not published",
        "paimon_sink/storage/output.py",
        "            part.result()\n",
        "            part.exception()\n",
        ("tests/storage/test_upload.py::test_a_part_that_failed_on_its_way_fails_the_file",),
    ),
    Mutant(
        "renamed-over",
        "an engine that looks and then renames cannot replace a put on a local disk",
        EXCLUSIVE,
        "        if created and not _stays(temporary, path):\n",
        "        if False:\n",
        (f"{RENAMING}::test_a_rename_that_was_decided_before_our_put_cannot_replace_it",),
    ),
    Mutant(
        "already-exists-is-lost",
        "'already exists' may be our own put: it is read back",
        COORDINATOR,
        "                outcome = prepared.resolve_outcome()\n",
        "                outcome = PutOutcome.LOST\n",
        (f"{ANSWERS}::test_a_put_with_a_lying_answer_is_committed_once",),
    ),
    Mutant(
        "unknown-is-lost",
        "an unknown outcome is not taken for a lost round",
        COORDINATOR,
        "            return PutOutcome.ABSENT\n",
        "            return PutOutcome.LOST\n",
        (f"{ANSWERS}::test_a_read_back_that_fails_for_good_leaves_the_outcome_unknown_and_a_replay_settles_it",),
    ),
    Mutant(
        "unknown-is-landed",
        "an unknown outcome is not taken for a commit",
        COORDINATOR,
        "            return PutOutcome.ABSENT\n",
        "            return PutOutcome.LANDED\n",
        (f"{ANSWERS}::test_a_read_back_that_fails_for_good_leaves_the_outcome_unknown_and_a_replay_settles_it",),
    ),
    Mutant(
        "base-not-checked",
        "a put on a base that is gone is not tried",
        CHAIN,
        "        return bool(self.snapshots.read(base.id) == base)\n",
        "        return True\n",
        (f"{ANSWERS}::test_a_put_into_the_place_of_an_expired_snapshot_is_not_taken_for_a_commit",),
    ),
    Mutant(
        "listing-of-one-page",
        "a listing on S3 goes on to its last page",
        "paimon_sink/storage/remote.py",
        '            if not page.get("IsTruncated") or not page.get("NextContinuationToken"):\n',
        "            if True:\n",
        (f"{S3_LISTING}::test_a_listing_is_of_all_pages",),
    ),
    Mutant(
        "far-put-into-another-table",
        "from afar, who the table is is asked again before a put",
        CHAIN,
        "        return stands and not is_gone\n",
        "        return stands\n",
        (f"{FAR_LOOKS}::test_a_table_that_becomes_another_in_the_middle_of_a_look_is_left_alone",),
    ),
    Mutant(
        "far-replay-by-another-ledger",
        "from afar, who the table is is asked again before files of a replay go",
        COORDINATOR,
        "            run.commit.confirm_head(head)\n            return self._finish(",
        "            return self._finish(",
        (f"{FAR_LOOKS}::test_a_table_that_becomes_another_in_the_middle_of_a_look_is_left_alone",),
    ),
    Mutant(
        "files-not-looked-for-before-a-put",
        "a put names only files that are there",
        COORDINATOR,
        "                if number == 1:\n",
        "                if number == 0:\n",
        (f"{CHANGES}::test_a_copy_that_was_put_in_place_of_the_table_takes_no_batch_whose_files_it_lacks",),
    ),
    Mutant(
        "stray-put-acknowledged",
        "a put that landed where nothing leads to it is not a commit",
        CHAIN,
        "        if self.snapshots.compares_base or (base is not None and self.stands(base)):\n",
        "        if True:\n",
        (f"{SLEEPERS}::test_a_put_into_a_gap_below_other_engines_is_not_acknowledged",),
    ),
    Mutant(
        "files-deleted-when-rounds-run-out",
        "files are kept when all attempts are lost",
        COORDINATOR,
        "        self._release(run)\n        raise CommitConflictError(",
        "        self.table.files.drop(file.path for file in run.plan.files)\n        raise CommitConflictError(",
        (f"{RACES}::test_retries_that_run_out_publish_nothing_and_keep_the_files",),
    ),
    # ------------------------------------------------------------ finding the newest snapshot
    Mutant(
        "hint-believed",
        "the LATEST hint is checked against the files",
        SNAPSHOT_FILES,
        "        return standing if following is None else None\n",
        "        return standing\n",
        (f"{GUARDS}::test_a_look_does_not_believe_a_hint_that_is_behind",),
    ),
    Mutant(
        "listing-believed",
        "a listing that lags is checked against the files",
        SNAPSHOT_FILES,
        "            newest = following\n",
        "            break\n",
        (f"{SNAPSHOTS}::test_a_listing_that_lags_is_not_believed",),
    ),
    Mutant(
        "snapshot-fields-unchecked",
        "a snapshot with fields of another kind is refused by name",
        SNAPSHOT_FILES,
        '            return _checked(JSON.from_json(raw.decode("utf-8"), Snapshot))\n',
        '            return JSON.from_json(raw.decode("utf-8"), Snapshot)\n',
        (f"{HOSTILE_FILES}::test_a_snapshot_with_a_field_of_another_kind_is_named",),
    ),
    # ------------------------------------------------------------ deletion
    Mutant(
        "abort-deletes-after-a-commit",
        "abort deletes nothing when every task reported",
        COORDINATOR,
        "        if all(message is not None for message in messages):\n",
        "        if not messages:\n",
        (f"{GUARDS}::test_abort_of_a_batch_that_may_still_land_deletes_nothing",),
    ),
    Mutant(
        "abort-without-a-look",
        "abort deletes nothing of a batch that is in",
        COORDINATOR,
        "        if (files or kept or routed) and not self._may_hold(commit_user, batch_id):\n",
        "        if files or routed:\n",
        (
            f"{ANSWERS}::test_abort_of_a_replay_whose_batch_is_in_deletes_nothing_that_the_table_names",
            "tests/faults/test_routes.py::test_an_abort_of_a_batch_that_is_in_takes_nothing_away",
        ),
    ),
    Mutant(
        "replay-deletes-live-files",
        "a replay's cleanup spares the files that are in",
        "paimon_sink/commit/unused.py",
        "(file.path for file in plan.files if file.path not in live)",
        "(file.path for file in plan.files if live is not None)",
        (f"{ORDERS}::test_the_same_messages_twice_delete_nothing_in_any_order",),
    ),
    Mutant(
        "failed-attempt-leaves-files",
        "a task attempt that fails removes its own files",
        TASK,
        "        attempt.remove_files()\n",
        "",
        (f"{ATTEMPTS}::test_a_source_that_fails_midway_leaves_no_file",),
    ),
    # ------------------------------------------------------------ the table under the batch
    Mutant(
        "recreated-table-accepted",
        "a table that was created anew is another table",
        COORDINATOR,
        "        if plan.table_identity not in (None, head.table_identity):\n",
        "        if False:\n",
        (f"{CHANGES}::test_a_table_that_was_dropped_and_created_again_is_another_table",),
    ),
    Mutant(
        "schema-fit-unchecked",
        "files that lose a column under the new schema are refused",
        COMMIT,
        "            if problem is not None:\n",
        "            if False:\n",
        (f"{CHANGES}::test_a_column_that_went_between_write_and_commit_is_refused",),
    ),
    # ------------------------------------------------------------ messages and names
    Mutant(
        "missing-message-ignored",
        "a batch with a task that did not report is not committed",
        FOLDING,
        '    if missing:\n        raise MessageError(\n            f"Cannot commit to {table}: {missing} of',
        '    if False:\n        raise MessageError(\n            f"Cannot commit to {table}: {missing} of',
        (f"{FOLD}::test_a_missing_message_means_no_plan",),
    ),
    Mutant(
        "message-version-unchecked",
        "a message of another version is refused",
        MESSAGES,
        "        if type(version) is not int or version not in known:\n",
        "        if False:\n",
        (f"{BROKEN_MESSAGES}::test_a_message_of_another_version_is_refused_by_its_version",),
    ),
    Mutant(
        "message-of-another-batch-accepted",
        "messages of different batches are not mixed",
        FOLDING,
        "        if message is not None and message.batch_id not in (None, batch_id):\n",
        "        if False:\n",
        (
            f"{GUARDS}::test_a_message_of_an_earlier_batch_is_not_committed_again",
            f"{GUARDS}::test_a_replay_with_a_message_of_an_earlier_batch_deletes_no_live_file",
        ),
    ),
    Mutant(
        "entry-of-another-file-accepted",
        "a message means the same file in its path and in its entry",
        ENTRIES,
        '    if in_message != in_entry or "/" in described.file_name:\n',
        "    if False:\n",
        (f"{GUARDS}::test_a_message_that_names_one_file_and_describes_another_is_refused",),
    ),
    Mutant(
        "path-outside-accepted",
        "a file outside the table is refused",
        FOLDING,
        "        if file.path != posixpath.normpath(file.path) or ",
        "        if False and ",
        (f"{FOLD}::test_a_file_outside_the_table_is_refused",),
    ),
    Mutant(
        "partition-value-unescaped",
        "partition values are escaped in paths",
        HANDLE,
        "        return str(self.paths.relative_bucket_path(partition, bucket, canonical_partition=True))\n",
        "        values = zip(self.partition_keys, partition, strict=True)\n"
        '        return "/".join([*(f"{key}={value}" for key, value in values), f"bucket-{bucket}"])\n',
        (f"{PARTITIONS}::test_a_text_is_the_same_after_a_round_trip",),
    ),
    Mutant(
        "secrets-shown",
        "errors of a store show no secret",
        STORE,
        '        return StorageError(self._settings.scrub(f"Cannot {verb}',
        '        return StorageError(str(f"Cannot {verb}',
        (f"{OPENING}::test_errors_never_show_secrets",),
    ),
    Mutant(
        "kind-is-absence",
        "only a missing file counts as missing",
        STORE,
        "        except Exception as error:\n            raise self._failed(verb, path, error) from error\n",
        "        except Exception as error:\n            raise FileNotFoundError(path) from error\n",
        (f"{LOCAL_STORE}::test_trouble_is_not_absence",),
    ),
    # ------------------------------------------------------------ merged manifests
    Mutant(
        "merged-out-of-order",
        "merged manifests stand where their inputs stood",
        MERGING,
        "        spliced.extend(at_start.get(manifest.file_name, ()))\n",
        "        spliced = [*at_start.get(manifest.file_name, ()), *spliced]\n",
        (f"{MERGED}::test_any_writes_read_the_same_as_without_merging",),
    ),
    Mutant(
        "deletion-without-its-addition",
        "a deletion stays while its addition is elsewhere",
        MERGING,
        "    return list(left.values())\n",
        "    return [entry for entry in left.values() if entry.kind == ADD]\n",
        (f"{MERGED}::test_any_writes_read_the_same_as_without_merging",),
    ),
    Mutant(
        "base-not-named",
        "a snapshot of ours is asked for its base",
        CHAIN,
        "        stated = is_stated_base(following, built.snapshot)\n",
        "        stated = None\n",
        (f"{BASES}::test_a_snapshot_is_known_to_be_in_by_one_that_merged_its_manifests",),
    ),
    Mutant(
        "leftovers-swept-while-in-use",
        "what a snapshot was built with is not removed",
        "paimon_sink/formats/merging.py",
        "            made = self._merged.pop(inputs, None)\n",
        "            made = self._merged.get(inputs)\n",
        (
            "tests/formats/test_merging.py::test_what_is_handed_out_is_no_longer_removed",
            "tests/faults/test_merging.py::test_nothing_is_removed_that_a_put_without_an_answer_names",
        ),
    ),
    *ICEBERG_MUTANTS,
    *MAINTENANCE_MUTANTS,
    *PRUNING_MUTANTS,
    *QUARANTINE_MUTANTS,
    *ROUTES_MUTANTS,
    *WHERE_MUTANTS,
    *READS_MUTANTS,
    *ROW_GROUP_MUTANTS,
    *COLUMN_MUTANTS,
    *COMPACTION_MUTANTS,
    *DELETING_MUTANTS,
    *FILES_MUTANTS,
    *FOLLOWING_MUTANTS,
    *LISTENING_MUTANTS,
    *SETTING_BACK_MUTANTS,
    *SILENCE_MUTANTS,
    *USERS_MUTANTS,
    *PLACING_MUTANTS,
)
