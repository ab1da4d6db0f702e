"""History, expiry and audits of an Iceberg table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from paimon_sink.formats.contract import Upkeep
from paimon_sink.formats.iceberg.audit import IcebergAudit
from paimon_sink.formats.iceberg.expiry import IcebergExpiry, IcebergExpirySource
from paimon_sink.formats.iceberg.handle import IcebergHandle
from paimon_sink.formats.iceberg.kept import ancestors
from paimon_sink.formats.iceberg.snapshot_info import snapshot_info
from paimon_sink.formats.iceberg.stored_rows import IcebergStoredRows
from paimon_sink.formats.values import Expired, SnapshotInfo


class IcebergUpkeep(Upkeep):
    def __init__(self, handle: IcebergHandle) -> None:
        self._handle = handle

    def history(self, *, cached: Sequence[SnapshotInfo] = (), newest: int | None = None) -> list[SnapshotInfo]:
        # All of them are in the one file that has to be read in any case: there is nothing to save by ``cached``.
        metadata = self._handle.load().metadata
        newest_first = islice(ancestors(metadata, self._handle.branch_head(metadata)), newest)
        infos: list[SnapshotInfo] = [snapshot_info(snapshot) for snapshot in newest_first]
        return infos[::-1]

    def audit(self) -> IcebergAudit:
        return IcebergAudit(self._handle)

    def stored_rows(self) -> IcebergStoredRows:
        return IcebergStoredRows(self._handle)

    def expiry_source(self) -> IcebergExpirySource:
        # Right after a commit its answer says it all.
        return IcebergExpirySource(self._handle.last_answer.take() or self._handle.load().metadata)

    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        return IcebergExpiry(self._handle).expire(snapshot_ids)
