"""What our listeners leave in a table: tags that Java reads, and success files that Java's cleaning leaves alone."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from integration.interop.iceberg.shared import Shared
from tests.support.lake import rows
from tests.support.listeners import with_listener

LATER = "TIMESTAMP '2100-01-01 00:00:00'"
FOUR_DAYS_S = 4 * 24 * 3600


def test_java_reads_our_tags_and_its_expiry_respects_them(shared: Shared) -> None:
    noon = int(datetime(2023, 7, 18, 12, tzinfo=UTC).timestamp() * 1000)
    told = with_listener(shared.lake, "tags", {"mode": "watermark", "period": "hourly"}, watermarkColumn="id")
    for batch in range(3):
        told.append(batch, rows(noon + batch))

    shared.call("rewrite_data_files", options="map('rewrite-all', 'true')")
    shared.call("expire_snapshots", older_than=LATER, retain_last="1")

    tagged = shared.sql("SELECT id FROM {t} VERSION AS OF '2023-07-18 11'")
    assert [row.id for row in tagged] == [noon]
    replace(shared, lake=told).assert_agreed([noon, noon + 1, noon + 2])


def test_javas_cleaning_leaves_success_files(local: Shared) -> None:
    settings = {"time-interval": "1d", "idle-time": "0ms"}
    told = with_listener(local.lake, "mark-done", settings, partitionBy="day")
    told.append(0, rows(1, day="2024-02-02"))
    told.append(1, rows(2, day="2024-02-03"))
    assert told.files("_SUCCESS") == ["data/day=2024-02-02/_SUCCESS"]
    for path in filter(Path.is_file, Path(told.open().location).rglob("*")):
        os.utime(path, (time.time() - FOUR_DAYS_S,) * 2)
    before = told.files()

    local.call("remove_orphan_files")

    assert set(before) - set(told.files()) <= {found for found in before if "snap-pwc" in found}
    assert told.files("_SUCCESS") == ["data/day=2024-02-02/_SUCCESS"]
    replace(local, lake=told).assert_agreed([1, 2])
