"""What must hold before files take the place of others with the same rows, in any format."""

from __future__ import annotations

from collections.abc import Set

from paimon_sink.core.errors import FilesReplacedError, RefusedError

__all__ = ["check_all_there", "check_same_rows"]


def check_all_there(removed: Set[str], present: Set[str], *, table: str) -> None:
    """Raise unless all of the files to replace are in the snapshot to build on."""
    gone = removed - present
    if gone:
        raise FilesReplacedError(
            f"Cannot compact {table}: {len(gone)} of the {len(removed)} files to replace are not in the table any "
            f"more, such as {min(gone)}. Somebody replaced or deleted them meanwhile. Nothing was committed; run it "
            "again."
        )


def check_same_rows(before: int, after: int, *, table: str) -> None:
    if before != after:
        raise RefusedError(
            f"Cannot compact {table}: the new files have {after:,} rows, those to replace have {before:,}. Nothing was "
            "committed. Check the table with pwc verify --deep."
        )
