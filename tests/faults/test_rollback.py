"""Rolling back beside whatever else a table goes through: afterwards it is whole, and at one snapshot or the other."""

from __future__ import annotations

from contextlib import suppress

import pytest

from paimon_sink.core.errors import CommitConflictError, PwcError
from paimon_sink.core.steps import Step, listening
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.rollback import plan_rollback, roll_back
from paimon_sink.maintain.tags import create_tag
from paimon_sink.maintain.verify import verify
from tests.support.clock import FakeClock
from tests.support.engines import OtherEngine
from tests.support.interleave import once_at
from tests.support.lake import Lake, rows
from tests.support.places import Place, places

pytestmark = pytest.mark.needs("rollback")


@pytest.fixture(params=places("local", "s3", format="paimon"))
def paimon_lake(request: pytest.FixtureRequest) -> Lake:
    where: Place = request.param
    return where.lake(request)


def a_table(lake: Lake, *, batches: int = 4) -> list[int]:
    for batch in range(batches):
        lake.append(batch, rows(batch))
    return lake.snapshot_ids()


def back_to(lake: Lake, snapshot_id: int) -> None:
    table = lake.open()
    roll_back(table, plan_rollback(table, str(snapshot_id)))


class KilledError(BaseException):
    """Whatever the code does about errors, it does not see this one coming."""


def killed_at(step: Step, count: int) -> object:
    heard: list[Step] = []

    def listen(reached: Step) -> None:
        heard.append(reached)
        if reached is step and heard.count(step) == count:
            raise KilledError

    return listen


# ---------------------------------------------------------------- beside commits


@pytest.mark.witness
@pytest.mark.fault(33, 80)
@pytest.mark.parametrize(
    "step", [Step.BEFORE_PUT, Step.BEFORE_LOOK, Step.AFTER_LOOK, Step.AFTER_BUILD, Step.AFTER_PUT, Step.COMMITTED]
)
def test_a_batch_beside_a_rollback_is_in_on_what_stays_or_not_at_all(
    lake: Lake, engine: OtherEngine, step: Step
) -> None:
    ids = a_table(lake)
    other = lake.with_options(commitUser="other")

    with listening(once_at(step, lambda: back_to(lake, ids[1]))):
        with suppress(PwcError):
            other.append(0, rows(100))

    stands = engine.read_ids()
    assert stands in ([0, 1], [0, 1, 100])
    assert lake.ids() == stands
    # Whatever became of it, a replay puts it in once, and so go on the batches that were taken back.
    other.append(0, rows(100))
    lake.append(2, rows(2))
    assert lake.ids() == engine.read_ids() == [0, 1, 2, 100]


@pytest.mark.fault(80)
@pytest.mark.parametrize("step", [Step.HEAD_SET_BACK, Step.SNAPSHOT_TAKEN_BACK])
def test_a_batch_that_lands_while_snapshots_go_is_kept_on_what_stays_or_goes(local_lake: Lake, step: Step) -> None:
    ids = a_table(local_lake)

    with listening(once_at(step, lambda: local_lake.with_options(commitUser="other").append(0, rows(100)))):
        back_to(local_lake, ids[0])

    assert local_lake.ids() in ([0], [0, 100])
    assert verify(local_lake.open(), deep=True).problems == ()
    local_lake.with_options(commitUser="other").append(1, rows(101))
    assert local_lake.ids() in ([0, 101], [0, 100, 101])
    assert verify(local_lake.open(), deep=True).problems == ()


@pytest.mark.witness
@pytest.mark.fault(80, 82)
def test_a_table_that_moved_on_since_the_plan_is_not_rolled_back(lake: Lake) -> None:
    ids = a_table(lake)
    table = lake.open()
    plan = plan_rollback(table, str(ids[0]))
    lake.append(4, rows(4))

    with pytest.raises(CommitConflictError, match="Nothing was rolled back: the newest snapshot"):
        roll_back(table, plan)

    assert lake.ids() == [0, 1, 2, 3, 4]


# ---------------------------------------------------------------- killed, and run again


@pytest.mark.witness
@pytest.mark.fault(81)
@pytest.mark.parametrize(
    ("step", "count"),
    [
        (Step.SNAPSHOT_TAKEN_BACK, 2),
        (Step.HEAD_SET_BACK, 1),
        (Step.SNAPSHOT_TAKEN_BACK, 1),
        (Step.SNAPSHOT_TAKEN_BACK, 3),
        (Step.TAG_TAKEN_BACK, 1),
    ],
)
@pytest.mark.parametrize("goes_on", [False, True], ids=["", "with a batch between"])
def test_a_rollback_that_was_killed_leaves_a_table_that_is_whole_and_is_finished_by_the_next(
    paimon_lake: Lake, step: Step, count: int, goes_on: bool
) -> None:
    lake = paimon_lake
    ids = a_table(lake)
    create_tag(lake.open(), "above", snapshot_id=ids[2])
    create_tag(lake.open(), "newest", snapshot_id=ids[3])

    with pytest.raises(KilledError), listening(killed_at(step, count)):  # type: ignore[arg-type]
        back_to(lake, ids[0])
    assert lake.ids() == list(range(len(lake.snapshot_ids())))
    assert verify(lake.open(), deep=True).problems == ()
    if goes_on:
        lake.with_options(commitUser="other").append(0, rows(100))
        assert verify(lake.open(), deep=True).problems == ()
    back_to(lake, ids[0])

    assert lake.ids() == [0]
    assert lake.open().refs.tags() == {}
    assert verify(lake.open(), deep=True).problems == ()


@pytest.mark.fault(81)
def test_one_to_a_tag_whose_snapshot_expired_is_finished_too(local_lake: Lake) -> None:
    lake = local_lake
    ids = a_table(lake)
    create_tag(lake.open(), "release", snapshot_id=ids[0])
    expire(lake.open(), Retention(older_than_ms=1, keep_last=2), clock=FakeClock(10**15))
    assert lake.snapshot_ids() == ids[2:]

    def to_release() -> None:
        table = lake.open()
        roll_back(table, plan_rollback(table, "release"))

    with pytest.raises(KilledError), listening(killed_at(Step.SNAPSHOT_TAKEN_BACK, 1)):  # type: ignore[arg-type]
        to_release()
    assert lake.ids() == [0, 1, 2]
    to_release()

    assert lake.ids() == [0]
    assert lake.snapshot_ids() == [ids[0]]
    lake.append(1, rows(1))
    assert lake.ids() == [0, 1]
    assert verify(lake.open(), deep=True).problems == ()


# ---------------------------------------------------------------- two at once, and expiry


@pytest.mark.witness
@pytest.mark.fault(82)
@pytest.mark.parametrize("lower_is_first", [True, False])
def test_two_rollbacks_at_once_end_at_one_of_the_two(paimon_lake: Lake, lower_is_first: bool) -> None:
    lake = paimon_lake
    ids = a_table(lake)
    first, second = (ids[0], ids[2]) if lower_is_first else (ids[2], ids[0])

    def beside() -> None:
        with suppress(PwcError):
            back_to(lake, first)

    with listening(once_at(Step.HEAD_SET_BACK, beside)):
        with suppress(CommitConflictError):
            back_to(lake, second)

    assert lake.ids() in ([0], [0, 1, 2])
    assert verify(lake.open(), deep=True).problems == ()
    lake.with_options(commitUser="other").append(0, rows(100))
    assert verify(lake.open(), deep=True).problems == ()


@pytest.mark.fault(82)
@pytest.mark.parametrize("step", [Step.HEAD_SET_BACK, Step.SNAPSHOT_TAKEN_BACK])
def test_an_expiry_beside_a_rollback_takes_nothing_of_what_stays(local_lake: Lake, step: Step) -> None:
    lake = local_lake
    ids = a_table(lake)
    lake.commit(4, lake.write(rows(4)), overwrite=True)

    def expiring() -> None:
        with suppress(PwcError):
            expire(lake.open(), Retention(older_than_ms=1, keep_last=1), clock=FakeClock(10**15))

    with listening(once_at(step, expiring)):
        back_to(lake, ids[1])

    assert lake.ids() == [0, 1]
    assert verify(lake.open(), deep=True).problems == ()
