"""What a home owes, shown and delivered by whomever: a person, or a job that has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from paimon_sink.commit.decide import Policy
from paimon_sink.core.clock import Clock, SystemClock
from paimon_sink.core.errors import OptionError, PwcError
from paimon_sink.core.options import Options
from paimon_sink.formats.contract import Table
from paimon_sink.formats.ledger import LedgerEntry
from paimon_sink.route.at_once import Done, Failed, at_once
from paimon_sink.route.deliver import Courier, LoadListeners, Owed, no_listeners
from paimon_sink.route.manifest import is_manifest
from paimon_sink.route.outbox import Routes, read_note
from paimon_sink.route.tables import Tables

__all__ = ["Settled", "Waiting", "settle_home", "waiting_in"]


@dataclass(frozen=True)
class Settled:
    """What was looked at, and what is left."""

    home: str
    users: tuple[str, ...]
    """Those whose last batch owed rows to tables, whether they were delivered before or now."""
    rows: int
    """In all of what they owed."""
    left: Mapping[str, str]
    """By commit user: why some of it could not be delivered."""


@dataclass(frozen=True)
class Waiting:
    """What one table is still to get of one commit user."""

    commit_user: str
    table: str
    batches: tuple[int, ...]
    rows: int
    size_bytes: int
    since_ms: int
    why: str | None
    """What was noted when it was last tried. None: nobody tried yet, or the note is gone."""


def home_of_options(options: Options) -> Table:
    if options.table.name is None:
        raise OptionError("The tables of a home are found by their names. Name the home by warehouse and table.")
    return Tables(options).home()


def settle_home(options: Options, *, load_listeners: LoadListeners = no_listeners) -> Settled:
    """Deliver what each commit user owes. Whoever does it at the same time changes nothing."""
    home = home_of_options(options)
    policy = Policy(on_ledger_lost=options.commit.on_ledger_lost)
    # Now, or it is told why not.
    at_once_all = replace(options, route=replace(options.route, regional=False))
    users, rows, left = [], 0, {}
    for user, entry in _owing(home):
        assert entry.outbox is not None
        users.append(user)
        rows += sum(part.rows for part in entry.outbox.parts if is_manifest(home, part.file))
        try:
            Routes(home, at_once_all, policy, load_listeners).deliver(user, entry)
        except (PwcError, OSError) as error:
            left[user] = str(error)
    return Settled(home.label, tuple(users), rows, left)


def waiting_in(options: Options, *, clock: Clock | None = None) -> list[Waiting]:
    """What tables do not have yet, by their own ledgers. A table that does not answer counts as waiting."""
    home = home_of_options(options)
    return [
        waiting
        for user, entry in _owing(home)
        for waiting in _waiting_of(home, options, user, entry, clock or SystemClock())
    ]


def _owing(home: Table) -> Iterator[tuple[str, LedgerEntry]]:
    for user, entry in home.commits.load_head(commit_user="").ledger.entries.items():
        if entry.outbox is not None and any(is_manifest(home, part.file) for part in entry.outbox.parts):
            yield user, entry


def _waiting_of(home: Table, options: Options, user: str, entry: LedgerEntry, clock: Clock) -> Iterator[Waiting]:
    assert entry.outbox is not None
    routes = Routes(home, options, clock=clock)
    since_ms: dict[int, int] = {}
    owed: dict[str, list[Owed]] = {}
    for part in entry.outbox.parts:
        if is_manifest(home, part.file):
            for each in routes.owed(entry, part):
                since_ms[each.number] = entry.at_ms if part.carried is None else part.carried.since_ms
                owed.setdefault(each.part.table, []).append(each)
    works = {table: partial(_lacking, routes.courier, some) for table, some in owed.items()}
    why = _noted(home, user)
    for table, found in at_once(works, threads=options.route.threads).items():
        lacking = found.value if isinstance(found, Done) else owed[table]
        if lacking:
            yield Waiting(
                user,
                table,
                tuple(sorted(each.manifest.batch_id for each in lacking)),
                sum(each.part.rows for each in lacking),
                sum(each.part.size_bytes for each in lacking),
                min(since_ms[each.number] for each in lacking),
                str(found.reason) if isinstance(found, Failed) else why.get(table),
            )


def _lacking(courier: Courier, owed: list[Owed]) -> list[Owed]:
    return [each for each in owed if courier.taken(each) is False]


def _noted(home: Table, user: str) -> dict[str, str]:
    try:
        return {str(table): str(why) for table, why in read_note(home, user).get("why", {}).items()}
    except (OSError, PwcError, ValueError, TypeError, AttributeError):
        return {}
