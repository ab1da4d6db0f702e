"""What to say where a read asks for a snapshot that is not there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from paimon_sink.core.errors import OptionError, SnapshotExpiredError, SourceChangedError
from paimon_sink.core.names import nearest_name
from paimon_sink.formats.values import SnapshotRange

__all__ = [
    "ambiguous_version",
    "as_number",
    "expired",
    "no_such_version",
    "nothing_then",
    "range_is_empty",
    "rows_taken_out",
]

_MOST_SHOWN = 10


def as_number(version: str) -> int | None:
    """What ``versionAsOf`` says as the id of a snapshot, if it may be one."""
    return int(version) if re.fullmatch(r"[0-9]{1,19}", version, re.ASCII) else None


def no_such_version(table: str, version: str, tags: Sequence[str]) -> OptionError:
    nearest = nearest_name(version, list(tags))
    shown = ", ".join(sorted(tags)[:_MOST_SHOWN]) or "none"
    hint = f" Did you mean {nearest}?" if nearest is not None else ""
    return OptionError(
        f"Cannot read {table}: versionAsOf={version} is neither the id of a snapshot nor a tag. Its tags: "
        f"{shown}.{hint} `pwc history` lists the snapshots."
    )


def ambiguous_version(table: str, version: str, tagged: int) -> OptionError:
    return OptionError(
        f"Cannot read {table}: versionAsOf={version} is the id of a snapshot, and a tag of that name is on snapshot "
        f"{tagged}. Give the snapshot that is meant another tag, or name it by its id."
    )


def expired(table: str, what: str, *, oldest: int | None) -> SnapshotExpiredError:
    stands = "" if oldest is None else f" The oldest that stands is {oldest}."
    return SnapshotExpiredError(
        f"Cannot read {table}: {what} has expired.{stands} A tag keeps a snapshot from expiring."
    )


def nothing_then(
    table: str, at_ms: int, oldest_ms: int | None, *, expired_before: bool = False
) -> OptionError | SnapshotExpiredError:
    """No snapshot is as old as a read asks for."""
    if oldest_ms is None:
        return OptionError(f"Cannot read {table} as of {moment(at_ms)}: it has no snapshot yet.")
    oldest = f"The oldest that stands is of {moment(oldest_ms)}."
    if expired_before:
        return SnapshotExpiredError(
            f"Cannot read {table} as of {moment(at_ms)}: the snapshots of that time have expired. {oldest}"
        )
    return OptionError(f"Cannot read {table} as of {moment(at_ms)}: it had no snapshot then. {oldest}")


def range_is_empty(table: str, span: SnapshotRange) -> OptionError:
    first = f"startingVersion={span.first}" if span.first is not None else f"startingTimestamp={_given(span.from_ms)}"
    last = (
        f"endingVersion={span.last}"
        if span.last is not None
        else f"endingTimestamp={_given(span.to_ms)}"
        if span.to_ms is not None
        else "the newest snapshot"
    )
    return OptionError(f"Cannot read {table}: there is no snapshot from {first} to {last}.")


def rows_taken_out(table: str, snapshot_id: int, kind: str) -> SourceChangedError:
    return SourceChangedError(
        f"Cannot read what was added to {table}: snapshot {snapshot_id} ({kind}) took rows out, too. Read the "
        "snapshots before and after it as ranges of their own, or set skipChangeCommits=true to pass over such "
        "snapshots, with the rows they added."
    )


def moment(at_ms: int) -> str:
    """A time as people write it, to the millisecond."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def _given(at_ms: int | None) -> str:
    return "" if at_ms is None else moment(at_ms)
