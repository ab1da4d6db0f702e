"""What an Iceberg snapshot says, in the words of the contract."""

from __future__ import annotations

import pytest
from pyiceberg.table.snapshots import Snapshot

from paimon_sink.formats.iceberg.snapshot_info import snapshot_info
from paimon_sink.formats.values import SnapshotInfo


def of_summary(**summary: str) -> SnapshotInfo:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in summary.items()}
    return snapshot_info(
        Snapshot.model_validate(
            {
                "snapshot-id": 1,
                "sequence-number": 1,
                "timestamp-ms": 1000,
                "manifest-list": "list.avro",
                "schema-id": 0,
                "summary": {"operation": "append", **named},
            }
        )
    )


def test_figures_of_any_engine_are_read() -> None:
    found = of_summary(added_data_files="2", added_files_size="900", added_records="7", total_records="19")

    assert (found.files_added, found.bytes_added, found.rows_added, found.rows) == (2, 900, 7, 19)


@pytest.mark.parametrize("text", ["", "-3", "many", "9" * 5000], ids=lambda text: text[:5])
def test_what_is_no_figure_says_nothing(text: str) -> None:
    found = of_summary(pwc__batch_id=text, total_records=text, added_records=text, added_data_files=text)

    assert (found.batch_id, found.rows, found.rows_added, found.files_added) == (None,) * 4
