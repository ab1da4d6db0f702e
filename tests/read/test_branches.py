"""Reads of a branch: its own snapshots, and those it grew out of."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from paimon_sink.core.errors import OptionError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import parse_options
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows
from tests.support.places import Place, places
from tests.support.reading import ids


@pytest.fixture(params=places("sqlite"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@dataclass(frozen=True)
class Branched:
    """A table whose main has the rows 0 and 11, and whose branch ``audit`` the rows 0, 1 and 2."""

    main: Lake
    audit: Lake
    common: str
    of_main: str
    of_audit: tuple[str, str]

    def at(self, snapshot: str) -> str:
        """The time of a snapshot, in milliseconds."""
        times = {info.snapshot_id: info.at_ms for lake in (self.main, self.audit) for info in lake.history()}
        return str(times[int(snapshot)])


@pytest.fixture
def branched(lake: Lake) -> Branched:
    lake.append(0, rows(0))
    [common] = lake.snapshot_ids()
    audit = lake.with_options(branch="audit")
    audit.append(1, rows(1))
    audit.append(2, rows(2))
    lake.append(1, rows(11))
    of_main = next(number for number in lake.snapshot_ids() if number != common)
    first, second = (number for number in audit.snapshot_ids() if number != common)
    return Branched(lake, audit, str(common), str(of_main), (str(first), str(second)))


def test_a_branch_is_read_as_it_is_and_as_it_was(branched: Branched) -> None:
    first, second = branched.of_audit

    assert ids(branched.audit) == [0, 1, 2]
    assert [ids(branched.audit, versionAsOf=version) for version in (branched.common, first, second)] == [
        [0],
        [0, 1],
        [0, 1, 2],
    ]
    assert ids(branched.main) == [0, 11]


def test_the_id_of_a_snapshot_may_be_of_any_branch(branched: Branched) -> None:
    assert ids(branched.main, versionAsOf=branched.of_audit[0]) == [0, 1]
    assert ids(branched.audit, versionAsOf=branched.of_main) == [0, 11]


def test_a_tag_is_read_from_any_branch(branched: Branched) -> None:
    assert branched.audit.open().refs.tag("checked", int(branched.of_audit[0]))

    assert ids(branched.main, versionAsOf="checked") == [0, 1]


def test_a_time_means_the_newest_of_that_branch(branched: Branched) -> None:
    # Main got its last row after the branch got both of its own.
    late = branched.at(branched.of_main)

    assert ids(branched.audit, timestampAsOf=late) == [0, 1, 2]
    assert ids(branched.main, timestampAsOf=late) == [0, 11]
    assert ids(branched.audit, timestampAsOf=branched.at(branched.common)) == [0]


def test_a_range_is_of_the_line_of_its_branch(branched: Branched) -> None:
    first, second = branched.of_audit

    assert ids(branched.audit, startingVersion=branched.common) == [0, 1, 2]
    assert ids(branched.audit, startingVersion=first) == [1, 2]
    assert ids(branched.audit, startingVersion=first, endingVersion=first) == [1]
    assert ids(branched.main, startingVersion=branched.common) == [0, 11]
    assert ids(branched.audit, startingTimestamp=branched.at(second), where="id = 2") == [2]


def test_a_range_from_another_branch_is_refused(branched: Branched) -> None:
    with pytest.raises(
        OptionError, match=r"does not lead to snapshot \d+. It is of another branch, or was rolled back"
    ):
        ids(branched.main, startingVersion=branched.of_audit[0])
    with pytest.raises(OptionError, match="does not lead to"):
        ids(branched.audit, startingVersion=branched.of_main)


def test_a_range_from_what_was_rolled_back_is_refused(branched: Branched) -> None:
    other_engine(branched.main).roll_back(int(branched.common))
    branched.main.append(2, rows(12))

    with pytest.raises(OptionError, match="or was rolled back"):
        ids(branched.main, startingVersion=branched.of_main)


def test_the_name_of_a_branch_is_no_version(branched: Branched) -> None:
    with pytest.raises(OptionError, match=r"versionAsOf=audit is a branch\. Read it with branch=audit"):
        ids(branched.main, versionAsOf="audit")


def test_a_branch_that_is_not_there_is_named(branched: Branched) -> None:
    with pytest.raises(OptionError, match="it has no branch 'nowhere'"):
        ids(branched.main.with_options(branch="nowhere"))


def test_on_paimon_a_branch_is_refused_before_anything_is_read(local_lake: Lake) -> None:
    with pytest.raises(OptionError, match="branch is not available for Paimon; leave it out"):
        parse_options(local_lake.with_options(branch="audit").all_options(), purpose=Purpose.READ)
