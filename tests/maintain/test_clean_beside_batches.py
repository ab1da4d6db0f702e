"""A batch that is long under way beside a cleaning: what was cleaned up is never published, whatever clocks say."""

from __future__ import annotations

import json
import uuid

import pytest

from paimon_sink.core.errors import TableChangedError
from paimon_sink.maintain.clean import LEAST_AGE_MS, clean
from paimon_sink.maintain.verify import verify
from paimon_sink.spark.writers import PwcCommitMessage
from tests.support.ages import Ages
from tests.support.clock import Hands
from tests.support.lake import Lake, rows
from tests.support.old_messages import body_of_version_1
from tests.support.places import Place, places

A_MINUTE = 60_000
A_DAY = 24 * 60 * A_MINUTE
A_BATCH = 70 * A_MINUTE


@pytest.fixture(params=places("local", "s3", "sqlite", "rest"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


@pytest.fixture
def remote_lake() -> Lake:
    """On a store where a look is a request, in memory: there it costs nothing to have many tests."""
    return Lake({"warehouse": f"memory://{uuid.uuid4().hex}"})


@pytest.fixture
def ages(monkeypatch: pytest.MonkeyPatch) -> Ages:
    """Files get as old as a batch takes."""
    told = Ages(by_ms=A_BATCH)
    told.install(monkeypatch)
    return told


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    turned = Hands()
    turned.install(monkeypatch)
    return turned


def take_away(lake: Lake, *messages: PwcCommitMessage) -> None:
    """What cleaning up does to files that it takes for orphans."""
    table = lake.open()
    table.store.delete_many(table.store.join(table.location, path) for path in lake.files_of(messages))


def assert_refused_and_written_anew(lake: Lake, *messages: PwcCommitMessage) -> None:
    with pytest.raises(TableChangedError, match=f"1 of its {len(messages)} data files are gone"):
        lake.commit(1, *messages)

    assert lake.ids() == [0]
    lake.append(1, rows(1))
    assert lake.ids() == [0, 1]


def test_what_was_cleaned_up_under_a_long_batch_with_a_clock_ahead_is_refused(
    lake: Lake, ages: Ages, hands: Hands
) -> None:
    """``pwc clean --older-than 1h`` beside a batch of 70 minutes, whose task has a clock that is 45 minutes ahead."""
    lake.append(0, rows(0))
    writer = lake.stream_writer()
    with hands.elsewhere(45 * A_MINUTE, steady_ms=45 * A_MINUTE):
        message = writer.write(iter([rows(1)]))
    hands.pass_by(A_BATCH)
    ages.grow_old(lake)

    assert clean(lake.open(), older_than_ms=LEAST_AGE_MS, dry_run=False).deleted == 1

    assert_refused_and_written_anew(lake, message)
    assert verify(lake.open()).problems == ()


@pytest.mark.parametrize(
    "ahead_ms",
    [
        pytest.param(0, id="right"),
        pytest.param(20 * A_MINUTE, id="20 minutes ahead"),
        pytest.param(45 * A_MINUTE, id="45 minutes ahead"),
        pytest.param(A_BATCH, id="ahead by the whole batch"),
        pytest.param(A_DAY, id="a day ahead"),
        pytest.param(-45 * A_MINUTE, id="45 minutes behind"),
        pytest.param(-A_DAY, id="a day behind"),
    ],
)
def test_what_is_gone_after_a_long_batch_is_refused_however_wrong_the_clocks_of_its_tasks_are(
    remote_lake: Lake, hands: Hands, ahead_ms: int
) -> None:
    remote_lake.append(0, rows(0))
    writer = remote_lake.stream_writer()
    with hands.elsewhere(ahead_ms, steady_ms=max(ahead_ms, 0)):
        messages = [writer.write(iter([rows(number)])) for number in (2, 1)]
    hands.pass_by(A_BATCH)

    take_away(remote_lake, messages[1])

    assert_refused_and_written_anew(remote_lake, *messages)


@pytest.mark.parametrize(
    ("wall_ms", "steady_ms"),
    [
        pytest.param(25 * A_MINUTE, A_BATCH, id="set back by 45 minutes"),
        pytest.param(-20 * A_MINUTE, A_BATCH, id="set back to before the batch"),
        pytest.param(A_BATCH, 5 * A_MINUTE, id="asleep for most of it"),
        pytest.param(A_BATCH, -5 * A_MINUTE, id="begun anew"),
        pytest.param(-20 * A_MINUTE, -5 * A_MINUTE, id="both before the batch"),
    ],
)
def test_what_is_gone_is_refused_also_when_a_clock_of_the_driver_went_wrong_meanwhile(
    remote_lake: Lake, hands: Hands, wall_ms: int, steady_ms: int
) -> None:
    remote_lake.append(0, rows(0))
    messages = [remote_lake.write(rows(number)) for number in (2, 1)]
    hands.pass_by(wall_ms, steady_ms=steady_ms)

    take_away(remote_lake, messages[1])

    assert_refused_and_written_anew(remote_lake, *messages)


def test_a_batch_of_which_nobody_knows_the_age_is_looked_for_whole(remote_lake: Lake) -> None:
    """Messages before this one said only when the task began, by its own clock."""
    remote_lake.append(0, rows(0))
    first, second = remote_lake.write(rows(1)), remote_lake.write(rows(2))
    body = body_of_version_1(second.payload)
    before = PwcCommitMessage(json.dumps({**body, "planned": None, "written": 1_700_000_000_000}).encode())
    [gone] = remote_lake.files_of([second])
    take_away(remote_lake, second)

    with pytest.raises(TableChangedError, match=f"1 of its 2 data files are gone, such as {gone}"):
        remote_lake.commit(1, first, before)

    assert remote_lake.ids() == [0]


@pytest.mark.witness
@pytest.mark.needs("a disk")
def test_on_a_disk_a_batch_of_any_age_is_looked_for_whole(lake: Lake) -> None:
    """Some mounts give a file the time of the machine that writes it: it may look old at once."""
    lake.append(0, rows(0))
    messages = [lake.write(rows(number)) for number in range(1, 20)]
    [gone] = lake.files_of(messages[11:12])
    take_away(lake, messages[11])

    with pytest.raises(TableChangedError, match=f"1 of its 19 data files are gone, such as {gone}"):
        lake.commit(1, *messages)

    assert lake.ids() == [0]


def test_a_young_batch_that_finds_none_of_its_files_is_refused(remote_lake: Lake) -> None:
    remote_lake.append(0, rows(0))
    messages = [remote_lake.write(rows(number)) for number in (1, 2)]
    take_away(remote_lake, *messages)

    with pytest.raises(TableChangedError, match="2 of its 2 data files are gone"):
        remote_lake.commit(1, *messages)

    assert remote_lake.ids() == [0]
