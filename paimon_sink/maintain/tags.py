"""Tags as people set them: names are checked, and one that is taken is an error."""

from __future__ import annotations

from dataclasses import dataclass

from paimon_sink.core.errors import OptionError, SnapshotExpiredError
from paimon_sink.core.names import nearest_name
from paimon_sink.formats.contract import Table
from paimon_sink.formats.values import SnapshotInfo

__all__ = ["Tag", "check_name", "create_tag", "delete_tag", "list_tags"]

_MOST_SHOWN = 10
_OURS = "pwc-"


@dataclass(frozen=True)
class Tag:
    name: str
    snapshot: SnapshotInfo
    consumer: str | None = None
    """The reader that it holds snapshots for, where it is one of those."""


def list_tags(table: Table) -> list[Tag]:
    """All tags, by their snapshots' time."""
    tags = [Tag(name, snapshot, table.refs.consumer_of(name)) for name, snapshot in table.refs.tagged().items()]
    return sorted(tags, key=lambda tag: (tag.snapshot.at_ms, tag.snapshot.snapshot_id, tag.name))


def create_tag(table: Table, name: str, *, snapshot_id: int | None = None) -> Tag:
    """Give the newest snapshot a name, or another one. Raises ``OptionError`` where that cannot be."""
    what = f"Cannot tag {table.label}"
    check_name(name, what=what, kind="tag")
    taken = table.refs.tagged().get(name)
    if taken is not None:
        raise OptionError(f"{what}: the tag {name!r} is on snapshot {taken.snapshot_id} already. {_OTHER}")
    problem = table.refs.name_problem(name)
    if problem is not None or table.refs.consumer_of(name) is not None:
        raise OptionError(f"{what}: the name {name!r} {problem or 'is one that readers hold snapshots by'}. {_OTHER}")
    if snapshot_id is None:
        standing = table.upkeep.history(newest=1)
        if not standing:
            raise OptionError(f"{what}: it has no snapshot yet. Write to it first.")
        snapshot_id = standing[-1].snapshot_id
    if not table.refs.tag(name, snapshot_id):
        raise _not_there(table, snapshot_id, what=what)
    now = table.refs.tagged().get(name)
    if now is None or now.snapshot_id != snapshot_id:
        where = "was removed again" if now is None else f"went to snapshot {now.snapshot_id}"
        raise OptionError(f"{what}: the tag {name!r} {where} meanwhile. Somebody else is at it.")
    return Tag(name, now)


_OTHER = "Choose another name, or delete that one first."


def delete_tag(table: Table, name: str) -> Tag:
    """Take a name away. Raises ``OptionError`` where there is no such tag."""
    tags = {tag.name: tag for tag in list_tags(table)}
    tag = tags.get(name)
    if tag is None:
        names = sorted(each.name for each in tags.values() if each.consumer is None)
        nearest = nearest_name(name, names)
        hint = f" Did you mean {nearest}?" if nearest is not None else ""
        raise OptionError(f"{table.label} has no tag {name!r}.{hint} Its tags: {shown(names)}.")
    if tag.consumer is not None:
        raise OptionError(
            f"Cannot delete the tag {name!r} of {table.label}: by it the reader {tag.consumer} holds what it still "
            f"needs. If that is gone for good: pwc expire … --consumer {tag.consumer}"
        )
    table.refs.drop_tag(name)
    return tag


def shown(names: list[str]) -> str:
    """Some names in a sentence."""
    more = f" and {len(names) - _MOST_SHOWN:,} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(names[:_MOST_SHOWN]) + more or "none"


def check_name(name: str, *, what: str, kind: str) -> None:
    """Refuse what would be mistaken for something else. Names of listeners and other engines are not asked."""
    problem = None
    if not name.strip():
        problem = "is empty"
    elif name != name.strip():
        problem = "begins or ends with a space"
    elif not name.isprintable():
        problem = "has a character that cannot be printed"
    elif name in (".", "..") or name.startswith("-"):
        problem = "would be taken for a path or a flag"
    elif name.startswith(_OURS):
        problem = "begins as names that this package gives"
    elif name.isdigit():
        problem = "has only digits, and would be taken for the id of a snapshot"
    if problem is not None:
        raise OptionError(f"{what}: the name {name!r} of the {kind} {problem}. Choose another, such as release-2026.")


def _not_there(table: Table, snapshot_id: int, *, what: str) -> OptionError | SnapshotExpiredError:
    ids = [snapshot.snapshot_id for snapshot in table.upkeep.history()]
    if not ids:
        return OptionError(f"{what}: it has no snapshot yet. Write to it first.")
    if snapshot_id in ids:
        return SnapshotExpiredError(
            f"{what}: snapshot {snapshot_id} is about to expire, and a tag would come too late. Tag a newer one; the "
            f"newest is {ids[-1]}."
        )
    return SnapshotExpiredError(
        f"{what}: {snapshot_id} is none of its snapshots: it has expired, or never was one. Those that stand are "
        f"{ids[0]} to {ids[-1]}; pwc history lists them."
    )
