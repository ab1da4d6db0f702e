"""What our listeners leave in a table is Java's own: success files and tags, read, kept and written by both."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

from integration.interop.paimon.java import Java, assert_same_rows
from tests.support.lake import Lake, rows
from tests.support.listeners import with_listener

MARKING = {"time-interval": "1d", "idle-time": "0ms"}
TAGGING = {"mode": "watermark", "period": "hourly"}


def success_file(lake: Lake, day: str) -> dict[str, int]:
    table = lake.open()
    found: dict[str, int] = json.loads(table.store.read(f"{table.location}/day={day}/_SUCCESS"))
    return found


def as_java_reads_it(java: Java, day: str) -> tuple[int, int]:
    """By the class that Paimon's engines read it with."""
    gateway: Any = java.spark._jvm
    path = gateway.org.apache.paimon.fs.Path(f"{java.lake.open().location}/day={day}/_SUCCESS")
    file_io = gateway.org.apache.paimon.fs.local.LocalFileIO.create()
    read = gateway.org.apache.paimon.partition.file.SuccessFile.fromPath(file_io, path)
    return int(read.creationTime()), int(read.modificationTime())


def age(lake: Lake, seconds: float) -> None:
    table = lake.open()
    for path in table.store.walk_files(table.location):
        os.utime(path, (os.stat(path).st_atime - seconds, os.stat(path).st_mtime - seconds))


def test_a_success_file_is_written_by_both_in_turn_and_keeps_its_creation_time(java: Java, lake: Lake) -> None:
    told = with_listener(lake, "mark-done", MARKING, partitionBy="day")
    told.append(0, rows(1, day="2024-02-02"))
    told.append(1, rows(2, day="2024-02-03"))
    ours = success_file(told, "2024-02-02")
    assert as_java_reads_it(java, "2024-02-02") == (ours["creationTime"], ours["modificationTime"])

    java.call("mark_partition_done", partitions="day=2024-02-02")
    javas = success_file(told, "2024-02-02")
    told.append(2, rows(3, day="2024-02-02"))
    told.append(3, rows(4, day="2024-02-04"))
    again = success_file(told, "2024-02-02")

    assert ours["creationTime"] == javas["creationTime"] == again["creationTime"]
    assert ours["modificationTime"] < javas["modificationTime"] < again["modificationTime"]
    assert_same_rows(java, told, ids=[1, 2, 3, 4])


def test_java_reads_our_tags_and_leaves_what_they_and_marks_keep(java: Java, lake: Lake) -> None:
    noon = int(datetime(2023, 7, 18, 12, tzinfo=UTC).timestamp() * 1000)
    told = with_listener(lake, "tags", TAGGING, partitionBy="day", watermarkColumn="id")
    marked = with_listener(lake, "mark-done", MARKING, commitUser="marking", partitionBy="day")
    marked.append(0, rows(1, day="2024-02-02"))
    marked.append(1, rows(2, day="2024-02-03"))
    told.append(0, rows(noon))
    told.append(1, rows(noon + 1))

    java.call("compact", options="compaction.min.file-num=2")
    java.call("expire_snapshots", retain_max=1, retain_min=1)
    age(told, 3 * 24 * 3600)
    java.call("remove_orphan_files")

    assert [row.tag_name for row in java.system("tags")] == ["2023-07-18 11"]
    tagged = java.sql("SELECT id FROM TABLE_ VERSION AS OF '2023-07-18 11'")
    assert sorted(row.id for row in tagged.collect()) == [1, 2, noon]
    assert success_file(told, "2024-02-02")
    assert_same_rows(java, told, ids=[1, 2, noon, noon + 1])
