"""Branches: write to one, look at what it would change, and publish it as the table itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paimon_sink.core.errors import CommitConflictError, OptionError, UnsupportedTableError
from paimon_sink.core.names import nearest_name
from paimon_sink.formats.contract import Table
from paimon_sink.formats.refs import Branches
from paimon_sink.formats.values import SnapshotInfo
from paimon_sink.maintain.tags import check_name, shown

__all__ = ["Difference", "Side", "create_branch", "delete_branch", "difference", "list_branches", "publish_branch"]


@dataclass(frozen=True)
class Side:
    """What one of two lines has that the other has not."""

    name: str
    head: int
    snapshots: tuple[SnapshotInfo, ...]
    """Oldest first."""

    @property
    def rows(self) -> int | None:
        """Rows that came, less those that went."""
        return _sum([snapshot.rows_added for snapshot in self.snapshots])

    @property
    def files(self) -> int | None:
        return _sum([snapshot.files_added for snapshot in self.snapshots])

    @property
    def size_bytes(self) -> int | None:
        return _sum([snapshot.bytes_added for snapshot in self.snapshots])


@dataclass(frozen=True)
class Difference:
    """A branch and main since they parted."""

    table: str
    parted_at: int | None
    """The last snapshot that both have. None: they have none in common that still stands."""
    branch: Side
    main: Side

    @property
    def main_moved_on(self) -> bool:
        return self.parted_at != self.main.head


def list_branches(table: Table) -> dict[str, int]:
    """The newest snapshot of each branch."""
    return _branches(table).all()


def create_branch(table: Table, name: str, *, snapshot_id: int | None = None) -> int:
    """A branch at the newest snapshot of main, or at another one; the answer is its id."""
    branches, what = _branches(table), f"Cannot create a branch of {table.label}"
    check_name(name, what=what, kind="branch")
    heads = branches.all()
    if name == branches.main or name in heads:
        at = f" It is at snapshot {heads[name]}." if name in heads else ""
        raise OptionError(f"{what}: there is one with the name {name!r}.{at} Choose another name.")
    if name in table.refs.tag_names():
        raise OptionError(f"{what}: {name!r} is the name of a tag. Choose another name.")
    if snapshot_id is None:
        snapshot_id = heads.get(branches.main)
    if snapshot_id is None:
        raise OptionError(f"{what}: the table has no snapshot yet, and a branch grows out of one. Write to it first.")
    if not branches.create(name, snapshot_id):
        raise OptionError(
            f"{what}: {snapshot_id} is none of its snapshots: it has expired, or never was one. pwc history lists "
            "those that stand."
        )
    return snapshot_id


def difference(table: Table, name: str) -> Difference:
    """What a branch and main have since they parted."""
    branches = _branches(table)
    heads = _known(table, branches, name)
    mine, theirs = branches.line(name), branches.line(branches.main)
    main_ids = {snapshot.snapshot_id for snapshot in theirs}
    common = [snapshot.snapshot_id for snapshot in mine if snapshot.snapshot_id in main_ids]
    return Difference(
        table=table.label,
        parted_at=common[-1] if common else None,
        branch=Side(name, heads[name], _after(mine, common)),
        main=Side(branches.main, heads[branches.main], _after(theirs, common)),
    )


def publish_branch(table: Table, name: str) -> Difference:
    """Make what a branch has the table itself. Raises ``CommitConflictError`` where main moved on since they parted."""
    found = difference(table, name)
    if found.main_moved_on:
        raise CommitConflictError(
            f"Cannot publish the branch {name!r} of {table.label}: main moved on to snapshot {found.main.head} since "
            f"{_parted(found)}, and publishing would take that back. Nothing was done. Create a branch from main as it "
            "is now, write to that again, and publish it before main moves on; or write to main itself."
        )
    if found.branch.head != found.main.head:
        _branches(table).publish(name, head=found.branch.head, onto=found.main.head)
    return found


def delete_branch(table: Table, name: str) -> Difference:
    """Take a branch away; the answer says what it had. Its snapshots go with the next expiry."""
    found = difference(table, name)
    _branches(table).drop(name, head=found.branch.head)
    return found


def _parted(found: Difference) -> str:
    return "they parted" if found.parted_at is None else f"the branch left it at {found.parted_at}"


def _branches(table: Table) -> Branches:
    if table.branches is None:
        raise UnsupportedTableError(
            f"{table.capabilities.title} tables have no branches here ({table.label}). Write to a table of your own "
            "instead, check that, and insert it; or tag the snapshot before, and roll back to the tag."
        )
    return table.branches


def _known(table: Table, branches: Branches, name: str) -> dict[str, int]:
    heads = branches.all()
    if name == branches.main:
        raise OptionError(f"{name} is the table {table.label} itself, and no branch of it.")
    if name not in heads or branches.main not in heads:
        names = sorted(heads.keys() - {branches.main})
        nearest = nearest_name(name, names)
        hint = f" Did you mean {nearest}?" if nearest is not None else ""
        raise OptionError(f"{table.label} has no branch {name!r}.{hint} Its branches: {shown(names)}.")
    return heads


def _after(line: Sequence[SnapshotInfo], common: Sequence[int]) -> tuple[SnapshotInfo, ...]:
    ids = [snapshot.snapshot_id for snapshot in line]
    return tuple(line[ids.index(common[-1]) + 1 :] if common else line)


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
