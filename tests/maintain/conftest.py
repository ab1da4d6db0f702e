"""Maintenance is tested in every place."""

from __future__ import annotations

import pytest

from tests.support.lake import Lake
from tests.support.places import Place, places


@pytest.fixture(params=places())
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def lake(place: Place, request: pytest.FixtureRequest) -> Lake:
    return place.lake(request)
