"""History, expiry and audits of a Paimon table."""

from __future__ import annotations

from collections.abc import Sequence

from paimon_sink.formats.contract import Upkeep
from paimon_sink.formats.expiry import TableRetention
from paimon_sink.formats.paimon.audit import PaimonAudit
from paimon_sink.formats.paimon.expiry import PaimonExpiry, PaimonExpirySource
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.retention import table_retention
from paimon_sink.formats.paimon.snapshot_info import snapshot_infos
from paimon_sink.formats.paimon.snapshots import PaimonSnapshotInfo
from paimon_sink.formats.paimon.stored_rows import PaimonStoredRows
from paimon_sink.formats.values import Expired, SnapshotInfo


class PaimonUpkeep(Upkeep):
    def __init__(self, handle: PaimonHandle) -> None:
        self._handle = handle

    def history(self, *, cached: Sequence[SnapshotInfo] = (), newest: int | None = None) -> list[SnapshotInfo]:
        own = [info for info in cached if isinstance(info, PaimonSnapshotInfo)]
        return list(snapshot_infos(self._handle.snapshots, cached=own, newest=newest))

    def audit(self) -> PaimonAudit:
        return PaimonAudit(self._handle)

    def stored_rows(self) -> PaimonStoredRows:
        return PaimonStoredRows(self._handle)

    def expiry_source(self) -> PaimonExpirySource:
        return PaimonExpirySource(self._handle)

    def own_retention(self) -> TableRetention | None:
        return table_retention(self._handle.native.table_schema.options, table=self._handle.label)

    def expire(self, snapshot_ids: Sequence[int]) -> Expired:
        return PaimonExpiry(self._handle).expire(snapshot_ids)
