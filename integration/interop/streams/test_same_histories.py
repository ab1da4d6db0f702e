"""The same histories, followed by the streaming sources of Iceberg, of Delta and by ours: which rows each delivers.

``PWC_FOUND=integration/interop/streams/found.json`` writes down what each delivered. ``make docs`` makes the table of
docs/following.md from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.interop.streams.sources import SOURCES, Delivered, Source, followed

pytestmark = pytest.mark.timeout(900)

TABLE = Path(__file__).parent / "found.json"
OURS = ("ours, Paimon", "ours, Iceberg")
FOUND: dict[str, dict[str, dict[str, Any]]] = {}


@dataclass
class Case:
    """A history, and how a stream lived through it. ``due`` are the rows that it has to deliver, each once."""

    live: Callable[[Source, Delivered], object]
    due: int
    stops: bool = False
    """Whether the honest answer is an error by name, after the rows."""


def expired_start(source: Source, delivered: Delivered) -> None:
    for number in range(4):
        source.append(number)
    source.expire()
    followed(source, delivered)


def compacted_start(source: Source, delivered: Delivered) -> None:
    for number in range(3):
        source.append(number)
    source.compact()
    source.expire()
    followed(source, delivered)


def compaction_meanwhile(source: Source, delivered: Delivered) -> None:
    source.append(0)
    source.append(1)
    followed(source, delivered)
    source.append(2)
    source.compact()
    source.append(3)
    followed(source, delivered)


def compaction_and_expiry_meanwhile(source: Source, delivered: Delivered) -> None:
    source.append(0)
    source.append(1)
    followed(source, delivered)
    source.append(2)
    source.append(3)
    source.compact()
    source.append(4)
    source.expire()
    followed(source, delivered)


def first_batch_again_after_growth(source: Source, delivered: Delivered) -> None:
    source.append(0)
    source.append(1)
    followed(source, delivered)
    delivered.forget_the_last_commit()
    source.append(2)
    followed(source, delivered)


def restart_with_another_limit(source: Source, delivered: Delivered) -> None:
    for number in range(6):
        source.append(number)
    followed(source, delivered, **({source.limit: "4"} if source.limit else {"minPartitions": "4"}))
    delivered.forget_the_last_commit()
    source.append(6)
    followed(source, delivered, **({source.limit: "1"} if source.limit else {"minPartitions": "1"}))


def overwrite_meanwhile(source: Source, delivered: Delivered) -> None:
    source.append(0)
    followed(source, delivered)
    source.append(1)
    source.overwrite(10)
    followed(source, delivered)


CASES = {
    "new stream, older snapshots expired": Case(expired_start, 4),
    "new stream, compacted and expired": Case(compacted_start, 3),
    "compaction while it follows": Case(compaction_meanwhile, 4),
    "compaction and expiry while it follows": Case(compaction_and_expiry_meanwhile, 5),
    "first batch again after the table grew": Case(first_batch_again_after_growth, 3),
    "restart with another limit": Case(restart_with_another_limit, 7),
    "overwrite while it follows": Case(overwrite_meanwhile, 2, stops=True),
}


def lived_through(case: str, name: str, spark: SparkSession, directory: Path) -> Delivered:
    source, delivered = SOURCES[name](spark, directory), Delivered(directory / "checkpoint")
    CASES[case].live(source, delivered)
    due = CASES[case].due
    FOUND.setdefault(case, {})[name] = {
        "due": due,
        "delivered": sum(1 for number in delivered.rows if number < due),
        "doubled": delivered.rows.total() - len(delivered.rows),
        "stopped": delivered.stopped,
    }
    if "PWC_FOUND" in os.environ:
        Path(os.environ["PWC_FOUND"]).write_text(json.dumps(FOUND, indent=1) + "\n")
    return delivered


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", OURS)
def test_ours_delivers_each_row_once(case: str, name: str, spark: SparkSession, tmp_path: Path) -> None:
    found = lived_through(case, name, spark, tmp_path)

    assert sorted(found.rows.elements()) == list(range(CASES[case].due))
    assert found.stopped == ("SourceChangedError" if CASES[case].stops else None)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", [name for name in SOURCES if name not in OURS])
def test_what_others_deliver_is_what_the_table_says(case: str, name: str, spark: SparkSession, tmp_path: Path) -> None:
    lived_through(case, name, spark, tmp_path)

    assert FOUND[case][name] == json.loads(TABLE.read_text())[case][name] or "PWC_FOUND" in os.environ
