"""Tables on Azure and Google Cloud Storage: the contract of formats, races of commits, and a replay."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from integration.stores.conftest import Cloud
from paimon_sink.storage.store import Store
from paimon_sink.testing import ContractLake, FormatContract
from tests.support.lake import Lake, rows

FORMATS = ("paimon", "iceberg")


def options(cloud: Cloud, directory: Path, table_format: str) -> dict[str, str]:
    catalog = {"catalog.uri": f"sqlite:///{directory}/catalog.db"} if table_format == "iceberg" else {}
    return {"warehouse": cloud.location(), "tableFormat": table_format, **catalog}


@pytest.fixture(params=FORMATS)
def there(cloud: Cloud, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    return options(cloud, tmp_path, request.param)


@pytest.fixture
def lake(there: dict[str, str]) -> ContractLake:
    from tests.support.engines import other_engine

    drop: Callable[[], None] = other_engine(Lake(there)).drop if there["tableFormat"] == "iceberg" else _dropping(there)
    return ContractLake(options=there, drop=drop)


def _dropping(there: dict[str, str]) -> Callable[[], None]:
    """As somebody does who deletes the table's files: pypaimon's own catalog does not reach these stores."""

    def drop() -> None:
        table = Lake(there).open()
        table.store.delete_many(list(table.store.walk_files(table.location)))

    return drop


class TestTables(FormatContract):
    """Both formats on both stores."""


def test_of_many_writers_of_one_name_one_wins(store: Store) -> None:
    path = store.join(store.root, "snapshot-1")
    together = threading.Barrier(8)

    def put(number: int) -> bool:
        together.wait()
        return store.put_if_absent(path, str(number).encode())

    with ThreadPoolExecutor(8) as writers:
        won = list(writers.map(put, range(8)))

    assert sum(won) == 1
    assert store.read(path) == str(won.index(True)).encode()


def test_committers_at_the_same_time_lose_nothing_and_a_replay_adds_nothing(there: dict[str, str]) -> None:
    Lake(there).append(0, rows(1000))

    def commit(writer: int) -> None:
        lake = Lake(there, extra={"commitUser": f"writer-{writer}"})
        for batch in range(3):
            lake.append(batch, rows(10 * writer + batch))
        lake.append(2, rows(10 * writer + 2))

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(commit, range(4)))

    assert Lake(there).ids() == [*sorted(10 * writer + batch for writer in range(4) for batch in range(3)), 1000]
