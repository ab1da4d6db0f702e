"""The option ``where`` against Spark's own WHERE: random conditions on random tables, in both formats.

``PWC_WHERE_CONDITIONS`` asks for that many new conditions a format; ``PWC_WHERE_SEED`` for those of a run before.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from random import Random, SystemRandom

import pytest
from pyspark.sql import SparkSession

from paimon_sink.core.errors import OptionError
from paimon_sink.core.option_groups import ReadOptions
from paimon_sink.formats.contract import Table
from paimon_sink.read.scan import Scan, rows
from tests.spark.sparks_where import sparks
from tests.spark.support import load
from tests.spark.where_cases import Case, condition, make_table

pytestmark = pytest.mark.spark

ASKED = int(os.environ.get("PWC_WHERE_CONDITIONS", "0"))
SEED = int(os.environ.get("PWC_WHERE_SEED", "0")) or (SystemRandom().randrange(1, 2**32) if ASKED else 2026)
CONDITIONS = ASKED or 200
PER_TABLE = 250 if ASKED else 100
PER_JOB = 50
MOST_REFUSED = 0.2
ZONES = ["America/Los_Angeles", "UTC", "Asia/Kolkata"]


def ours(table: Table, where: str) -> list[int] | None:
    """The ids that the option gives, or None where it refuses the condition."""
    scan = Scan.open(table, ReadOptions(where=where))
    try:
        tasks = scan.tasks(parallelism=2)
    except OptionError:
        return None
    batches = [batch for task in tasks for batch in rows(table, task, ["id"])]
    return sorted(number for batch in batches for number in batch.column("id").to_pylist())


@pytest.fixture
def time_zone(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Sets the session's time zone, until the test ends. No condition that is accepted may depend on it."""
    yield lambda zone: spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.timeout(120 + CONDITIONS)
@pytest.mark.needs_local_spark("thousands of comparisons in one process")
@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
def test_random_conditions_give_the_rows_of_sparks_own_where(
    spark: SparkSession, tmp_path: Path, table_format: str, time_zone: Callable[[str], None]
) -> None:
    rng = Random(f"{SEED} {table_format}")
    outcomes: Counter[str] = Counter()
    different: list[str] = []
    left = CONDITIONS
    zones = cycle(ZONES)
    while left > 0:
        time_zone(next(zones))
        case = make_table(rng, str(tmp_path / str(left)), table_format)
        wheres = [condition(rng, case) for _ in range(min(left, PER_TABLE))]
        left -= len(wheres)
        for where, outcome in compared(spark, case, wheres):
            outcomes[outcome] += 1
            if outcome == "different":
                different.append(f"{case.described}: {where}")
                sys.stdout.write(f"different: {different[-1]!r}\n")

    sys.stdout.write(f"{table_format}, seed {SEED}: {dict(outcomes)}\n")
    assert different == []
    assert outcomes.total() == CONDITIONS
    assert outcomes["refused"] <= CONDITIONS * MOST_REFUSED


def compared(spark: SparkSession, case: Case, wheres: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each condition with what came of it."""
    table = case.lake.open()
    everything = load(spark, case.lake).cache()
    found = [(where, ours(table, where)) for where in wheres]
    yield from ((where, "refused") for where, ids in found if ids is None)
    accepted = [(where, ids) for where, ids in found if ids is not None]
    for start in range(0, len(accepted), PER_JOB):
        part = accepted[start : start + PER_JOB]
        for (where, ids), expected in zip(part, sparks(everything, [where for where, _ in part]), strict=True):
            if expected is None:
                yield where, "Spark fails"
            elif ids != expected:
                yield where, "different"
            else:
                yield where, "same" if expected else "same, no row"
    everything.unpersist()
