"""The contract of formats, in every place a table can live, memory included."""

from __future__ import annotations

import pytest

from paimon_sink.testing import ContractLake, FormatContract, SecondEngineContract
from tests.support.engines import other_engine
from tests.support.places import Place, places

pytestmark = pytest.mark.witness  # each test is a clause


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    """The contract holds in memory too."""
    where: Place = request.param
    return where


class TestPlaces(FormatContract, SecondEngineContract):
    @pytest.fixture
    def lake(self, place: Place, request: pytest.FixtureRequest) -> ContractLake:
        there = place.lake(request)
        engine = other_engine(there)
        return ContractLake(options=there.options, table=there.table, drop=engine.drop, second_engine=engine)
