"""Java and we commit to one table, in turns and at the same time: what was acknowledged is in, once."""

from __future__ import annotations

import threading

from pyspark.sql import SparkSession

from integration.interop.paimon.committer import JavaCommitter
from integration.interop.paimon.java import Java, assert_same_rows
from tests.spark.support import Checkpoint, Source, lake_options
from tests.support.lake import Lake, rows
from tests.support.racer import Errand, race

FIRST_OF_JAVA = 2**40


def test_java_and_our_stream_append_in_turns(
    spark: SparkSession, java: Java, lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    for number in range(4):
        source.add(range(number * 10, number * 10 + 10))
        checkpoint.run(source.stream(spark), lake_options(lake))
        java.append([1000 + number])

    checkpoint.forget(3)
    checkpoint.run(source.stream(spark), lake_options(lake))

    assert_same_rows(java, lake, ids=[*range(40), *range(1000, 1004)])


def test_a_replay_is_known_behind_many_commits_of_java(spark: SparkSession, java: Java, lake: Lake) -> None:
    """Java merges manifests every 30 commits, which hides what a snapshot was built on."""
    message = lake.append(0, rows(1))
    committer = JavaCommitter(spark, lake)
    for number in range(40):
        committer.append(FIRST_OF_JAVA + number)

    lake.commit(0, message)

    assert_same_rows(java, lake, ids=[1, *range(FIRST_OF_JAVA, FIRST_OF_JAVA + 40)])


def test_what_java_and_we_acknowledge_at_the_same_time_is_in_once(spark: SparkSession, java: Java, lake: Lake) -> None:
    lake.append(0, rows(-1))
    commits = 60
    acknowledged: list[int] = []
    threads = [
        threading.Thread(target=commit_all, args=(JavaCommitter(spark, lake), first, commits, acknowledged))
        for first in (FIRST_OF_JAVA, 2 * FIRST_OF_JAVA)
    ]
    errands = [Errand(dict(lake.options), lake.table, f"ours {number}", number * 1000, commits) for number in range(2)]

    for thread in threads:
        thread.start()
    reports = race(errands)
    for thread in threads:
        thread.join()

    ours = [row for report in reports for row in report.acknowledged]
    assert [failure for report in reports for failure in report.failures] == []
    # A thread that dies says so to nobody.
    assert (len(ours), len(acknowledged)) == (2 * commits, 2 * commits)
    assert_same_rows(java, lake, ids=[-1, *ours, *acknowledged])


def commit_all(committer: JavaCommitter, first: int, commits: int, acknowledged: list[int]) -> None:
    for row in range(first, first + commits):
        committer.append(row)
        acknowledged.append(row)
