"""Rows deleted by a condition, copy on write: files that hold such rows are put out by others without them.

It goes in rounds, each one look and at most one snapshot, until a look finds no such row. So rows that come meanwhile
go too, and so do those in files that a compaction replaced meanwhile. Nobody else is hindered: an append is never
refused for a delete, and a delete whose files others replaced looks again.
"""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from paimon_sink.commit.coordinator import Coordinator, Outcome
from paimon_sink.commit.decide import CommitRequest, Policy, Verdict, decide
from paimon_sink.commit.fold import fold_delete
from paimon_sink.commit.outbox import NO_OUTBOXES
from paimon_sink.core.clock import Backoff, Clock, SystemClock
from paimon_sink.core.errors import CommitConflictError, FilesReplacedError, OptionError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.options import Options
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_to_rewrite
from paimon_sink.formats.values import NOWHERE, LiveFile, PlannedOn
from paimon_sink.maintain.choosing import Answer, Chosen, Conditions, Work, choose_files, drop_written
from paimon_sink.maintain.groups import Group
from paimon_sink.maintain.purge import Progress as PurgeProgress
from paimon_sink.maintain.purge import Purge, purge_rows
from paimon_sink.maintain.quarantine import Quarantine
from paimon_sink.read.where import where_conditions

__all__ = [
    "COMMIT_USER", "DELETE", "DeleteJob", "Deletion", "conditions_of", "delete_or_preview", "delete_rows",
    "open_to_delete", "preview", "purged", "refuse_unheeded",
]  # fmt: skip

log = logging.getLogger(__name__)

COMMIT_USER = "pwc-delete"
"""The name of one that the user gave none. Each run has an id of its own behind it."""

DELETE = "delete from"
"""What errors say could not be done."""

_ROUNDS = 50
_CHASES = 8
"""So often such rows may come again while they are deleted. Then it ends: those that were there before are gone."""
_POLICY = Policy(ledger_retention_ms=sys.maxsize)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Deletion:
    """What a delete did, or would do in a dry run."""

    table: str
    where: str
    dry_run: bool = False
    rows: int = 0
    """That met the condition."""
    files_removed: int = 0
    """All rows of which met it."""
    files_rewritten: int = 0
    """That hold other rows too, and were written anew without these."""
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    rounds: int = 0
    """How often it was looked what there is to delete: the last one found nothing."""
    conflicts: int = 0
    """Files that others replaced meanwhile. Their rows were found in another round."""
    snapshot_ids: tuple[int, ...] = ()
    """Of the snapshots that it made, oldest first."""
    already_deleted: bool = False
    """This job had run before, by its ``commitIdentifier``: nothing was looked at, and nothing changed."""
    clean_snapshot_id: int | None = None
    """The last snapshot that was looked at, without any such row. None: the table has none, or such rows kept coming
    while it ran. Those that were there when it began are gone in any case."""
    purge: Purge | None = None
    """What else went, where that was asked for."""


@dataclass(frozen=True)
class DeleteJob:
    """As whom a delete is committed, and how."""

    commit_user: str | None = None
    commit_identifier: int | None = None
    target_bytes: int = 128 << 20
    policy: Policy = field(default_factory=lambda: _POLICY)
    properties: Mapping[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    backoff: Backoff = field(default_factory=Backoff)
    place: TableOptions | None = None
    """Where the table is, by which its quarantine is found. None: rows that are owed are for others to deliver."""

    @classmethod
    def of(cls, options: Options) -> DeleteJob:
        commit = options.commit
        policy = Policy(
            on_ledger_lost=commit.on_ledger_lost,
            takeover=commit.takeover,
            ledger_retention_ms=commit.ledger_retention_ms,
        )
        return cls(
            commit.commit_user,
            commit.commit_identifier,
            options.write.target_file_size_bytes,
            _POLICY if commit.commit_identifier is None else policy,
            commit.snapshot_properties,
            place=options.table,
        )

    def user(self) -> str:
        if self.commit_identifier is not None and self.commit_user is not None:
            return self.commit_user
        return f"{self.commit_user or COMMIT_USER}-{uuid.uuid4()}"


def conditions_of(table: Table, where: str) -> Conditions:
    """The condition against the table's columns. Raises ``OptionError`` where it is not understood."""
    return tuple(where_conditions(table, where, what=DELETE, option="the condition"))


def refuse_unheeded(options: Options) -> None:
    """Options of a batch write that a delete would have to pass over: they would make it do something else."""
    asked = {
        "replaceWhere": options.commit.replace_where is not None,
        "partitionOverwriteMode": options.commit.partition_overwrite_mode is not None,
        "watermarkColumn": options.write.watermark_column is not None,
        "listeners": bool(options.listeners.names),
        "expire.olderThan": options.upkeep.expire_older_than_ms is not None,
        "mergeSchema": options.write.merge_schema,
        "quarantine": options.quarantine.table is not None,
        **{f"check.{name}": True for name in sorted(options.quarantine.checks)},
        "errorColumn": options.quarantine.error_column is not None,
    }
    refused = [key for key, is_asked in asked.items() if is_asked]
    if refused:
        raise OptionError(
            f"Cannot delete from {options.table.label} with {' and '.join(refused)}: a delete takes no notice of it. "
            "Leave it out."
        )


def open_to_delete(options: Options, where: str) -> Table:
    """The table. All that is wrong with the options and the condition is refused before anything is read."""
    refuse_unheeded(options)
    table = open_to_rewrite(options.table, compression=options.write.compression)
    conditions_of(table, where)
    return table


def delete_or_preview(table: Table, where: str, options: Options, *, work: Work, dry_run: bool) -> Deletion:
    return (preview if dry_run else delete_rows)(table, where, DeleteJob.of(options), work=work)


def purged(done: Deletion, table: Table, *, progress: PurgeProgress | None = None) -> Deletion:
    """What a delete took out goes for good, too; after a preview, nothing does."""
    return done if done.dry_run else replace(done, purge=purge_rows(table, done.where, progress=progress))


# ---------------------------------------------------------------- a dry run


def preview(table: Table, where: str, job: DeleteJob, *, work: Work) -> Deletion:
    """What a delete would do to the newest snapshot. Files that may hold such rows are read, and none is written."""
    chosen = choose_files(table, conditions_of(table, where))
    examined = work(_groups(chosen.doubtful, job), False)
    answers = [answer for answer in examined if answer.rows]
    sizes = {file.path: file for file in (*chosen.whole, *chosen.doubtful)}
    whole = [file.path for file in chosen.whole]
    whole += [answer.path for answer in answers if answer.rows == sizes[answer.path].rows]
    touched = {*whole, *(answer.path for answer in answers)}
    return Deletion(
        table.label,
        where,
        dry_run=True,
        rows=sum(file.rows for file in chosen.whole) + sum(answer.rows for answer in answers),
        files_removed=len(whole),
        files_rewritten=len(touched) - len(whole),
        bytes_removed=sum(sizes[path].size_bytes for path in touched),
        rounds=1,
        conflicts=sum(answer.is_overtaken for answer in examined),
    )


def _groups(files: Sequence[LiveFile], job: DeleteJob) -> list[Group]:
    return [Group((file,), max(job.target_bytes, file.size_bytes)) for file in files]


# ---------------------------------------------------------------- rounds


def delete_rows(table: Table, where: str, job: DeleteJob, *, work: Work) -> Deletion:
    """Delete the rows for which the condition is true; those for which it is null stay.

    When it returns, all that were there when it was called are gone, and those that came until its last look. Rows that
    come later stay; so do the last ones where such rows come all the time.
    """
    return _Deleting(table, where, job, work).run()


@dataclass
class _Deleting:
    """One delete under way."""

    table: Table
    where: str
    job: DeleteJob
    work: Work
    clean: set[str] = field(default_factory=set)
    """Files that were read and hold no such row."""

    def run(self) -> Deletion:
        table, job = self.table, self.job
        conditions, user = conditions_of(table, self.where), job.user()
        done = Deletion(table.label, self.where)
        if self._is_in(user):
            return replace(done, already_deleted=True)
        chases = 0
        for number in range(1, _ROUNDS + 1):
            chosen = choose_files(table, conditions, without=self.clean)
            answers = self.work(_groups(chosen.doubtful, job), True)
            changes = _Changes.of(chosen, answers)
            chases += not changes.conflicts
            if changes.are_none and not changes.conflicts and job.commit_identifier is None:
                return replace(done, rounds=number, clean_snapshot_id=chosen.planned_on.snapshot_id)
            is_last = chases >= _CHASES
            on = None if changes.are_none or is_last else chosen.planned_on
            outcome, changes = self._publish(user, changes, on)
            done = _counted(
                replace(done, rounds=number, conflicts=done.conflicts + changes.conflicts), outcome, changes
            )
            if outcome is not None and outcome.already_committed:
                return replace(done, already_deleted=True)
            if outcome is not None and outcome.entry is not None and on is not None:
                return replace(done, clean_snapshot_id=outcome.snapshot_id)
            if outcome is not None and not changes.conflicts and (is_last or changes.are_none):
                return replace(done, clean_snapshot_id=chosen.planned_on.snapshot_id if changes.are_none else None)
            self._remember(answers)
            if outcome is None or outcome.snapshot_id is None:
                job.backoff.wait(job.clock, number)
        raise CommitConflictError(
            f"Cannot delete all rows of {table.label} where {self.where}: in each of {_ROUNDS} rounds others replaced "
            f"some of the files meanwhile. {done.rows:,} rows are deleted, and some are left. Run it again while no "
            "compaction is at work."
        )

    def _remember(self, answers: Sequence[Answer]) -> None:
        """Neither a file without such rows nor one that was written without them need be read again."""
        self.clean |= {answer.path for answer in answers if not answer.rows and not answer.is_overtaken}
        messages = (answer.message for answer in answers if answer.message is not None)
        self.clean |= {file.path for message in messages for file in message.files}

    def _is_in(self, user: str) -> bool:
        """Whether the job is in already. Raises what refuses it, before anything is read."""
        if self.job.commit_identifier is None:
            return False
        ledger = self.table.commits.load_head(commit_user=user).ledger
        request = CommitRequest(self.table.label, user, self.job.commit_identifier, None, in_any_order=True)
        return decide(ledger, request, self.job.policy) is not Verdict.COMMIT

    def _publish(self, user: str, changes: _Changes, on: PlannedOn | None) -> tuple[Outcome | None, _Changes]:
        """One snapshot. None: others replaced files in the very moment of the commit, and nothing is published."""
        job = self.job
        changes = changes if changes.are_none else changes.intact(self.table)
        if changes.are_none and changes.conflicts:
            return None, changes
        plan = fold_delete(
            changes.messages,
            table=self.table,
            commit_user=user,
            commit_identifier=job.commit_identifier,
            removed=changes.removed,
            # What others overtook is still there in other files: then this is a step, and in no ledger.
            planned_on=NOWHERE if changes.conflicts else on,
        )
        outboxes = NO_OUTBOXES if job.place is None else Quarantine(self.table, job.place, policy=job.policy)
        coordinator = Coordinator(
            self.table, job.policy, job.properties, clock=job.clock, backoff=job.backoff, outboxes=outboxes
        )
        try:
            return coordinator.replace_files(plan), changes
        except FilesReplacedError as error:
            log.info("%s", error)
            return None, replace(changes, conflicts=changes.conflicts + 1)


@dataclass(frozen=True)
class _Changes:
    """What a round would publish."""

    whole: tuple[LiveFile, ...]
    rewritten: tuple[tuple[LiveFile, Answer], ...]
    conflicts: int

    @classmethod
    def of(cls, chosen: Chosen, answers: Sequence[Answer]) -> _Changes:
        files = {file.path: file for file in chosen.doubtful}
        return cls(
            chosen.whole,
            tuple((files[answer.path], answer) for answer in answers if answer.rows),
            sum(answer.is_overtaken for answer in answers),
        )

    @property
    def are_none(self) -> bool:
        return not self.whole and not self.rewritten

    @property
    def removed(self) -> dict[str, int]:
        files = (*self.whole, *(file for file, _ in self.rewritten))
        return {file.path: file.rows for file in files}

    @property
    def messages(self) -> list[TaskMessage]:
        return [answer.message for _, answer in self.rewritten if answer.message is not None]

    def intact(self, table: Table) -> _Changes:
        """Those whose files are still there; what was written for the others goes."""
        live = {file.path for file in table.scans.live_files()}
        overtaken = [answer for file, answer in self.rewritten if file.path not in live]
        drop_written(table, overtaken)
        whole = tuple(file for file in self.whole if file.path in live)
        return _Changes(
            whole,
            tuple((file, answer) for file, answer in self.rewritten if file.path in live),
            self.conflicts + len(overtaken) + len(self.whole) - len(whole),
        )


def _counted(done: Deletion, outcome: Outcome | None, changes: _Changes) -> Deletion:
    if outcome is None or outcome.already_committed or outcome.snapshot_id is None:
        return done
    emptied = [file for file, answer in changes.rewritten if answer.rows == file.rows]
    written = [file for message in changes.messages for file in message.files]
    sizes = [file.size_bytes for file in (*changes.whole, *(file for file, _ in changes.rewritten))]
    return replace(
        done,
        rows=done.rows + sum(file.rows for file in changes.whole) + sum(answer.rows for _, answer in changes.rewritten),
        files_removed=done.files_removed + len(changes.whole) + len(emptied),
        files_rewritten=done.files_rewritten + len(changes.rewritten) - len(emptied),
        files_added=done.files_added + len(written),
        bytes_removed=done.bytes_removed + sum(sizes),
        bytes_added=done.bytes_added + sum(file.size_bytes for file in written),
        snapshot_ids=(*done.snapshot_ids, outcome.snapshot_id),
    )
