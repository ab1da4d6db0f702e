"""What tasks write is Paimon's here, on a disk and on S3."""

from __future__ import annotations

import pytest

from tests.support.places import Place, places


@pytest.fixture(params=places("local", "s3", format="paimon"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where
