"""Random tables, random snapshots and ranges of them, random conditions: the rows of a full read, filtered by Spark.

``PWC_SCAN_CASES`` asks for that many new cases, half of them a format; ``PWC_SCAN_SEED`` for those of a run before.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random, SystemRandom

import pytest
from pyspark.sql import SparkSession

from paimon_sink.core.errors import OptionError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import parse_options
from paimon_sink.read.scan import Scan, rows
from tests.spark.history_cases import History, Version, play
from tests.spark.sparks_where import sparks
from tests.spark.support import lake_options
from tests.spark.where_cases import condition

pytestmark = pytest.mark.spark

ASKED = int(os.environ.get("PWC_SCAN_CASES", "0"))
SEED = int(os.environ.get("PWC_SCAN_SEED", "0")) or (SystemRandom().randrange(1, 2**32) if ASKED else 2026)
CASES = ASKED // 2 or 80
PER_TABLE, PER_VERSION = (250, 50) if ASKED else (40, 20)
MOST_REFUSED, LEAST_FILES_OUT, LEAST_GROUPS_OUT = 0.2, 0.1, 0.03
"""Shares of all cases: refused; with files that are left out; with row groups left out of files that are opened."""


@dataclass(frozen=True)
class Answer:
    """What a read gave, and what it left out."""

    ids: list[int]
    left_files_out: bool
    left_groups_out: bool


class Reader:
    """Reads one version of a table, below Spark."""

    def __init__(self, table: Table, history: History, version: Version) -> None:
        self._table = table
        self._given = {**history.lake.all_options(), **version.options}
        self.whole = self.scan()
        self._groups = {split.path: len(table.scans.cut(split)) for split in self.whole.splits()}

    def scan(self, **options: str) -> Scan:
        return Scan.open(self._table, parse_options({**self._given, **options}, purpose=Purpose.READ).read)

    def answer(self, where: str, *, is_cut: bool) -> Answer | None:
        """None where the condition is refused. Row groups are chosen by the driver, which cuts files, or by tasks."""
        scan = self.scan(where=where)
        scan = replace(scan, options=replace(scan.options, split_bytes=1 if is_cut else 1 << 30))
        try:
            tasks = scan.tasks(parallelism=2)
        except OptionError:
            return None
        batches = [batch for task in tasks for batch in rows(self._table, task, ["id"])]
        ids = sorted(number for batch in batches for number in batch.column("id").to_pylist())
        splits = [split for task in tasks for split in task.splits]
        opened = {split.path for split in splits}
        read = sum(len(split.row_groups or ()) for split in splits)
        fewer_groups = is_cut and read < sum(self._groups[path] for path in opened)
        return Answer(ids, left_files_out=len(opened) < len(self._groups), left_groups_out=fewer_groups)


@pytest.mark.timeout(180 + 2 * CASES)
@pytest.mark.needs_local_spark("thousands of comparisons in one process")
@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
def test_random_reads_of_random_histories_give_the_rows_of_a_full_read_filtered_by_spark(
    spark: SparkSession, tmp_path: Path, table_format: str
) -> None:
    rng = Random(f"{SEED} {table_format}")
    outcomes: Counter[str] = Counter()
    different: list[str] = []
    cases = 0
    while cases < CASES:
        is_partitioned = cases // PER_TABLE % 2 == 1
        history = play(rng, str(tmp_path / str(cases)), table_format, is_partitioned=is_partitioned)
        for _ in range(PER_TABLE // PER_VERSION):
            version = history.version(rng)
            cases += PER_VERSION
            for where, outcome, answer in compared(spark, history, version, rng):
                outcomes[outcome] += 1
                outcomes["fewer files"] += answer is not None and answer.left_files_out
                outcomes["fewer row groups"] += answer is not None and answer.left_groups_out
                if outcome == "different":
                    different.append(f"{history.described} {dict(version.options)}: {where}")
                    sys.stdout.write(f"different: {different[-1]!r}\n")

    sys.stdout.write(f"{table_format}, seed {SEED}, {cases} cases: {dict(outcomes)}\n")
    assert different == []
    assert outcomes["refused"] <= cases * MOST_REFUSED
    assert outcomes["fewer files"] >= cases * LEAST_FILES_OUT
    assert outcomes["fewer row groups"] >= cases * LEAST_GROUPS_OUT


def compared(
    spark: SparkSession, history: History, version: Version, rng: Random
) -> Iterator[tuple[str, str, Answer | None]]:
    """Each condition with what came of it."""
    reader = Reader(history.lake.open(), history, version)
    case = version.case(history, reader.whole.table.schema)
    wheres = [condition(rng, case) for _ in range(PER_VERSION)]
    found = [(where, reader.answer(where, is_cut=rng.random() < 0.5)) for where in wheres]
    yield from ((where, "refused", None) for where, answer in found if answer is None)
    accepted = [(where, answer) for where, answer in found if answer is not None]
    everything = spark.read.format("pwc").options(**lake_options(history.lake), **version.options).load().cache()
    answers = sparks(everything, [where for where, _ in accepted])
    for (where, answer), expected in zip(accepted, answers, strict=True):
        if expected is None:
            yield where, "Spark fails", answer
        elif answer.ids != expected:
            yield where, "different", answer
        else:
            yield where, "same" if expected else "same, no row", answer
    everything.unpersist()
