"""Which files can be read by the names of their columns alone, by whoever knows nothing of ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from paimon_sink.formats.values import NEWEST
from tests.support import tasks
from tests.support.column_changes import CHANGES, add
from tests.support.engines import other_engine
from tests.support.iceberg_engine import native
from tests.support.lake import Lake
from tests.support.places import Place, places


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def orders(lake: Lake) -> Lake:
    tasks.append(lake, 0, pa.table({"id": [1, 2], "day": ["a", None], "half": [0.5, 1.0]}))
    return lake


def are_plain(lake: Lake) -> bool:
    snapshot = lake.open().scans.at(NEWEST)
    return snapshot.are_plain(snapshot.splits([]))


@pytest.mark.parametrize(("change", "is_plain"), CHANGES)
def test_files_have_their_columns_under_the_names_of_today_or_not(
    orders: Lake, change: Callable[[Lake], None], *, is_plain: bool
) -> None:
    assert are_plain(orders)

    change(orders)

    assert are_plain(orders) == is_plain


def test_a_column_of_another_case_is_none_of_today(lake: Lake) -> None:
    tasks.append(lake, 0, pa.table({"id": [1], "DAY": ["a"]}))
    other_engine(lake).drop_column("DAY")
    other_engine(lake).add_column("day")

    assert not are_plain(lake)


def test_a_column_with_a_default_value_is_not_null_in_files_without_it(local_lake: Lake) -> None:
    tasks.append(local_lake, 0, pa.table({"id": [1]}))
    add(local_lake)
    table = local_lake.open()
    snapshot: Any = table.scans.at(NEWEST)
    splits = snapshot.splits([])
    assert snapshot.are_plain(splits)

    snapshot._files.schema(table.schema_id).fields[-1].default_value = "x"

    assert not snapshot.are_plain(splits)


def test_a_schema_that_was_removed_from_the_metadata_is_in_the_footers(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake
    tasks.append(lake, 0, pa.table({"id": [1], "day": ["a"], "half": [0.5]}))
    with native(lake).update_schema() as update:
        update.rename_column("day", "weekday")
    table = lake.open()
    snapshot: Any = table.scans.at(NEWEST)
    metadata = snapshot._native.metadata

    # As Java's expiry does where it is told to.
    snapshot._native.metadata = metadata.model_copy(update={"schemas": metadata.schemas[-1:]})

    assert not snapshot.are_plain(snapshot.splits([]))
