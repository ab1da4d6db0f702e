"""Reads below Spark: a scan from its options to its rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.read.scan import Scan, rows
from tests.support.lake import Lake

__all__ = ["ids", "open_scan", "read", "read_table"]


def open_scan(lake: Lake, **options: str) -> Scan:
    """What ``spark.read`` opens with these options."""
    parsed = parse_options({**lake.all_options(), **options}, purpose=Purpose.READ)
    return Scan.open(open_table(parsed.table), parsed.read)


def read_table(lake: Lake, **options: str) -> pa.Table:
    """All rows, task by task, each as a worker reads it: from a table that it opens itself."""
    scan = open_scan(lake, **options)
    names = scan.schema.names
    batches = [batch.select(names) for task in scan.tasks(parallelism=2) for batch in rows(lake.open(), task, names)]
    return pa.Table.from_batches(batches, pa.schema([pa.field(field.name, field.type) for field in scan.schema]))


def read(lake: Lake, **options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(lake, **options).to_pylist()
    return found


def ids(lake: Lake, **options: str) -> list[int]:
    return sorted(row["id"] for row in read(lake, **options))
