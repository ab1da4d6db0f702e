"""The built-in listeners in every place a table can live, and the table is whole afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.lake import Lake
from tests.support.places import Place, places
from tests.support.whole import assert_whole


@pytest.fixture(params=places())
def lake(request: pytest.FixtureRequest) -> Iterator[Lake]:
    where: Place = request.param
    found = where.lake(request)
    yield found
    assert_whole(found)
