"""Delivering all that a home owes, by whomever: a person, or a job that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paimon_sink.commit.decide import Policy
from paimon_sink.core.errors import OptionError, PwcError
from paimon_sink.core.options import Options
from paimon_sink.route.deliver import LoadListeners, no_listeners
from paimon_sink.route.manifest import is_manifest
from paimon_sink.route.outbox import Routes
from paimon_sink.route.tables import Tables

__all__ = ["Settled", "settle_home"]


@dataclass(frozen=True)
class Settled:
    """What was looked at, and what is left."""

    home: str
    users: tuple[str, ...]
    """Those whose last batch owed rows to tables, whether they were delivered before or now."""
    rows: int
    """In all of those batches."""
    left: Mapping[str, str]
    """By commit user: why some of it could not be delivered."""


def settle_home(options: Options, *, load_listeners: LoadListeners = no_listeners) -> Settled:
    """Deliver what the last batch of each commit user owes. Whoever does it at the same time changes nothing."""
    if options.table.name is None:
        raise OptionError("The tables of a home are found by their names. Name the home by warehouse and table.")
    home = Tables(options).home()
    policy = Policy(on_ledger_lost=options.commit.on_ledger_lost)
    users, rows, left = [], 0, {}
    for user, entry in home.commits.load_head(commit_user="").ledger.entries.items():
        routed = [] if entry.outbox is None else [each for each in entry.outbox.parts if is_manifest(home, each.file)]
        if not routed:
            continue
        users.append(user)
        rows += sum(part.rows for part in routed)
        try:
            Routes(home, options, policy, load_listeners).deliver(user, entry)
        except (PwcError, OSError) as error:
            left[user] = str(error)
    return Settled(home.label, tuple(users), rows, left)
