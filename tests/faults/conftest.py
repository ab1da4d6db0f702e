"""Every fault in every place, and the one question after each of them: is the table whole?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.engines import OtherEngine, other_engine
from tests.support.lake import Lake
from tests.support.places import Place, places
from tests.support.whole import assert_whole


@pytest.fixture(params=places())
def lake(request: pytest.FixtureRequest) -> Iterator[Lake]:
    """A warehouse in every place. After the test its table has to be whole, unless the test damages it on purpose."""
    where: Place = request.param
    found = where.lake(request)
    yield found
    if request.node.get_closest_marker("damages") is None:
        assert_whole(found)


@pytest.fixture
def engine(lake: Lake) -> OtherEngine:
    """Another engine on the same table."""
    return other_engine(lake)
