"""The fake REST catalog is trusted by other tests, so it is tested itself, through pypaimon's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pypaimon
import pytest
from pypaimon.api.rest_exception import NotAuthorizedException
from pypaimon.catalog.catalog_exception import (
    DatabaseAlreadyExistException,
    TableAlreadyExistException,
    TableNotExistException,
)
from pypaimon.snapshot.snapshot import Snapshot

from tests.rest_server import RestCatalogServer

COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "name": pa.string()}
ROWS = pa.schema(COLUMNS)
TABLE = "sales.orders"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestCatalogServer]:
    with RestCatalogServer(tmp_path / "warehouse") as running:
        yield running


@pytest.fixture
def catalog(server: RestCatalogServer) -> Any:
    catalog = pypaimon.CatalogFactory.create(server.catalog_options)
    catalog.create_database("sales", False)
    catalog.create_table(TABLE, pypaimon.Schema.from_pyarrow_schema(ROWS), False)
    return catalog


def write(table: Any, ids: list[int]) -> None:
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.table({"id": ids, "name": [f"n{i}" for i in ids]}, schema=ROWS))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def ids_in(table: Any) -> list[int]:
    builder = table.new_read_builder()
    read = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return sorted(read["id"].to_pylist())


def next_snapshot(table: Any, **changes: Any) -> Snapshot:
    latest = table.snapshot_manager().get_latest_snapshot()
    fields = {**vars(latest), "id": latest.id + 1, "uuid": None, **changes}
    return Snapshot(**fields)


def test_rows_written_with_pypaimon_are_read_back(catalog: Any) -> None:
    table = catalog.get_table(TABLE)

    write(table, [1, 2])
    write(table, [3])

    assert ids_in(catalog.get_table(TABLE)) == [1, 2, 3]


def test_databases_and_tables_are_listed_and_created_once(catalog: Any) -> None:
    assert catalog.list_databases() == ["sales"]
    assert catalog.list_tables("sales") == ["orders"]
    with pytest.raises(DatabaseAlreadyExistException):
        catalog.create_database("sales", False)
    with pytest.raises(TableAlreadyExistException):
        catalog.create_table(TABLE, pypaimon.Schema.from_pyarrow_schema(ROWS), False)


def test_a_table_without_commits_has_no_snapshot(catalog: Any) -> None:
    assert catalog.load_snapshot(TABLE) is None


def test_a_dropped_table_is_gone_and_its_successor_has_another_identity(catalog: Any) -> None:
    first = catalog.get_table(TABLE)

    catalog.drop_table(TABLE)
    with pytest.raises(TableNotExistException):
        catalog.get_table(TABLE)
    catalog.create_table(TABLE, pypaimon.Schema.from_pyarrow_schema(ROWS), False)

    assert catalog.get_table(TABLE).catalog_environment.uuid != first.catalog_environment.uuid


def test_snapshots_and_schemas_are_left_in_the_table_directory(catalog: Any, server: RestCatalogServer) -> None:
    write(catalog.get_table(TABLE), [1])
    write(catalog.get_table(TABLE), [2])

    directory = Path(server.warehouse) / "sales.db" / "orders"
    stored = [json.loads((directory / "snapshot" / f"snapshot-{n}").read_text())["id"] for n in (1, 2)]
    assert stored == [1, 2]
    assert (directory / "snapshot" / "LATEST").read_text() == "2"
    assert (directory / "snapshot" / "EARLIEST").read_text() == "1"
    assert json.loads((directory / "schema" / "schema-0").read_text())["highestFieldId"] == 1


@pytest.mark.parametrize(
    ("id_step", "table_id", "base"),
    [
        pytest.param(0, None, None, id="snapshot id already taken"),
        pytest.param(2, None, None, id="snapshot id leaves a gap"),
        pytest.param(1, "another table", None, id="table id of another table"),
        pytest.param(1, None, "another base", id="built on another snapshot"),
    ],
)
def test_a_commit_that_does_not_fit_is_rejected(
    catalog: Any, server: RestCatalogServer, id_step: int, table_id: str | None, base: str | None
) -> None:
    table = catalog.get_table(TABLE)
    write(table, [1])
    latest = catalog.load_snapshot(TABLE).snapshot

    accepted = catalog.commit_snapshot(
        table.identifier,
        table_id or table.catalog_environment.uuid,
        base,
        next_snapshot(table, id=latest.id + id_step, uuid="a new snapshot"),
        [],
    )

    assert not accepted
    assert catalog.load_snapshot(TABLE).snapshot == latest
    assert server.commits_rejected == 1


def test_of_racing_commits_on_one_base_exactly_one_wins(catalog: Any) -> None:
    table = catalog.get_table(TABLE)
    write(table, [1])
    base = catalog.load_snapshot(TABLE).snapshot.uuid
    rivals = [next_snapshot(table, uuid=f"rival {n}") for n in range(16)]

    def commit(rival: Snapshot) -> bool:
        accepted: bool = catalog.commit_snapshot(table.identifier, table.catalog_environment.uuid, base, rival, [])
        return accepted

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(commit, rivals))

    assert outcomes.count(True) == 1
    assert catalog.load_snapshot(TABLE).snapshot.uuid == rivals[outcomes.index(True)].uuid


@pytest.mark.parametrize(
    ("after_apply", "expected"),
    [
        pytest.param(True, "the failed one", id="applied although an error was answered"),
        pytest.param(False, "the base", id="not applied"),
    ],
)
def test_a_commit_can_be_made_to_fail_once(
    catalog: Any, server: RestCatalogServer, after_apply: bool, expected: str
) -> None:
    table = catalog.get_table(TABLE)
    write(table, [1])
    names = {catalog.load_snapshot(TABLE).snapshot.uuid: "the base", "failed": "the failed one"}
    server.fail_next_commit(after_apply=after_apply, status=503)

    with pytest.raises(RuntimeError, match="asked to fail"):
        catalog.commit_snapshot(
            table.identifier, table.catalog_environment.uuid, None, next_snapshot(table, uuid="failed"), []
        )

    assert names[catalog.load_snapshot(TABLE).snapshot.uuid] == expected
    write(table, [2])
    assert server.commits_accepted == 2 + after_apply


def test_a_wrong_token_is_refused(server: RestCatalogServer) -> None:
    with pytest.raises(NotAuthorizedException):
        pypaimon.CatalogFactory.create({**server.catalog_options, "token": "guessed"})
