"""The warehouse that hostile input is thrown at, made once."""

from __future__ import annotations

import pytest

from tests.fuzz.support import Sample
from tests.support.lake import Lake, rows
from tests.support.old_messages import as_version_1


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    root = tmp_path_factory.mktemp("fuzz") / "sample"
    lake = Lake({"warehouse": str(root)}).with_options(partitionBy="day")
    neighbour = Lake({"warehouse": str(root)}, "sales.neighbour").with_options(partitionBy="day")
    # Plain JSON, which can be broken in more ways than a compressed message, and which must be read as long.
    committed = (
        as_version_1(lake.append(0, rows(1, 2), rows(3, day="tuesday")).payload),
        as_version_1(lake.append(1, rows(4, day="a/b")).payload),
    )
    return Sample(
        root,
        lake,
        committed,
        replay=as_version_1(lake.write(rows(4, day="a/b")).payload),
        fresh=as_version_1(lake.write(rows(5), rows(6, day=None)).payload),
        neighbour=as_version_1(neighbour.append(0, rows(7)).payload),
    )
