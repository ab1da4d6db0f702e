"""What must hold before files take the place of others, in any format."""

from __future__ import annotations

from collections.abc import Set

from paimon_sink.core.errors import FilesReplacedError, RefusedError
from paimon_sink.formats.values import CommitKind, Plan

__all__ = ["check_all_there", "check_rows"]


def check_all_there(removed: Set[str], present: Set[str], *, table: str) -> None:
    """Raise unless all of the files to replace are in the snapshot to build on."""
    gone = removed - present
    if gone:
        raise FilesReplacedError(
            f"Cannot rewrite files of {table}: {len(gone)} of the {len(removed)} files to replace are not in the table "
            f"any more, such as {min(gone)}. Somebody replaced or deleted them meanwhile. Nothing was committed; run "
            "it again."
        )


def check_rows(before: int, plan: Plan, *, table: str) -> None:
    """Raise unless each row of the files to replace, ``before`` in all, is in a new one or was to go."""
    kept, taken = (plan.rows, 0) if plan.kind is CommitKind.REWRITE else (plan.kept_rows, plan.taken_rows)
    if before != kept + taken:
        took = f" and {taken:,} were to go" if taken else ""
        raise RefusedError(
            f"Cannot rewrite files of {table}: the new files have {kept:,} rows{took}, those to replace have "
            f"{before:,}. Nothing was committed. Check the table with pwc verify --deep."
        )
