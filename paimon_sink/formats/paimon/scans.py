"""Reading the newest snapshot of a Paimon table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pypaimon.read.split_serializer import deserialize_split_v1, serialize_split_v1

from paimon_sink.core.errors import TableChangedError
from paimon_sink.formats.contract import Scans
from paimon_sink.formats.paimon.compacting import is_rewritable, live_file, require_no_deletes
from paimon_sink.formats.paimon.handle import PaimonHandle
from paimon_sink.formats.paimon.predicates import partition_predicate
from paimon_sink.formats.values import FilterTree, LiveFile, Split


class PaimonScans(Scans):
    def __init__(self, handle: PaimonHandle) -> None:
        self._handle = handle

    def plan_splits(self, filters: Sequence[FilterTree]) -> list[Split]:
        native = self._handle.native
        builder = native.new_read_builder()
        predicate = partition_predicate(filters, native, self._handle.schema)
        if predicate is not None:
            builder = builder.with_partition_filter(predicate)
        return [Split(serialize_split_v1(split), split.row_count) for split in builder.new_scan().plan().splits()]

    def read_split(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        native = self._handle.native
        native_split = deserialize_split_v1(split.body, native.partition_keys_fields)
        builder = native.new_read_builder().with_projection(list(columns))
        yield from builder.new_read().to_arrow_batch_reader([native_split])

    def list_live_files(self, filters: Sequence[FilterTree]) -> list[LiveFile]:
        handle = self._handle
        newest = handle.snapshots.newest()
        if newest is None:
            return []
        # After the snapshot: then none of its files has a column that is not known here.
        if max(handle.schemas.ids(), default=None) != handle.schema_id:
            raise TableChangedError(
                f"The columns of {handle.label} changed while it was in use. Nothing was done; run it again."
            )
        require_no_deletes(newest, table=handle.label)
        predicate = partition_predicate(filters, handle.native, handle.schema)
        live = handle.live_entries(newest, handle.manifests_of(newest), predicate, drop_stats=True)
        return [live_file(entry, handle.native, path=handle.path_of(entry)) for entry in live if is_rewritable(entry)]
