"""After a test with a built-in listener its table is whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.whole import assert_whole


@pytest.fixture(autouse=True)
def whole_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    lakes = [request.getfixturevalue("lake")] if "lake" in request.fixturenames else []
    yield
    for lake in lakes:
        assert_whole(lake)
