"""What a routed batch owes: its bad rows to the quarantine, and its files to the tables that rows chose.

The commit of the home asks it: before the put, which decides the batch, and after it, when all is delivered. What a
batch before owes is delivered first, so there is never more than one batch of a user under way.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from paimon_sink.commit.decide import Policy
from paimon_sink.commit.sentences import name_of
from paimon_sink.commit.unused import drop_unpublished_files, snapshot_that_holds, with_live_files
from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import (
    CommitConflictError,
    CommitUnknownError,
    CorruptTableError,
    PwcError,
    SchemaMismatchError,
    StorageError,
    TableChangedError,
    TableNotFoundError,
    TablesBehindError,
    UnsupportedTableError,
)
from paimon_sink.core.messages import RoutedFiles
from paimon_sink.core.options import Options
from paimon_sink.core.outbox import NONE_TAKEN, Carried, Outbox, OutboxPart
from paimon_sink.core.regions import passed_bounds
from paimon_sink.core.strict_json import read_json
from paimon_sink.formats.contract import Table
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.formats.values import Plan
from paimon_sink.maintain.quarantine import Quarantine
from paimon_sink.route.at_once import Done, Failed, at_once
from paimon_sink.route.deliver import Courier, LoadListeners, Owed, no_listeners
from paimon_sink.route.manifest import Manifest, is_manifest, read_manifest, write_manifest

__all__ = ["Routes", "read_note"]

log = logging.getLogger(__name__)

_SHOWN = 10
_CARRIED = (
    StorageError,
    CommitConflictError,
    CommitUnknownError,
    TableNotFoundError,
    TableChangedError,
    UnsupportedTableError,
    CorruptTableError,
    OSError,
)
"""What ails one table, and no other. All else fails the batch."""
_ANEW = (TableChangedError,)
"""Before the put: the batch can still be written anew."""
V = TypeVar("V")


@dataclass(frozen=True)
class Routes:
    """The outboxes of a home, in one commit."""

    home: Table
    options: Options
    policy: Policy = field(default_factory=Policy)
    load_listeners: LoadListeners = no_listeners
    clock: Clock = field(default_factory=SystemClock)
    _taken: dict[str, int] = field(default_factory=dict)
    """By table: the highest number that it had when it was looked at before the put."""
    _why: dict[str, str] = field(default_factory=dict)
    """By table: why it is carried."""
    _written: list[str] = field(default_factory=list)
    """Manifests of this commit."""
    _couriers: list[Courier] = field(default_factory=list)

    @property
    def quarantine(self) -> Quarantine:
        return Quarantine(self.home, self.options.table, self.options.quarantine, self.policy, self.clock)

    @property
    def courier(self) -> Courier:
        if not self._couriers:
            self._couriers.append(Courier(self.home, self.options, self.policy, self.clock, self.load_listeners))
        return self._couriers[0]

    # ------------------------------------------------------------ before the put

    def check(self, plan: Plan) -> None:
        most = self.options.route.max_tables
        if len(plan.routed) > most:
            shown = ", ".join(part.table for part in plan.routed[:3])
            raise SchemaMismatchError(
                f"Cannot commit {name_of(plan)}: its rows choose {len(plan.routed):,} tables, such as {shown}, and "
                f"route.maxTables={most}. Nothing was committed. Look whether routeColumn names the right column; if "
                "it does, raise the limit."
            )
        self.quarantine.check(plan)

    def fill(self, plan: Plan) -> tuple[OutboxPart, ...]:
        bad = self.quarantine.fill(plan)
        if not plan.routed:
            return bad
        # Before the tables are looked at: whoever cleans one of them sees it, or is seen.
        manifest = Manifest.of(plan, column=self.options.route.column)
        part = write_manifest(self.home, manifest)
        self._written.append(part.file)
        try:
            self._look(plan, manifest)
        except BaseException:
            # May go: no put that names them was sent.
            self.home.files.drop([part.file, *(each.file for each in bad)])
            raise
        return (*bad, part)

    def _look(self, plan: Plan, manifest: Manifest) -> None:
        works = {
            part.table: partial(self.courier.look, plan.commit_user, manifest, part)
            for part in plan.routed
            # Of those that failed a moment ago, each question would wait for the deadline once more.
            if part.table not in self._why
        }
        for table, found in self._at_once(works).items():
            if isinstance(found, Done):
                self._taken[table] = found.value
            elif not self.is_regional or not isinstance(found.reason, _CARRIED) or isinstance(found.reason, _ANEW):
                raise found.reason
        self._refuse_two_names(plan)

    @property
    def is_regional(self) -> bool:
        return self.options.route.regional

    def _at_once(self, works: Mapping[str, Callable[[], V]]) -> dict[str, Done[V] | Failed]:
        deadline_s = self.options.route.regional_timeout_ms / 1000 if self.is_regional else None
        return at_once(works, threads=self.options.route.threads, deadline_s=deadline_s)

    def _refuse_two_names(self, plan: Plan) -> None:
        """A number is taken once: of two parts for one table, the second would count as delivered."""
        names: dict[str, str] = {}
        for part in plan.routed:
            if part.table not in self._taken:
                # It does not answer, and gets what it is owed by its own name.
                continue
            other = names.setdefault(self.courier.location(part), part.table)
            if other != part.table:
                raise SchemaMismatchError(
                    f"Cannot commit {name_of(plan)}: {other} and {part.table} are one table by two names. Nothing was "
                    "committed. Let rows choose it by one of them."
                )

    def taken(self, commit_user: str, parts: Sequence[OutboxPart]) -> int:
        bad, routed = self._sorted(parts)
        in_tables = max(self._taken.values(), default=NONE_TAKEN) if routed else NONE_TAKEN
        return max(self.quarantine.taken(commit_user, bad), in_tables)

    def ahead(self, parts: Sequence[OutboxPart]) -> str:
        if not self._taken:
            return self.quarantine.ahead(parts)
        table = max(self._taken, key=lambda name: self._taken[name])
        return f"{table} has rows of"

    # ------------------------------------------------------------ after the put

    def may_go_on(self, plan: Plan, before: Outbox | None, carried: Sequence[OutboxPart]) -> int:
        """Past a bound, the next batch waits until all that is carried was delivered."""
        widest = len(plan.routed) if self.is_regional else 0
        if not carried:
            return widest
        batch = frozenset(part.table for part in plan.routed)
        passed = list(self._passed(carried, batch=batch, widest=0 if before is None else before.widest))
        if not passed:
            return widest
        why = "; ".join(f"{table}: {reason}" for table, reason in list(self._why.items())[:_SHOWN])
        raise TablesBehindError(
            f"Cannot commit {name_of(plan)} to {self.home.label}: {'; '.join(passed)}. Nothing of this batch was "
            "committed, and all that is carried is kept. Mend the table and restart the query, or raise the bound: "
            f"what is carried is delivered first, once. {why}"
        )

    def _passed(self, carried: Sequence[OutboxPart], *, batch: Set[str], widest: int) -> Iterator[str]:
        now_ms = self.clock.now_ms()
        return passed_bounds(carried, self.options.route.bounds, now_ms=now_ms, batch=batch, widest=widest)

    def _failed_before(self, commit_user: str, entry: LedgerEntry) -> dict[str, str]:
        """The tables that failed when this entry's own put delivered, and why. None where nobody noted it."""
        try:
            note = read_note(self.home, commit_user)
            if note.get("tried") == entry.commit_id:
                return {str(table): str(why) for table, why in note["why"].items()}
        except (OSError, PwcError, ValueError, TypeError, AttributeError, LookupError):
            pass
        return {}

    def deliver(self, commit_user: str, entry: LedgerEntry, *, again: bool = True) -> tuple[OutboxPart, ...]:
        """Whoever does this twice, at once or later, changes nothing: each table's ledger has the number."""
        assert entry.outbox is not None, "only who owes something is asked to deliver"
        bad, routed = self._sorted(entry.outbox.parts)
        if routed and self._is_noted(commit_user, entry):
            return ()
        failed: list[PwcError] = []
        carried: tuple[OutboxPart, ...] = ()
        # A table that refuses keeps bad rows from nobody, and a quarantine that does no rows from their tables.
        try:
            carried = self._deliver(commit_user, entry, routed, again=again)
        except PwcError as error:
            failed.append(error)
        if bad:
            try:
                self.quarantine.deliver(commit_user, replace(entry, outbox=replace(entry.outbox, parts=bad)))
            except PwcError as error:
                failed.append(error)
        if failed:
            raise failed[0]
        if routed and not carried:
            self._note(commit_user, entry)
        return carried

    def _deliver(
        self, commit_user: str, entry: LedgerEntry, parts: Sequence[OutboxPart], *, again: bool
    ) -> tuple[OutboxPart, ...]:
        owed = {part.file: self.owed(entry, part) for part in parts}
        known = {} if again or not self.is_regional else self._failed_before(commit_user, entry)
        if known:
            left = _left(entry, parts, owed, known)
            if not list(self._passed(left, batch=frozenset(), widest=entry.outbox.widest if entry.outbox else 0)):
                # Its own put tried all of it a moment ago. The next one does again, with the next batch.
                self._why.update(known)
                return left
        by_table: dict[str, list[Owed]] = {}
        for each in sorted((each for found in owed.values() for each in found), key=lambda each: each.number):
            by_table.setdefault(each.part.table, []).append(each)
        found = self._at_once({table: partial(self.courier.deliver, some) for table, some in by_table.items()})
        failed = {table: result.reason for table, result in found.items() if isinstance(result, Failed)}
        # What failed before and is delivered now is not noted as failing.
        self._why.clear()
        if not failed:
            return ()
        if self.is_regional and all(isinstance(reason, _CARRIED) for reason in failed.values()):
            self._why.update({table: _sentence(reason) for table, reason in failed.items()})
            self._write_note(commit_user, {"why": self._why, "tried": entry.commit_id})
            for table, reason in failed.items():
                log.warning("%s is carried: %s", table, _sentence(reason))
            return _left(entry, parts, owed, failed)
        first = next(iter(failed.values()))
        told = "; ".join(f"{table}: {_sentence(reason)}" for table, reason in list(failed.items())[:_SHOWN])
        more = f"; and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        kind = type(first) if isinstance(first, PwcError) else StorageError
        raise kind(
            f"Batch {entry.batch_id} of {commit_user!r} is decided, in {self.home.label} as snapshot "
            f"{entry.snapshot_id}, and {len(failed)} of its {len(found)} tables are not known to have it yet. Its rows "
            "are kept. Restart the query, or run the job again with its identifier, or pwc deliver, and they are "
            f"brought there, once. {told}{more}"
        ) from first

    def owed(self, entry: LedgerEntry, part: OutboxPart) -> list[Owed]:
        """What each table is to get. Raises ``CorruptTableError`` where that cannot be read any more."""
        assert entry.outbox is not None
        try:
            manifest = read_manifest(self.home, part.file)
        except FileNotFoundError:
            raise CorruptTableError(
                f"{part.file} of {self.home.label} is gone: it named the data files of {part.rows:,} rows, which may "
                "be in no table. Nothing was deleted. Restore the file; or roll the home back to before snapshot "
                f"{entry.snapshot_id}, and write the batch again."
            ) from None
        carried = part.carried
        number, commit_id = (
            (entry.outbox.number, entry.commit_id or "") if carried is None else (carried.number, carried.commit_id)
        )
        found = (
            manifest.tables if carried is None else [each for each in manifest.tables if each.table in carried.tables]
        )
        return [Owed(number, commit_id, manifest, each) for each in found]

    def _sorted(self, parts: Sequence[OutboxPart]) -> tuple[tuple[OutboxPart, ...], tuple[OutboxPart, ...]]:
        """Those for a quarantine, and those for the tables that rows chose."""
        routed = tuple(part for part in parts if is_manifest(self.home, part.file))
        return tuple(part for part in parts if part not in routed), routed

    # ------------------------------------------------------------ the note that all is delivered

    def _is_noted(self, commit_user: str, entry: LedgerEntry) -> bool:
        """Whoever finds no note looks into the tables again."""
        try:
            return bool(read_note(self.home, commit_user).get("done") == entry.commit_id)
        except (OSError, PwcError, ValueError, TypeError, AttributeError):
            return False

    def _note(self, commit_user: str, entry: LedgerEntry) -> None:
        self._write_note(commit_user, {"done": entry.commit_id})

    def _write_note(self, commit_user: str, said: Mapping[str, Any]) -> None:
        with suppress(OSError, PwcError):
            self.home.side_files.write_cache(_note(commit_user), json.dumps(said).encode("utf-8"))

    # ------------------------------------------------------------ files

    def drop(self, plan: Plan, parts: Sequence[OutboxPart]) -> None:
        bad, routed = self._sorted(parts)
        self.quarantine.drop(plan, bad)
        if not plan.in_any_order:
            # May go: another put brought the batch in. One that is spent stays for as long as its snapshot, and that of
            # a job may have been put by us before a later one.
            self.home.files.drop(part.file for part in routed if part.file in self._written)

    def replayed(self, plan: Plan, entry: LedgerEntry | None) -> None:
        """The batch was in before: only what its put names is delivered, and what this try wrote goes."""
        try:
            named = self._named(plan, entry)
        except (OSError, PwcError) as error:
            log.warning("Left the files of a replay of %s behind: %s", name_of(plan), error)
            return
        if named is None:
            return

        def spared(part: RoutedFiles, table: Table) -> frozenset[str] | None:
            own = frozenset(named.get(part.table, ()))
            # A job that somebody let in a second time is in with the files of both.
            return with_live_files(table, own) if plan.in_any_order else own

        self.courier.drop(plan.routed, spared=spared)

    def _named(self, plan: Plan, entry: LedgerEntry | None) -> Mapping[str, Sequence[str]] | None:
        """Files that the put of the batch named, by their table. None: nobody can tell any more."""
        holder = None if entry is None else snapshot_that_holds(self.home, plan, entry)
        if holder is None:
            return None
        outbox: Outbox | None = holder.outbox
        if outbox is None:
            ledger = self.home.commits.ledger_at(holder.snapshot_id, commit_user=plan.commit_user)
            known = ledger.entries.get(plan.commit_user)
            outbox = known.outbox if known is not None and known.commit_id == holder.commit_id else None
            if outbox is None:
                return None
        found: dict[str, list[str]] = {}
        for part in self._sorted(outbox.parts)[1]:
            for table in read_manifest(self.home, part.file).tables:
                found.setdefault(table.table, []).extend(file.path for file in table.files)
        return found

    def refused(self, plan: Plan) -> None:
        self.quarantine.refused(plan)
        for part in plan.routed:
            with suppress(OSError, PwcError):
                table = self.courier.existing(part)
                if table is not None:
                    drop_unpublished_files(table, replace(plan, files=part.files))

    def aborted(self, parts: Sequence[RoutedFiles]) -> None:
        """A batch whose commit was never tried."""
        self.courier.drop(parts, spared=lambda part, table: frozenset())


def _left(
    entry: LedgerEntry, parts: Sequence[OutboxPart], owed: Mapping[str, Sequence[Owed]], failed: Collection[str]
) -> tuple[OutboxPart, ...]:
    found = (_carried(entry, part, owed[part.file], failed) for part in parts)
    return tuple(part for part in found if part is not None)


def _carried(entry: LedgerEntry, part: OutboxPart, owed: Sequence[Owed], failed: Collection[str]) -> OutboxPart | None:
    """What is left of a part for the tables that failed. None: nothing."""
    left = [each for each in owed if each.part.table in failed]
    if not left:
        return None
    since_ms = entry.at_ms if part.carried is None else part.carried.since_ms
    tables = tuple(each.part.table for each in left)
    return replace(
        part,
        rows=sum(each.part.rows for each in left),
        size_bytes=sum(each.part.size_bytes for each in left),
        carried=Carried(left[0].number, left[0].commit_id, since_ms, tables),
    )


def read_note(home: Table, commit_user: str) -> Any:
    """What was noted of a user's last delivery: that it is done, or why some of it is not."""
    return read_json(home.side_files.read_cache(_note(commit_user)))


def _note(commit_user: str) -> str:
    return f"routes-{sha256(commit_user.encode('utf-8')).hexdigest()[:24]}"


def _sentence(reason: Exception) -> str:
    return str(reason) if isinstance(reason, PwcError) else f"{type(reason).__name__}: {reason}"
