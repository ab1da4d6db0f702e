"""An Iceberg snapshot in the words of the contract."""

from __future__ import annotations

from pyiceberg.table.snapshots import Operation, Snapshot

from paimon_sink.core.properties import BATCH_ID, COMMIT_ID, COMMIT_USER, QUERY_ID
from paimon_sink.formats.base import SnapshotInfo
from paimon_sink.formats.iceberg.ledger import properties_of, watermark_of

__all__ = ["snapshot_info"]

_MOST_DIGITS = 19


def snapshot_info(snapshot: Snapshot) -> SnapshotInfo:
    said = properties_of(snapshot)
    return SnapshotInfo(
        snapshot_id=snapshot.snapshot_id,
        kind="unknown" if snapshot.summary is None else str(snapshot.summary.operation.value),
        commit_user=said.get(COMMIT_USER),
        batch_id=_number(said.get(BATCH_ID)),
        query_id=said.get(QUERY_ID),
        commit_id=said.get(COMMIT_ID),
        at_ms=snapshot.timestamp_ms,
        rows=_number(said.get("total-records")),
        rows_added=_difference(said, "added-records", "deleted-records"),
        properties=said,
        native=snapshot,
        files_added=_number(said.get("added-data-files")),
        bytes_added=_number(said.get("added-files-size")),
        watermark_ms=watermark_of(said),
        is_rewrite=snapshot.summary is not None and snapshot.summary.operation is Operation.REPLACE,
    )


def _number(text: str | None) -> int | None:
    """A figure, if it is one: int() refuses very long ones."""
    return int(text) if text is not None and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _difference(said: dict[str, str], added: str, deleted: str) -> int | None:
    """Iceberg leaves out a figure that is zero."""
    more, less = _number(said.get(added, "0")), _number(said.get(deleted, "0"))
    return None if more is None or less is None else more - less
