"""The warehouse that hostile input is thrown at, made once."""

from __future__ import annotations

import pytest

from tests.fuzz.support import Sample
from tests.support.lake import Lake, rows


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    root = tmp_path_factory.mktemp("fuzz") / "sample"
    lake = Lake({"warehouse": str(root)}).with_options(partitionBy="day")
    neighbour = Lake({"warehouse": str(root)}, "sales.neighbour").with_options(partitionBy="day")
    committed = (
        lake.append(0, rows(1, 2), rows(3, day="tuesday")).payload,
        lake.append(1, rows(4, day="a/b")).payload,
    )
    return Sample(
        root,
        lake,
        committed,
        replay=lake.write(rows(4, day="a/b")).payload,
        fresh=lake.write(rows(5), rows(6, day=None)).payload,
        neighbour=neighbour.append(0, rows(7)).payload,
    )
