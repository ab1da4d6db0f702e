"""Every place a table can live: a format on a store. Tests run in each; a new format is a line here and its engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.lake import Lake

__all__ = ["PLACES", "Place", "forms", "place_of", "places", "unmet_need"]


@dataclass(frozen=True, eq=False)
class Place:
    """A format on a store, and what nobody can do there. ``fixture`` names the fixture that gives its lake."""

    format: str
    store: str
    fixture: str
    marks: tuple[pytest.MarkDecorator, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    """What a test may need, by name, and why there is none of it here."""

    @property
    def id(self) -> str:
        return f"{self.format}-{self.store}"

    def lake(self, request: pytest.FixtureRequest) -> Lake:
        found: Lake = request.getfixturevalue(self.fixture)
        return found


_NO_ROLLBACK = "the REST server of the tests knows no rollback"
_NO_ALTER = "the REST server of the tests knows no change of a schema"
_SLOW = "hundreds of commits take their time here: one test of this kind is enough"
_ONE_FORM = "one form of this is enough here: the others differ in bytes, not in what the place does"
_IN_THE_CATALOG = "the catalog holds it, and no file that can be damaged"
_ONE_METADATA_FILE = "schema and snapshots are in one file, without which no task can begin"
_NO_DISK = "an object store has no disk of ours to fill"
_NO_AGES = "nobody can make an object of yesterday today"
_TABLE_BUCKET = "a table bucket takes no names but those of the format"
_NEVER_EXPIRES = "the ledger is in the table's properties, which no expiry touches"

PLACES = (
    Place("paimon", "local", "local_lake"),
    Place(
        "paimon",
        "s3",
        "s3_lake",
        marks=(pytest.mark.s3,),
        lacks={
            "a disk": _NO_DISK,
            "file ages": _NO_AGES,
            "every form": _ONE_FORM,
            "quick puts": _SLOW,
        },
    ),
    Place(
        "paimon",
        "rest",
        "rest_lake",
        lacks={
            "every form": _ONE_FORM,
            "quick puts": _SLOW,
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
        lacks={
            "every form": _ONE_FORM,
            "quick puts": _SLOW,
            "a ledger that expires": _NEVER_EXPIRES,
            "a snapshot file": _ONE_METADATA_FILE,
        },
    ),
    Place(
        "iceberg",
        "rest",
        "iceberg_rest_lake",
        marks=(pytest.mark.s3,),
        lacks={
            "a disk": _NO_DISK,
            "odd names": _TABLE_BUCKET,
            "file ages": _NO_AGES,
            "every form": _ONE_FORM,
            "quick puts": _SLOW,
            "a ledger that expires": _NEVER_EXPIRES,
            "a snapshot file": _IN_THE_CATALOG,
            "a schema file": _IN_THE_CATALOG,
        },
    ),
)


def places(*stores: str, format: str | None = None, slow_on: Collection[str] = ()) -> list[Any]:
    """Fixture parameters: all places, or those on the stores named, or of one format. ``slow_on`` has ids of places."""
    chosen = [
        place
        for place in PLACES
        if (not stores or place.store in stores) and (format is None or place.format == format)
    ]
    slow = {place: (pytest.mark.slow,) if place.id in slow_on else () for place in chosen}
    return [pytest.param(place, id=place.id, marks=(*place.marks, *slow[place])) for place in chosen]


def forms(first: Any, *others: Any) -> list[Any]:
    """Parameters that are forms of one fault: the first runs in every place, the others where tests are quick."""
    quick = pytest.mark.needs("every form")
    return [first, *(pytest.param(*other.values, marks=(*other.marks, quick), id=other.id) for other in others)]


def place_of(item: pytest.Item) -> Place | None:
    """The place a collected test runs in, if it runs in one."""
    callspec = getattr(item, "callspec", None)
    values: Iterable[object] = callspec.params.values() if callspec is not None else ()
    for value in values:
        if isinstance(value, Place):
            return value
    names = getattr(item, "fixturenames", ())
    return next((place for place in PLACES if place.fixture in names), None)


def unmet_need(item: pytest.Item) -> str | None:
    """Why the test cannot run in its place: something that it says it needs is lacking there."""
    place = place_of(item)
    needs = [need for mark in item.iter_markers("needs") for need in mark.args]
    return None if place is None else next((place.lacks[need] for need in needs if need in place.lacks), None)
