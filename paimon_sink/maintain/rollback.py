"""Rolling a table back: what it means is told first, then it is done.

A rollback makes an older snapshot the newest. The batches above it are no longer in, and the ledger says so: each comes
in again when it is replayed. Whoever wrote them does not know that, so their checkpoints have to be set back as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paimon_sink.core.errors import OptionError, SnapshotExpiredError
from paimon_sink.core.names import nearest_name
from paimon_sink.formats.contract import Table
from paimon_sink.formats.lineage import Consumer
from paimon_sink.formats.refs import RolledBack
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.maintain.tags import shown

__all__ = ["RollbackPlan", "UserLoss", "plan_rollback", "roll_back"]

_ID = re.compile(r"[0-9]{1,19}", re.ASCII)


@dataclass(frozen=True)
class UserLoss:
    """What a commit user loses by a rollback."""

    user: str
    snapshots: int
    batches: tuple[int, ...]
    """In the order of their snapshots. Other engines' work has none."""
    rows: int | None
    last: int | None
    """The last batch that the ledger has of it afterwards."""
    knows: bool
    """Whether a batch without an entry is known to be new. Else the ledger cannot tell, and refuses some."""


@dataclass(frozen=True)
class RollbackPlan:
    """What becomes of a table."""

    table: str
    to: SnapshotInfo
    tag: str | None
    """The name that was given, where one was."""
    newest: SnapshotInfo
    going: tuple[SnapshotInfo, ...]
    """The newest first."""
    users: tuple[UserLoss, ...]
    tags: tuple[str, ...]
    """On snapshots that go."""
    takes_tags_along: bool
    branches: tuple[str, ...]
    """That stand on what goes, and keep it."""
    consumers: tuple[Consumer, ...]
    """Readers that have read past it."""

    @property
    def is_nothing(self) -> bool:
        return not self.going and not (self.tags and self.takes_tags_along)


def plan_rollback(table: Table, to: str) -> RollbackPlan:
    """What rolling back to a snapshot or tag means. Changes nothing. Raises where it cannot be."""
    line = table.upkeep.history()
    if not line:
        branch = None if table.branches is None else table.branches.own
        if table.branches is not None and branch not in (table.branches.main, *table.branches.all()):
            raise OptionError(f"Cannot roll back the branch {branch!r} of {table.label}: there is none of that name.")
        raise OptionError(f"Cannot roll back {table.label}: it has no snapshot yet.")
    tagged = table.refs.tagged()
    target, tag = _target(table, to, line, tagged)
    ids = [snapshot.snapshot_id for snapshot in line]
    # One that its tag alone keeps is below all that stand.
    going = line[ids.index(target.snapshot_id) + 1 :] if target.snapshot_id in ids else line
    gone = {snapshot.snapshot_id for snapshot in going}
    lost_tags = [name for name, each in tagged.items() if each.snapshot_id in gone or _is_left(table, each, ids)]
    return RollbackPlan(
        table=table.label,
        to=target,
        tag=tag,
        newest=line[-1],
        going=tuple(reversed(going)),
        users=tuple(_losses(table, target, going)),
        tags=tuple(sorted(name for name in lost_tags if table.refs.consumer_of(name) is None)),
        takes_tags_along=table.refs.takes_tags_along,
        branches=tuple(_branches_on(table, gone)),
        consumers=tuple(_readers_above(table, gone, line[-1].snapshot_id)),
    )


def roll_back(table: Table, plan: RollbackPlan) -> RolledBack:
    """Do what was planned, if the table is still what it was. Raises ``CommitConflictError`` where it is not."""
    return table.refs.roll_back(plan.to.snapshot_id, newest=plan.newest.snapshot_id, tag=plan.tag)


# ---------------------------------------------------------------- where to


def _target(
    table: Table, to: str, line: Sequence[SnapshotInfo], tagged: Mapping[str, SnapshotInfo]
) -> tuple[SnapshotInfo, str | None]:
    by_tag = tagged.get(to)
    number = int(to) if _ID.fullmatch(to) else None
    by_id = next((each for each in line if each.snapshot_id == number), None)
    if by_tag is not None and by_id is not None and by_tag.snapshot_id != number:
        raise OptionError(
            f"Cannot roll back {table.label}: {to} is the id of a snapshot, and a tag of that name is on snapshot "
            f"{by_tag.snapshot_id}. Give the snapshot that is meant another tag, and name that."
        )
    if by_id is not None:
        return by_id, None
    name = to if by_tag is not None else next((key for key, each in tagged.items() if each.snapshot_id == number), None)
    if name is None:
        raise _unknown(table, to, number, line, tagged)
    snapshot = tagged[name]
    if any(each.snapshot_id == snapshot.snapshot_id for each in line) or _can_come_back(table, snapshot, line):
        return snapshot, name
    raise OptionError(
        f"Cannot roll back {table.label} to {to}: snapshot {snapshot.snapshot_id} is not one that the newest, "
        f"{line[-1].snapshot_id}, was built on, or what led from it has expired. Read it with versionAsOf={name}, and "
        "overwrite the table with it."
    )


def _can_come_back(table: Table, snapshot: SnapshotInfo, line: Sequence[SnapshotInfo]) -> bool:
    """Whether a snapshot that its tag alone keeps takes its place in the line again."""
    return table.refs.takes_tags_along and snapshot.snapshot_id < line[0].snapshot_id


def _is_left(table: Table, snapshot: SnapshotInfo, ids: Sequence[int]) -> bool:
    """A tag of what went, left by a rollback that was broken off."""
    return table.refs.takes_tags_along and snapshot.snapshot_id > ids[-1]


def _unknown(
    table: Table, to: str, number: int | None, line: Sequence[SnapshotInfo], tagged: Mapping[str, SnapshotInfo]
) -> OptionError | SnapshotExpiredError:
    what = f"Cannot roll back {table.label} to {to}"
    stand = f"Those that stand are {line[0].snapshot_id} to {line[-1].snapshot_id}; pwc history lists them."
    names = sorted(name for name in tagged if table.refs.consumer_of(name) is None)
    if number is None:
        nearest = nearest_name(to, names)
        hint = f" Did you mean {nearest}?" if nearest is not None else ""
        return OptionError(f"{what}: it is neither the id of a snapshot nor a tag.{hint} Its tags: {shown(names)}.")
    if table.refs.takes_tags_along and number > line[-1].snapshot_id:
        return OptionError(f"{what}: the newest snapshot is {line[-1].snapshot_id}. {stand}")
    return SnapshotExpiredError(
        f"{what}: that is none of the snapshots that the newest was built on: it has expired, is of another branch, or "
        f"never was one. {stand}"
    )


# ---------------------------------------------------------------- what goes


def _losses(table: Table, target: SnapshotInfo, going: Sequence[SnapshotInfo]) -> list[UserLoss]:
    by_user: dict[str, list[SnapshotInfo]] = {}
    for snapshot in going:
        if not (snapshot.is_rewrite and snapshot.batch_id is None):
            by_user.setdefault(snapshot.commit_user or "", []).append(snapshot)
    losses = []
    for user, snapshots in by_user.items():
        ledger = table.commits.ledger_at(target.snapshot_id, commit_user=user)
        entry = ledger.entries.get(user)
        rows = [snapshot.rows_added for snapshot in snapshots]
        known = [number for number in rows if number is not None]
        losses.append(
            UserLoss(
                user,
                len(snapshots),
                tuple(snapshot.batch_id for snapshot in snapshots if snapshot.batch_id is not None),
                sum(known) if len(known) == len(rows) else None,
                None if entry is None else entry.batch_id,
                entry is not None or ledger.complete,
            )
        )
    return losses


def _branches_on(table: Table, gone: set[int]) -> list[str]:
    if table.branches is None:
        return []
    others = [name for name in table.branches.all() if name != table.branches.own]
    return sorted(name for name in others if any(each.snapshot_id in gone for each in table.branches.line(name)))


def _readers_above(table: Table, gone: set[int], newest: int) -> list[Consumer]:
    consumers = [] if table.consumers is None else table.consumers.all()
    # Other engines' readers name the snapshot that comes next, which may not be there yet.
    return [each for each in consumers if each.snapshot_id in gone or (gone and each.snapshot_id == newest + 1)]
