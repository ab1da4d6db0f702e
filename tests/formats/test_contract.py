"""The contract of formats, in every place a table can live and in memory. ``paimon_sink.testing`` has the clauses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paimon_sink.formats.memory import memory_lake
from paimon_sink.testing import ContractLake, FormatContract, SecondEngineContract
from tests.support.engines import other_engine
from tests.support.lake import Lake
from tests.support.memory_engine import MemoryEngine
from tests.support.places import Place

pytestmark = pytest.mark.witness  # each test is a clause


class TestPlaces(FormatContract, SecondEngineContract):
    @pytest.fixture
    def lake(self, place: Place, request: pytest.FixtureRequest) -> ContractLake:
        there = place.lake(request)
        engine = other_engine(there)
        return ContractLake(options=there.options, table=there.table, drop=engine.drop, second_engine=engine)


class TestMemory(FormatContract, SecondEngineContract):
    @pytest.fixture
    def lake(self) -> Iterator[ContractLake]:
        with memory_lake() as opened:
            options = opened.options("sales.orders")
            engine = MemoryEngine(Lake(options))
            yield ContractLake(options=options, drop=engine.drop, second_engine=engine)
