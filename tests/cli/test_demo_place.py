"""What the demo sees of its table, in any format."""

from __future__ import annotations

from pathlib import Path

import pytest

from paimon_sink.cli.demo.place import TABLE, Place, Published
from paimon_sink.formats.registry import BUILT_IN
from tests.support.lake import Lake, rows


@pytest.fixture(params=BUILT_IN)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    found = Place(tmp_path / "demo", request.param)
    found.empty()
    return found


def test_there_is_nothing_before_the_first_batch(place: Place) -> None:
    assert place.published() == []
    assert not place.warehouse.exists()


def test_batches_and_files_that_no_snapshot_names_are_counted(place: Place) -> None:
    lake = Lake(place.options(), TABLE)
    lake.commit(0, lake.write(rows(1)), lake.write(rows(2)))
    lake.write(rows(3))
    lake.append(1, rows(3))

    first, second = lake.snapshot_ids()
    assert place.published() == [Published(first, 0, 2), Published(second, 1, 1)]
    assert place.files_left_behind() == 1
