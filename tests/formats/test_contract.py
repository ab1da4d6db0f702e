"""The contract of formats, in every place a table can live, memory included."""

from __future__ import annotations

import pytest

from paimon_sink.testing import ContractLake, FormatContract, RefsContract, RollbackContract, SecondEngineContract
from tests.support.engines import other_engine
from tests.support.places import Place, places

pytestmark = pytest.mark.witness  # each test is a clause


@pytest.fixture(params=places(in_memory=True))
def place(request: pytest.FixtureRequest) -> Place:
    """The contract holds in memory too."""
    where: Place = request.param
    return where


@pytest.fixture
def lake(place: Place, request: pytest.FixtureRequest) -> ContractLake:
    there = place.lake(request)
    engine = other_engine(there)
    return ContractLake(options=there.options, table=there.table, drop=engine.drop, second_engine=engine)


class TestPlaces(FormatContract, RefsContract, SecondEngineContract):
    """Every place."""


@pytest.mark.needs("rollback")
class TestRollbacks(RollbackContract):
    """Every place that can be rolled back."""
