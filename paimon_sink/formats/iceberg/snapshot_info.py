"""An Iceberg snapshot in the words of the contract."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table.snapshots import Operation, Snapshot

from paimon_sink.core.properties import BATCH_ID, COMMIT_ID, COMMIT_USER, QUERY_ID
from paimon_sink.formats.iceberg.ledger import properties_of, watermark_of
from paimon_sink.formats.values import SnapshotInfo, SnapshotKind

_MOST_DIGITS = 19
_EFFECTS = {
    Operation.APPEND: SnapshotKind.APPEND,
    Operation.OVERWRITE: SnapshotKind.OVERWRITE,
    Operation.REPLACE: SnapshotKind.REWRITE,
}


@dataclass(frozen=True, kw_only=True)
class IcebergSnapshotInfo(SnapshotInfo):
    snapshot: Snapshot


def snapshot_info(snapshot: Snapshot) -> IcebergSnapshotInfo:
    properties = properties_of(snapshot)
    return IcebergSnapshotInfo(
        snapshot_id=snapshot.snapshot_id,
        kind="unknown" if snapshot.summary is None else str(snapshot.summary.operation.value),
        effect=SnapshotKind.OTHER
        if snapshot.summary is None
        else _EFFECTS.get(snapshot.summary.operation, SnapshotKind.OTHER),
        commit_user=properties.get(COMMIT_USER),
        batch_id=_number(properties.get(BATCH_ID)),
        query_id=properties.get(QUERY_ID),
        commit_id=properties.get(COMMIT_ID),
        at_ms=snapshot.timestamp_ms,
        rows=_number(properties.get("total-records")),
        rows_added=_difference(properties, "added-records", "deleted-records"),
        properties=properties,
        snapshot=snapshot,
        files_added=_number(properties.get("added-data-files")),
        bytes_added=_number(properties.get("added-files-size")),
        watermark_ms=watermark_of(properties),
        schema_id=snapshot.schema_id,
    )


def _number(text: str | None) -> int | None:
    """A figure, if it is one: int() refuses very long ones."""
    return int(text) if text is not None and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _difference(properties: dict[str, str], added: str, deleted: str) -> int | None:
    """Iceberg leaves out a figure that is zero."""
    more, less = _number(properties.get(added, "0")), _number(properties.get(deleted, "0"))
    return None if more is None or less is None else more - less
