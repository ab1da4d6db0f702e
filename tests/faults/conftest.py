"""Every fault in every place, and the one question after each of them: is the table whole?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.engines import OtherEngine, other_engine
from tests.support.lake import Lake
from tests.support.places import PLACES, Place, places
from tests.support.whole import assert_whole


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    """Every place a table can live, and memory, where what needs no store and no other process is shown at once."""
    where: Place = request.param
    return where


@pytest.fixture(autouse=True)
def whole_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    """After the test its table has to be whole, wherever it lives, unless the test damages it on purpose."""
    names = {"lake", *(place.fixture for place in PLACES)} & set(request.fixturenames)
    lakes = [request.getfixturevalue(name) for name in sorted(names)]
    yield
    if request.node.get_closest_marker("damages") is None:
        for found in lakes:
            assert_whole(found)


@pytest.fixture
def engine(lake: Lake) -> OtherEngine:
    """Another engine on the same table."""
    return other_engine(lake)
