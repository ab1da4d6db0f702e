"""Every place a table can live, a format on a store, and what of the suite runs there.

A new format is a line here and its engine. What a place *cannot* do stands in ``lacks``; what it *need not repeat*
follows from its tier. The two reference places run every test. Their siblings have the same ledger and another put or
another store: in them ``make test`` runs the first form of each witness, and ``make test-matrix PLACE=…`` everything.
Memory runs every test of the faults and of the contract that needs neither a store nor another process.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from tests.support.lake import Lake

__all__ = ["PLACES", "VARIABLE", "Place", "Tier", "left_out", "place_of", "places", "repeated", "unmet_need"]

VARIABLE = "PWC_PLACES"
"""Unset: by tier. ``all``: every test in every place. Ids of places: every test in those, and no other test."""


class Tier(StrEnum):
    REFERENCE = "reference"
    SIBLING = "sibling"
    MEMORY = "memory"


@dataclass(frozen=True, eq=False)
class Place:
    """A format on a store, and what nobody can do there. ``fixture`` names the fixture that gives its lake."""

    format: str
    store: str
    fixture: str
    tier: Tier = Tier.REFERENCE
    marks: tuple[pytest.MarkDecorator, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    """What a test may need, by name, and why there is none of it here. What merely takes long is not lacking."""

    @property
    def id(self) -> str:
        return f"{self.format}-{self.store}"

    def lake(self, request: pytest.FixtureRequest) -> Lake:
        opened: Lake = request.getfixturevalue(self.fixture)
        return opened


_NO_ROLLBACK = "the REST server of the tests knows no rollback"
_NO_ALTER = "the REST server of the tests knows no change of a schema"
_IN_THE_CATALOG = "the catalog holds it, and no file that can be damaged"
_ONE_METADATA_FILE = "schema and snapshots are in one file, without which no task can begin"
_NO_DISK = "an object store has no disk of ours to fill"
_NO_AGES = "nobody can make an object of yesterday today"
_TABLE_BUCKET = "a table bucket takes no names but those of the format"
_NEVER_EXPIRES = "the ledger is in the table's properties, which no expiry touches"
_IN_THIS_PROCESS = "a table in memory is in one process, and on no disk"
_NO_AGES_IN_MEMORY = "nothing can set back the time at which a file in memory was written"
_OBJECTS = "a table in memory keeps it as an object, and in no file that can be damaged"

PLACES = (
    Place(
        "memory",
        "process",
        "memory_lake",
        Tier.MEMORY,
        lacks={
            "other processes": _IN_THIS_PROCESS,
            "a disk": _IN_THIS_PROCESS,
            "snapshots on the disk": _IN_THIS_PROCESS,
            "file ages": _NO_AGES_IN_MEMORY,
            "a snapshot file": _OBJECTS,
            "a ledger to damage": _OBJECTS,
            "a schema file": _OBJECTS,
            "manifests to damage": _OBJECTS,
            "merging of manifests": "a snapshot in memory has one manifest, and nothing to merge",
        },
    ),
    Place("paimon", "local", "local_lake"),
    Place(
        "paimon",
        "s3",
        "s3_lake",
        Tier.SIBLING,
        marks=(pytest.mark.s3,),
        lacks={
            "a disk": _NO_DISK,
            "file ages": _NO_AGES,
        },
    ),
    Place(
        "paimon",
        "rest",
        "rest_lake",
        Tier.SIBLING,
        lacks={
            "rollback": _NO_ROLLBACK,
            "schema changes": _NO_ALTER,
            "a snapshot file": _IN_THE_CATALOG,
            "a ledger to damage": _IN_THE_CATALOG,
            "a schema file": _IN_THE_CATALOG,
            "snapshots on the disk": _IN_THE_CATALOG,
        },
    ),
    Place(
        "iceberg",
        "sqlite",
        "iceberg_sqlite_lake",
        lacks={"a ledger that expires": _NEVER_EXPIRES, "a snapshot file": _ONE_METADATA_FILE},
    ),
    Place(
        "iceberg",
        "postgres",
        "iceberg_postgres_lake",
        Tier.SIBLING,
        lacks={
            "a ledger that expires": _NEVER_EXPIRES,
            "a snapshot file": _ONE_METADATA_FILE,
        },
    ),
    Place(
        "iceberg",
        "rest",
        "iceberg_rest_lake",
        Tier.SIBLING,
        marks=(pytest.mark.s3,),
        lacks={
            "a disk": _NO_DISK,
            "odd names": _TABLE_BUCKET,
            "file ages": _NO_AGES,
            "a ledger that expires": _NEVER_EXPIRES,
            "a snapshot file": _IN_THE_CATALOG,
            "a schema file": _IN_THE_CATALOG,
        },
    ),
)


def places(
    *stores: str,
    format: str | None = None,
    slow_on: Collection[str] = (),
    long_on: Collection[str] = (),
    in_memory: bool = False,
) -> list[Any]:
    """Fixture parameters: all places, or those on the stores named, or of one format.

    ``slow_on`` and ``long_on`` have ids of places. The one in memory is there only where ``in_memory`` asks for it.
    """
    chosen = [
        place
        for place in PLACES
        if (not stores or place.store in stores)
        and (format is None or place.format == format)
        and (in_memory or place.tier is not Tier.MEMORY)
    ]
    return [
        pytest.param(
            place,
            id=place.id,
            marks=(
                *place.marks,
                *((pytest.mark.slow,) if place.id in slow_on else ()),
                *((pytest.mark.long,) if place.id in long_on else ()),
            ),
        )
        for place in chosen
    ]


# ---------------------------------------------------------------- what runs where


def place_of(item: pytest.Item) -> Place | None:
    """The place a collected test runs in, if it runs in one."""
    place = _parameter(item)
    if place is not None:
        return place
    names = getattr(item, "fixturenames", ())
    return next((place for place in PLACES if place.fixture in names), None)


def _parameter(item: pytest.Item) -> Place | None:
    callspec = getattr(item, "callspec", None)
    values: Iterable[object] = callspec.params.values() if callspec is not None else ()
    return next((value for value in values if isinstance(value, Place)), None)


def unmet_need(item: pytest.Item) -> str | None:
    """Why the test cannot run in its place: something that it says it needs is lacking there."""
    place = place_of(item)
    needs = [need for mark in item.iter_markers("needs") for need in mark.args]
    return None if place is None else next((place.lacks[need] for need in needs if need in place.lacks), None)


def repeated(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """What repeats in a sibling place that a reference place shows: all but the first form of each witness.

    A test that was written for one place, and takes its fixture, repeats nothing.
    """
    witnesses: set[tuple[str, Place]] = set()
    repeating: set[pytest.Item] = set()
    for item in items:
        place = _parameter(item)
        if place is None or place.tier is not Tier.SIBLING or unmet_need(item) is not None:
            continue
        form = item.nodeid.split("[")[0], place
        if item.get_closest_marker("witness") is None or form in witnesses:
            repeating.add(item)
        else:
            witnesses.add(form)
    return repeating


def left_out(items: Sequence[pytest.Item], *, chosen: str | None = None) -> list[pytest.Item]:
    """What a run leaves out. ``chosen`` is the value of ``PWC_PLACES``."""
    chosen = os.environ.get(VARIABLE, "") if chosen is None else chosen
    if not chosen:
        repeating = repeated(items)
        return [item for item in items if unmet_need(item) is not None or item in repeating]
    ids = None if chosen == "all" else _checked(chosen.split(","))
    return [item for item in items if unmet_need(item) is not None or not _is_in(item, ids)]


def _is_in(item: pytest.Item, ids: Collection[str] | None) -> bool:
    place = place_of(item)
    return ids is None or (place is not None and place.id in ids)


def _checked(ids: Collection[str]) -> Collection[str]:
    known = [place.id for place in PLACES]
    unknown = sorted(set(ids) - set(known))
    if unknown:
        raise pytest.UsageError(f"{VARIABLE}: there is no place {', '.join(unknown)}. There are {', '.join(known)}.")
    return ids
