"""What a commit asks of an object store. Each request is a round trip, and a lost round pays for all of them again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiobotocore.client import AioBaseClient

from tests.support.lake import Lake, rows

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


def test_a_commit_to_paimon_costs_nineteen_requests(s3_lake: Lake) -> None:
    requests = requests_of_a_commit(s3_lake)

    assert len(requests) == 19, requests


def test_a_commit_looks_for_one_of_its_files_however_many_there_are(s3_lake: Lake) -> None:
    requests = requests_of_a_commit(s3_lake, tasks=20)

    assert len(requests) == 19, requests
    assert [kind for kind, key in requests if key.endswith(".parquet")] == ["HeadObject"]


def test_a_commit_to_iceberg_costs_six_requests_and_reads_the_metadata_once(iceberg_on_s3: Lake) -> None:
    requests = requests_of_a_commit(iceberg_on_s3)

    assert len(requests) == 6, requests
    assert [kind for kind, key in requests if key.endswith(".metadata.json")] == ["GetObject", "PutObject"]
