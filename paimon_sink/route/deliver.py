"""Bringing what a home owes into its tables: each by its own coordinator, which takes a number once.

What one table gets is folded anew in each round: parts that its ledger has by then are left out, whoever brought them
in meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from paimon_sink.commit.coordinator import Coordinator
from paimon_sink.commit.decide import Policy
from paimon_sink.commit.presence import missing_files
from paimon_sink.core.clock import Clock, Moment, SystemClock
from paimon_sink.core.errors import CommitConflictError, FoldAnewError, TableChangedError, TableNotFoundError
from paimon_sink.core.events import CommitListener
from paimon_sink.core.messages import RoutedFiles
from paimon_sink.core.options import Options
from paimon_sink.core.outbox import NONE_TAKEN, receiving_user
from paimon_sink.core.properties import OUTBOX_NUMBER, OUTBOX_OF, ROUTE_BATCH, ROUTE_COLUMN, ROUTE_HOME, ROUTE_USER
from paimon_sink.core.steps import Step, reached
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import CommitKind, Plan
from paimon_sink.maintain.after_commit import post_commit_maintenance
from paimon_sink.route.manifest import Manifest
from paimon_sink.route.tables import Tables, home_name, own_options

__all__ = ["Courier", "LoadListeners", "Owed", "last_taken", "no_listeners", "receiver_of"]

log = logging.getLogger(__name__)

_FOLDS = 10
_REMEMBERED_MS = 365 * 24 * 3600 * 1000

Spared = Callable[[RoutedFiles, Table], frozenset[str] | None]
"""Files of a part that stay. None: all of them."""
LoadListeners = Callable[[Options, Table], Mapping[str, CommitListener]]
"""Those of one of the tables, by its options."""


def no_listeners(options: Options, table: Table) -> Mapping[str, CommitListener]:
    return {}


def _folded(plans: Sequence[Plan]) -> Plan:
    """Several batches of one user as the newest of them. Pure."""
    moments = [plan.planned for plan in plans if plan.planned is not None]
    oldest = None if len(moments) < len(plans) else min(moments, key=lambda moment: moment.wall_ms)
    marks = [plan.watermark_ms for plan in plans if plan.watermark_ms is not None]
    return replace(
        plans[-1],
        files=tuple(file for plan in plans for file in plan.files),
        schema_ids=frozenset().union(*(plan.schema_ids for plan in plans)),
        planned=oldest,
        watermark_ms=max(marks, default=None),
    )


def receiver_of(home: Table, commit_user: str) -> str:
    """The commit user under which tables keep what a user of a home brought them."""
    # Some formats tell tables apart by the time they were made, which two homes may share.
    return receiving_user(f"{home.label} {home.identity}", commit_user)


def last_taken(table: Table, receiver: str) -> int:
    """The highest number that a table has of a receiving user."""
    entry = table.commits.load_head(commit_user=receiver).ledger.entries.get(receiver)
    return NONE_TAKEN if entry is None else entry.batch_id


@dataclass(frozen=True)
class Owed:
    """What one table is to get of one batch."""

    number: int
    commit_id: str
    """Of the put that decided the batch."""
    manifest: Manifest
    part: RoutedFiles


@dataclass(frozen=True)
class Courier:
    """Of one home, through one commit or one delivery: each table is opened once."""

    home: Table
    options: Options
    policy: Policy = field(default_factory=Policy)
    clock: Clock = field(default_factory=SystemClock)
    load_listeners: LoadListeners = no_listeners
    _opened: dict[str, Table] = field(default_factory=dict)

    # ------------------------------------------------------------ before the put

    def look(self, commit_user: str, manifest: Manifest, part: RoutedFiles) -> int:
        """The highest number that the table has of the user. Raises where it could not take these files as it is.

        After the put it is too late to write them anew.
        """
        try:
            table = self._table(part.table)
        except TableNotFoundError as error:
            raise TableChangedError.dropped(part.table) from error
        plan = self._plan(commit_user, 0, manifest, part)
        commit = table.commits.begin(plan)
        try:
            head = commit.load_head()
            if head.table_identity != part.table_identity:
                raise TableChangedError(
                    f"Cannot commit to {part.table}: the table was dropped and created again after its tasks had "
                    "written. Nothing was committed. Restart the query, or run the job again, to write into the new "
                    "table."
                )
            commit.check_files()
            commit.check_fits(head)
            missing = missing_files(table.side_files, plan, now=Moment.by(self.clock))
            if missing:
                raise TableChangedError(
                    f"Cannot commit to {part.table}: {len(missing)} of its {len(part.files)} data files are gone, "
                    f"such as {missing[0]}. Somebody cleaned up meanwhile. Nothing was committed. Restart the query, "
                    "or run the job again: it is then written anew. Clean up with an age longer than any batch takes."
                )
            entry = head.ledger.entries.get(plan.commit_user)
            return NONE_TAKEN if entry is None else entry.batch_id
        finally:
            commit.close()

    # ------------------------------------------------------------ after it

    def deliver(self, owed: Sequence[Owed]) -> int:
        """Bring in what is not in, of several batches of one user for one table.

        Gives the number of rows that went with a table before. Raises where something is not known to be in.
        """
        name = owed[0].part.table
        try:
            table = self._table(name)
        except TableNotFoundError as error:
            raise TableChangedError(
                f"{name} is gone, and the rows are files below it. Bring it back; or, if it was dropped for good, "
                "create it again: those rows then count as dropped with it."
            ) from error
        lost = 0
        for each in owed:
            if table.identity != each.part.table_identity:
                lost += each.part.rows
                log.warning(
                    "%s was dropped and created again: %d rows of batch %d of %r, which were written for the table "
                    "before, went with it",
                    name,
                    each.part.rows,
                    each.manifest.batch_id,
                    each.manifest.commit_user,
                )
        left = [each for each in owed if table.identity == each.part.table_identity]
        if left:
            self._bring_in(table, left)
            reached(Step.TABLE_DELIVERED)
        return lost

    def taken(self, owed: Owed) -> bool | None:
        """Whether the table has it. None: it went with the table before."""
        table = self._table(owed.part.table)
        if table.identity != owed.part.table_identity:
            return None
        return last_taken(table, receiver_of(self.home, owed.manifest.commit_user)) >= owed.number

    def _bring_in(self, table: Table, owed: Sequence[Owed]) -> None:
        """Several batches become one snapshot. Folded anew while others bring in some of them."""
        if len(owed) == 1:
            self._commit(table, owed, follows=None)
            return
        for _ in range(_FOLDS):
            last = last_taken(table, receiver_of(self.home, owed[0].manifest.commit_user))
            left = [each for each in owed if each.number > last]
            if not left:
                return
            with suppress(FoldAnewError):
                self._commit(table, left, follows=last)
                return
        raise CommitConflictError(
            f"Others brought batches into {table.label} while they were folded, in each of {_FOLDS} tries. It is tried "
            "again."
        )

    def _commit(self, table: Table, owed: Sequence[Owed], *, follows: int | None) -> None:
        own = own_options(self.options, owed[0].part.table)
        plan = replace(_folded([self._plan_of(each) for each in owed]), follows=follows)
        target_bytes = own.write.target_file_size_bytes
        outcome = Coordinator(
            table,
            # A number below the last is in: they come one after the other.
            Policy("skip", self.policy.on_ledger_lost, ledger_retention_ms=_REMEMBERED_MS),
            {**own.commit.snapshot_properties, **self._signature(owed)},
            clock=self.clock,
            target_file_bytes=target_bytes,
            listeners=self.load_listeners(own, table),
        ).commit(plan)
        if outcome.snapshot_id is not None and not outcome.already_committed:
            post_commit_maintenance(table, own.upkeep, plan, target_bytes=target_bytes)

    def _signature(self, owed: Sequence[Owed]) -> dict[str, str]:
        newest = owed[-1]
        column = newest.manifest.column
        return {
            **({ROUTE_COLUMN: column} if column is not None else {}),
            OUTBOX_OF: ",".join(each.commit_id for each in owed),
            OUTBOX_NUMBER: str(newest.number),
            ROUTE_HOME: home_name(self.options),
            ROUTE_USER: newest.manifest.commit_user,
            ROUTE_BATCH: str(newest.manifest.batch_id),
        }

    def _plan_of(self, owed: Owed) -> Plan:
        return self._plan(owed.manifest.commit_user, owed.number, owed.manifest, owed.part)

    def _plan(self, commit_user: str, number: int, manifest: Manifest, part: RoutedFiles) -> Plan:
        return Plan(
            commit_user=receiver_of(self.home, commit_user),
            batch_id=number,
            query_id=None,
            files=part.files,
            kind=CommitKind.APPEND,
            table_identity=part.table_identity,
            schema_ids=part.schema_ids,
            planned=manifest.planned,
            watermark_ms=part.watermark_ms,
        )

    def _table(self, name: str) -> Table:
        if name not in self._opened:
            self._opened[name] = Tables(self.options).existing(name)
        return self._opened[name]

    def location(self, part: RoutedFiles) -> str:
        return self._table(part.table).location.rstrip("/")

    def existing(self, part: RoutedFiles) -> Table | None:
        """The table that the part was written for, if it is there."""
        table = self._table(part.table)
        return table if table.identity == part.table_identity else None

    def drop(self, parts: Sequence[RoutedFiles], *, spared: Spared) -> None:
        """Delete files of tables, without those that are spared; None spares all. Never raises but by mistake."""
        for part in parts:
            try:
                table = self._table(part.table)
                table.commits.check_files(part.files)
                kept = spared(part, table)
            except Exception as error:  # noqa: BLE001 - what stays behind is an orphan
                log.warning("Left files of %s behind that nobody needs: %s", part.table, error)
                continue
            if kept is not None and table.identity == part.table_identity:
                table.files.drop(file.path for file in part.files if file.path not in kept)
