"""What is asked of an object store: how many requests, and how many of them wait for each other.

A request that waits for another is a round trip, and a lost attempt pays for them again. The chain is counted by a
proxy that holds each request for a moment, so that those which may overlap do. A busy machine can make a chain look
longer and never shorter, so the shortest of some tries is the true one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiobotocore.client import AioBaseClient

from paimon_sink.follow.admission import NO_LIMITS
from paimon_sink.maintain.expire import Retention, expire
from tests.support.far import Far, far_away, longest_chain
from tests.support.following import Checkpoint, Query
from tests.support.lake import Lake, rows
from tests.support.s3 import S3Server

pytestmark = pytest.mark.s3


@pytest.fixture
def iceberg_on_s3(s3_lake: Lake, tmp_path: Path) -> Lake:
    """Files on S3, and a catalog that is none of its requests."""
    catalog = {"catalog.type": "sql", "catalog.uri": f"sqlite:///{tmp_path}/catalog.db"}
    return Lake({**s3_lake.options, "tableFormat": "iceberg", **catalog})


@contextmanager
def requests_of_s3() -> Iterator[list[tuple[str, str]]]:
    """Each request as its kind and the key it is about, listings included."""
    found: list[tuple[str, str]] = []
    send = AioBaseClient._make_api_call

    async def noting(self: Any, kind: str, parameters: dict[str, Any]) -> Any:
        found.append((kind, parameters.get("Key", "")))
        return await send(self, kind, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AioBaseClient, "_make_api_call", noting)
        yield found


def requests_of_a_commit(lake: Lake, *, tasks: int = 1) -> list[tuple[str, str]]:
    """On a table that has some batches."""
    for batch in range(3):
        lake.append(batch, rows(batch))
    messages = [lake.write(rows(3 + task)) for task in range(tasks)]
    with requests_of_s3() as requests:
        lake.commit(3, *messages)
    assert lake.ids() == list(range(3 + tasks))
    return requests


def test_a_commit_to_paimon_costs_twenty_one_requests(s3_lake: Lake) -> None:
    requests = requests_of_a_commit(s3_lake)

    assert len(requests) == 21, requests


def test_a_commit_looks_for_one_of_its_files_however_many_there_are(s3_lake: Lake) -> None:
    requests = requests_of_a_commit(s3_lake, tasks=20)

    assert len(requests) == 21, requests
    assert [kind for kind, key in requests if key.endswith(".parquet")] == ["HeadObject"]


def test_a_commit_to_iceberg_costs_six_requests_and_reads_the_metadata_once(iceberg_on_s3: Lake) -> None:
    requests = requests_of_a_commit(iceberg_on_s3)

    assert len(requests) == 6, requests
    assert [kind for kind, key in requests if key.endswith(".metadata.json")] == ["GetObject", "PutObject"]


@pytest.mark.parametrize("place", ["s3_lake", "iceberg_on_s3"], ids=["paimon", "iceberg"])
def test_a_small_file_is_read_by_one_request(place: str, request: pytest.FixtureRequest) -> None:
    lake: Lake = request.getfixturevalue(place)
    for batch in range(3):
        lake.append(batch, rows(batch))

    with requests_of_s3() as requests:
        assert lake.ids() == [0, 1, 2]

    assert [kind for kind, key in requests if key.endswith(".parquet")] == ["GetObject"] * 3


# ---------------------------------------------------------------- what waits for what


_HOLDS_S = (0.03, 0.1, 0.3)
"""How long each request is held, in one try after the other. The longer, the less a busy machine keeps them apart."""
_TRIES = len(_HOLDS_S)


@dataclass(frozen=True)
class FarLake:
    """A lake behind a proxy."""

    lake: Lake
    far: Far

    def chain_of(self, *works: Callable[[], object], expected: int) -> int:
        """The shortest of the longest chains of some pieces of work that are all alike.

        All of them are done. Once a chain is as short as expected, requests are not held any more.
        """
        shortest: int | None = None
        for held_s, work in zip(_HOLDS_S, works, strict=True):
            if shortest is not None and shortest <= expected:
                work()
                continue
            self.far.delay_s = held_s
            with self.far.noting() as requests:
                work()
            self.far.delay_s = 0.0
            length = longest_chain(requests)
            shortest = length if shortest is None else min(shortest, length)
        assert shortest is not None
        return shortest


@pytest.fixture(params=["paimon", "iceberg"])
def far_lake(request: pytest.FixtureRequest, s3: S3Server, s3_lake: Lake, tmp_path: Path) -> Iterator[FarLake]:
    with far_away(s3.endpoint) as far:
        options = {**s3_lake.options, "s3.endpoint": far.endpoint, "tableFormat": request.param}
        if request.param == "iceberg":
            options |= {"catalog.type": "sql", "catalog.uri": f"sqlite:///{tmp_path}/catalog.db"}
        lake = Lake(options)
        for batch in range(3):
            lake.append(batch, rows(batch))
        yield FarLake(lake, far)


def test_a_stream_commit_waits_for_few_requests_in_a_row(far_lake: FarLake) -> None:
    lake = far_lake.lake
    batches = {
        batch: [lake.write(rows(10 * batch)), lake.write(rows(10 * batch + 1))] for batch in range(3, 3 + _TRIES)
    }

    expected = {"paimon": 8, "iceberg": 5}[lake.format]
    commits = (partial(lake.commit, batch, *written) for batch, written in batches.items())
    assert far_lake.chain_of(*commits, expected=expected) == expected
    assert len(lake.ids()) == 3 + 2 * _TRIES


def test_a_batch_commit_waits_for_as_many(far_lake: FarLake) -> None:
    lake = far_lake.lake
    jobs = [[lake.write(rows(10 * job)), lake.write(rows(10 * job + 1))] for job in range(3, 3 + _TRIES)]

    expected = {"paimon": 8, "iceberg": 5}[lake.format]
    commits = (partial(lake.batch_writer().commit, written) for written in jobs)
    assert far_lake.chain_of(*commits, expected=expected) == expected


def test_opening_a_table_is_one_round_trip(far_lake: FarLake) -> None:
    assert far_lake.chain_of(*[far_lake.lake.open] * _TRIES, expected=1) == 1


def test_planning_a_read_does_not_wait_longer_for_more_commits(far_lake: FarLake) -> None:
    lake = far_lake.lake
    for batch in range(3, 6):
        lake.append(batch, rows(batch))

    # The newest snapshot, its lists, its manifests. Iceberg knows the first from opening.
    expected = {"paimon": 3, "iceberg": 2}[lake.format]
    plans = (partial(lake.open().scans.plan_splits, []) for _ in range(_TRIES))
    assert far_lake.chain_of(*plans, expected=expected) == expected


def test_history_is_a_listing_and_the_snapshots_beside_each_other(far_lake: FarLake) -> None:
    table = far_lake.lake.open()

    expected = {"paimon": 2, "iceberg": 0}[far_lake.lake.format]
    assert far_lake.chain_of(*[table.upkeep.history] * _TRIES, expected=expected) == expected
    assert len(table.upkeep.history()) == 3


def test_expiry_waits_for_a_few_requests_for_each_snapshot_that_goes(far_lake: FarLake) -> None:
    lake = far_lake.lake
    for batch in range(3, 3 + 2 * _TRIES):
        lake.append(batch, rows(batch))
    tables = [lake.open() for _ in range(_TRIES)]
    kept = [len(lake.history()) - 2 * (number + 1) for number in range(_TRIES)]

    # One of them for all: which consumers are dead. And on Paimon one where history no longer begins with snapshot 1.
    at_most = {"paimon": 18, "iceberg": 8}[lake.format]
    expiries = (partial(expire, table, Retention(keep_last=count)) for table, count in zip(tables, kept, strict=True))
    chain = far_lake.chain_of(*expiries, expected=at_most)

    assert len(lake.history()) == kept[-1]
    assert chain <= at_most


# ---------------------------------------------------------------- streams


_BACKLOG = 24


def far_behind(lake: Lake, *, there: int = 0) -> Query:
    for batch in range(there, _BACKLOG):
        lake.append(batch, rows(batch))
    return Query(lake, Checkpoint(), startingVersion=str(lake.snapshot_ids()[0]), consumerId="none")


def test_a_stream_that_is_far_behind_asks_for_many_snapshots_at_once(far_lake: FarLake) -> None:
    query = far_behind(far_lake.lake, there=3)
    looks = [query, *(Query(query.lake, Checkpoint(), startingVersion="earliest") for _ in range(_TRIES - 1))]

    # One after the other it would be three for each snapshot of Paimon, two of Iceberg.
    at_most = {"paimon": 45, "iceberg": 30}[far_lake.lake.format]
    plans = (partial(look.enumerator.latest, None, NO_LIMITS) for look in looks)
    assert far_lake.chain_of(*plans, expected=at_most) <= at_most


def test_a_backlog_is_read_once_to_find_its_end_and_to_plan_it(s3_lake: Lake) -> None:
    query = far_behind(s3_lake)

    with requests_of_s3() as requests:
        query.checkpoint.offsets.append(query.latest(None))
        assert len(query.tasks(0)) > 0

    of_snapshots = Counter(key.rsplit("/", 1)[-1] for kind, key in requests if "/snapshot-" in key)
    lists = Counter(key for kind, key in requests if "/manifest" in key)
    assert len(lists) == 2 * _BACKLOG
    assert set(lists.values()) == {1}
    # The first and the last are asked for again, to see that they stand.
    assert [of_snapshots[f"snapshot-{number}"] for number in range(3, _BACKLOG - 1)] == [1] * (_BACKLOG - 4)
