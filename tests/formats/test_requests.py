"""What a commit asks of an object store. Each request is a round trip, and a lost round pays for all of them again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from s3fs import S3FileSystem

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
    """Each request as its kind and the key it is about."""
    found: list[tuple[str, str]] = []
    send = S3FileSystem._call_s3

    async def noting(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        found.append((method, kwargs.get("Key") or next((arg["Key"] for arg in args if "Key" in arg), "")))
        return await send(self, method, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3FileSystem, "_call_s3", noting)
        yield found


def test_a_commit_to_paimon_costs_eighteen_requests(s3: S3Server, s3_lake: Lake) -> None:
    for batch in range(3):
        s3_lake.append(batch, rows(batch))
    message = s3_lake.write(rows(3))

    with requests_of_s3() as requests:
        s3_lake.commit(3, message)

    assert len(requests) <= 18, requests
    assert s3_lake.ids() == [0, 1, 2, 3]


def test_a_commit_to_iceberg_costs_five_requests_and_reads_the_metadata_once(s3: S3Server, iceberg_on_s3: Lake) -> None:
    for batch in range(3):
        iceberg_on_s3.append(batch, rows(batch))
    message = iceberg_on_s3.write(rows(3))

    with requests_of_s3() as requests:
        iceberg_on_s3.commit(3, message)

    assert len(requests) <= 5, requests
    assert [kind for kind, key in requests if key.endswith(".metadata.json")] == ["get_object", "put_object"]
    assert iceberg_on_s3.ids() == [0, 1, 2, 3]
