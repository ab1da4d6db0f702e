"""Most of maintenance is tested in every place."""

from __future__ import annotations

import pytest

from tests.support.places import Place, places


@pytest.fixture(params=places())
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where
