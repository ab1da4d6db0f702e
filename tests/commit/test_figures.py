"""What a snapshot says of its own commit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from paimon_sink.core.steps import Step, listening
from tests.support.batches import coordinator, write_plan
from tests.support.clock import FakeClock
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import Place, places


@pytest.fixture(params=places("local", "sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@dataclass
class _CountsManifests:
    """A clock that stands at the number of manifests and lists in the table."""

    lake: Lake

    def now_ms(self) -> int:
        return sum("manifest" in name or name.endswith(".avro") for name in self.lake.files())

    def steady_ms(self) -> int:
        return 0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody is in the way")


def said(lake: Lake, name: str) -> str | None:
    return lake.history()[-1].properties.get(name)


def test_the_commit_time_includes_the_writing_of_manifests(lake: Lake) -> None:
    plan = write_plan(lake, 0, rows(1))

    replace(coordinator(lake), clock=_CountsManifests(lake)).commit(plan)

    assert int(said(lake, "pwc.commit-ms") or 0) >= 2


def test_the_commit_time_includes_lost_rounds(lake: Lake) -> None:
    plan, clock = write_plan(lake, 0, rows(1)), FakeClock()

    def another_comes_first(step: Step) -> None:
        if step is Step.AFTER_BUILD and not lake.history():
            clock.now += 700
            other_engine(lake).append(rows(2))

    with listening(another_comes_first):
        replace(coordinator(lake), clock=clock).commit(plan)

    assert said(lake, "pwc.attempts") == "2"
    assert int(said(lake, "pwc.commit-ms") or 0) >= 700


def test_a_clock_that_is_set_back_makes_no_negative_time(lake: Lake) -> None:
    plan, clock = write_plan(lake, 0, rows(1)), FakeClock()

    def set_back(step: Step) -> None:
        if step is Step.AFTER_LOOK:
            clock.now -= 5000

    with listening(set_back):
        replace(coordinator(lake), clock=clock).commit(plan)

    assert said(lake, "pwc.commit-ms") == "0"


def test_files_below_a_quarter_of_the_target_are_small(lake: Lake) -> None:
    plan = write_plan(lake, 0, rows(1))
    [file] = plan.files
    just_large, just_small = file.size_bytes * 4, file.size_bytes * 4 + 1

    replace(coordinator(lake), target_file_bytes=just_large).commit(plan)
    counted = [said(lake, "pwc.small-files")]
    replace(coordinator(lake), target_file_bytes=just_small).commit(write_plan(lake, 1, rows(1)))
    counted.append(said(lake, "pwc.small-files"))
    coordinator(lake).commit(write_plan(lake, 2, rows(1)))
    counted.append(said(lake, "pwc.small-files"))

    assert counted == ["0", "1", None]


def test_a_writer_counts_with_its_own_target(lake: Lake) -> None:
    lake.append(0, rows(1))
    with_default = said(lake, "pwc.small-files")

    lake.with_options(targetFileSize="1kb").append(1, rows(1))

    assert (with_default, said(lake, "pwc.small-files")) == ("1", "0")
