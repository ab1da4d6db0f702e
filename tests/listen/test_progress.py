"""Spark's progress with the table's figures beside it, on events as Spark sends them. No query may notice it."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from pyspark.sql.streaming.listener import QueryIdleEvent, QueryProgressEvent

from paimon_sink import PwcProgress
from paimon_sink.errors import OptionError
from paimon_sink.spark.progress import _MOST_WAITING
from tests.support.batches import of_query, path_in
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import Place, places

QUERY = "11111111-1111-1111-1111-111111111111"
OTHER = "22222222-2222-2222-2222-222222222222"
SOURCE = {
    "description": "pwc",
    "startOffset": {"v": 1},
    "endOffset": {"v": 1},
    "latestOffset": {"snapshot": "7", "snapshotsBehind": 3},
    "numInputRows": 2,
    "inputRowsPerSecond": 1.0,
    "processedRowsPerSecond": 1.0,
    "metrics": {},
}


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def a_progress(
    batch_id: int, *, query: str = QUERY, name: str | None = None, speed: object = 5.0
) -> QueryProgressEvent:
    operator = {
        "operatorName": "dedupe",
        **dict.fromkeys(["numRowsTotal", "numRowsUpdated", "numRowsRemoved", "numRowsDroppedByWatermark"], 3),
        **dict.fromkeys(["allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs", "memoryUsedBytes"], 4),
        **dict.fromkeys(["numShufflePartitions", "numStateStoreInstances"], 1),
        "customMetrics": {},
    }
    return QueryProgressEvent.fromJson(
        {
            "progress": {
                "id": query,
                "runId": str(uuid.uuid4()),
                "name": name,
                "timestamp": "2026-11-16T12:00:00.000Z",
                "batchId": batch_id,
                "batchDuration": 70,
                "durationMs": {"addBatch": 60, "triggerExecution": 70},
                "stateOperators": [operator],
                "sources": [SOURCE],
                "sink": {"description": "pwc", "numOutputRows": -1},
                "numInputRows": 2,
                "inputRowsPerSecond": speed,
                "processedRowsPerSecond": speed,
            }
        }
    )


def an_idle(query: str = QUERY) -> QueryIdleEvent:
    return QueryIdleEvent.fromJson({"id": query, "runId": query, "timestamp": "2026-11-16T12:00:10.000Z"})


def commit(lake: Lake, batch_id: int, *ids: int, query: str = QUERY) -> None:
    lake.commit(batch_id, of_query(lake.write(rows(*ids)), query))


def reports(lake: Lake, *events: QueryProgressEvent | QueryIdleEvent, query: str | None = None) -> list[dict[str, Any]]:
    """What a callback gets of these events."""
    found: list[dict[str, Any]] = []
    listener = PwcProgress(lake.all_options(), found.append, query=query)
    for event in events:
        if isinstance(event, QueryProgressEvent):
            listener.onQueryProgress(event)
        else:
            listener.onQueryIdle(event)
    assert listener.close()
    return found


def test_a_progress_has_both_halves(lake: Lake) -> None:
    commit(lake, 0, 1)
    commit(lake, 1, 2, 3)

    (found,) = reports(lake, a_progress(1, name="orders"))

    assert (found["event"], found["query"], found["name"], found["error"]) == ("progress", QUERY, "orders", None)
    assert found["spark"]["batchId"] == 1
    assert found["spark"]["inputRowsPerSecond"] == 5.0
    assert found["spark"]["durationMs"]["addBatch"] == 60
    assert found["spark"]["stateOperators"][0]["numRowsTotal"] == 3
    assert found["spark"]["sources"][0]["latestOffset"]["snapshotsBehind"] == 3
    newest = lake.history()[-1]
    assert (found["commit"]["batch"], found["commit"]["snapshot"]) == (1, newest.snapshot_id)
    assert (found["commit"]["rows"], found["commit"]["files"], found["commit"]["conflicts"]) == (2, 1, 0)
    assert found["commit"]["commit"] == newest.commit_id
    assert found["seconds_since_commit"] >= 0
    json.dumps(found, allow_nan=False)


def test_an_idle_query_is_told_how_long_ago_it_committed(lake: Lake) -> None:
    commit(lake, 0, 1)

    found = reports(lake, a_progress(0, name="orders"), an_idle())[-1]

    assert (found["event"], found["spark"], found["commit"], found["name"]) == ("idle", None, None, "orders")
    assert found["seconds_since_commit"] >= 0


def test_a_batch_without_rows_has_no_commit_and_still_says_when_the_last_was(lake: Lake) -> None:
    commit(lake, 0, 1)

    (found,) = reports(lake, a_progress(1))

    assert found["commit"] is None
    assert found["seconds_since_commit"] >= 0


def test_a_query_that_writes_elsewhere_gets_no_figures_of_this_table(lake: Lake) -> None:
    commit(lake, 0, 1)

    (found,) = reports(lake, a_progress(0, query=OTHER))

    assert (found["commit"], found["seconds_since_commit"], found["error"]) == (None, None, None)


def test_one_query_is_listened_to_by_its_name_or_its_id(lake: Lake) -> None:
    commit(lake, 0, 1)
    events = (a_progress(0, name="orders"), a_progress(0, query=OTHER, name="others"), an_idle(), an_idle(OTHER))

    for chosen in ("orders", QUERY):
        assert [found["query"] for found in reports(lake, *events, query=chosen)] == [QUERY, QUERY]


def test_a_last_commit_under_many_snapshots_of_others_is_found_in_the_ledger(local_lake: Lake) -> None:
    commit(local_lake, 0, 1)
    other = local_lake.with_options(commitUser="other")
    for batch in range(25):
        commit(other, batch, 100 + batch, query=OTHER)

    (found,) = reports(local_lake, a_progress(0))

    assert found["commit"] is None
    assert found["seconds_since_commit"] >= 0


def test_what_spark_could_not_divide_is_null(lake: Lake) -> None:
    (found,) = reports(lake, a_progress(0, speed=float("nan")))

    assert found["spark"]["inputRowsPerSecond"] is None
    # There is no table yet, which is nothing wrong.
    assert (found["commit"], found["error"]) == (None, None)


def test_a_table_that_cannot_be_read_costs_our_half_only_and_is_tried_again(local_lake: Lake) -> None:
    commit(local_lake, 0, 1)
    found: Queue[dict[str, Any]] = Queue()
    listener = PwcProgress(local_lake.all_options(), found.put)
    listener.onQueryProgress(a_progress(0))
    assert found.get(timeout=60)["commit"]["batch"] == 0

    snapshot = Path(path_in(local_lake, "snapshot/snapshot-1"))
    good = snapshot.read_text()
    snapshot.write_text("{")
    listener.onQueryProgress(a_progress(0))
    report = found.get(timeout=60)
    assert (report["spark"]["batchId"], report["commit"]) == (0, None)
    assert "snapshot-1" in report["error"]

    snapshot.write_text(good)
    listener.onQueryProgress(a_progress(0))
    assert found.get(timeout=60)["commit"]["batch"] == 0
    assert listener.close()


def test_a_callback_that_hangs_holds_nobody_up_and_the_oldest_events_are_dropped(local_lake: Lake) -> None:
    hangs, go_on, found = threading.Event(), threading.Event(), list[dict[str, Any]]()

    def callback(report: dict[str, Any]) -> None:
        found.append(report)
        hangs.set()
        go_on.wait(60)

    listener = PwcProgress(local_lake.all_options(), callback)
    listener.onQueryProgress(a_progress(0))
    assert hangs.wait(60)
    for batch in range(1, _MOST_WAITING + 6):
        # It comes back although the callback does not.
        listener.onQueryProgress(a_progress(batch))
    go_on.set()
    assert listener.close()

    assert [report["spark"]["batchId"] for report in found] == [0, *range(6, _MOST_WAITING + 6)]
    assert [report["dropped"] for report in found[:3]] == [0, 5, 0]


def test_nothing_gets_into_spark(local_lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    found: list[int] = []

    def callback(report: dict[str, Any]) -> None:
        found.append(report["spark"]["batchId"])
        raise RuntimeError("nobody home")

    listener = PwcProgress(local_lake.all_options(), callback)
    listener.onQueryProgress(a_progress(0))
    listener.onQueryProgress(QueryProgressEvent(None))  # type: ignore[arg-type]
    listener.onQueryIdle(None)  # type: ignore[arg-type]
    listener.onQueryStarted(None)  # type: ignore[arg-type]
    listener.onQueryTerminated(None)  # type: ignore[arg-type]
    listener.onQueryProgress(a_progress(1))
    assert listener.close()

    assert found == [0, 1]
    assert caplog.text.count("could not be taken") == 4
    assert caplog.text.count("nobody home") == 2


def test_without_a_callback_each_is_a_line_of_json_in_the_log(
    local_lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    commit(local_lake, 0, 1)
    listener = PwcProgress(local_lake.all_options())
    with caplog.at_level(logging.INFO, logger="paimon_sink.spark.progress"):
        listener.onQueryProgress(a_progress(0))
        assert listener.close()

    (line,) = [record.getMessage() for record in caplog.records if record.name == "paimon_sink.spark.progress"]
    assert json.loads(line)["commit"]["rows"] == 1


def test_wrong_options_are_said_at_once() -> None:
    with pytest.raises(OptionError):
        PwcProgress({"warehose": "/tmp/lake"})


def test_looking_changes_nothing(lake: Lake) -> None:
    commit(lake, 0, 1)
    before = lake.files()

    reports(lake, a_progress(0), an_idle())

    assert lake.files() == before
    assert other_engine(lake).read_ids() == [1]
