"""Streams in the reference places and in memory."""

from __future__ import annotations

import pytest

from tests.support.places import Place, places


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    """Every place a table can live."""
    where: Place = request.param
    return where
