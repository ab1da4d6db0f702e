"""Changes of the columns ``id``, ``day`` and ``half``, each with whether names alone still tell them in all files."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tests.support.engines import other_engine
from tests.support.evolving import append
from tests.support.lake import Lake

__all__ = ["CHANGES", "drop_and_add_in_another_case", "several"]


def add(lake: Lake) -> None:
    append(lake, 10, pa.table({"id": [6], "new": ["x"]}))


def add_a_field(lake: Lake) -> None:
    append(lake, 10, pa.table({"id": [6], "s": [{"a": 1}]}))
    append(lake, 11, pa.table({"id": [7], "s": [{"a": 2, "b": "y"}]}))


def widen(lake: Lake) -> None:
    append(lake, 10, pa.table({"id": [6], "n": pa.array([1], pa.int32())}))
    append(lake, 11, pa.table({"id": [7], "n": pa.array([2**40])}), widen=True)


def drop(lake: Lake) -> None:
    other_engine(lake).drop_column("day")


def drop_and_add_again(lake: Lake, name: str = "day") -> None:
    other_engine(lake).drop_column("day")
    other_engine(lake).add_column(name)


def drop_and_add_in_another_case(lake: Lake) -> None:
    drop_and_add_again(lake, "DAY")


def rename_and_add(lake: Lake) -> None:
    other_engine(lake).rename_column("day", "weekday")
    other_engine(lake).add_column("day")


def several(lake: Lake) -> None:
    add(lake)
    drop(lake)
    other_engine(lake).move_column_first("half")


CHANGES: list[tuple[Callable[[Lake], None], bool]] = [
    (add, True),
    (several, True),
    (add_a_field, False),
    (widen, False),
    (drop_and_add_again, False),
    (drop_and_add_in_another_case, False),
    (rename_and_add, False),
]
