"""We and Java append to one table, in turns and at once: each acknowledged row is in it once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from integration.interop.iceberg.shared import Shared
from paimon_sink.maintain.verify import verify
from tests.support.lake import rows

EACH = 8
JAVA = 1000


def test_in_turns(shared: Shared) -> None:
    shared.create()

    for turn in range(4):
        shared.insert(JAVA + turn)
        shared.lake.append(turn, rows(turn))
        shared.lake.append(turn, rows(turn))

    shared.assert_agreed([*range(4), *range(JAVA, JAVA + 4)])
    assert [row.summary.get("pwc.batch-id") for row in shared.snapshots()] == [
        None,
        "0",
        None,
        "1",
        None,
        "2",
        None,
        "3",
    ]


def test_at_the_same_time(shared: Shared) -> None:
    """Java may give up after its retries, and a row of such a commit may be in or not. What it acknowledged is in."""
    shared.create(properties="'commit.retry.num-retries'='20', 'commit.retry.min-wait-ms'='20'")

    with ThreadPoolExecutor(3) as pool:
        theirs = [pool.submit(_insert_all, shared, JAVA * (number + 1)) for number in range(2)]
        ours = pool.submit(_append_all, shared)
    ours.result()
    acknowledged = {number for found in theirs for number in found.result()}

    found = Counter(shared.lake.ids())
    assert Counter(shared.ids()) == found
    assert set(found.values()) == {1}, "a row is in twice"
    assert acknowledged | set(range(EACH)) <= set(found), "an acknowledged row is lost"
    assert len(acknowledged) >= EACH, "Java hardly got through: this was no race"
    assert verify(shared.lake.open()).problems == ()


def _insert_all(shared: Shared, first: int) -> list[int]:
    done = []
    for number in range(first, first + EACH):
        try:
            shared.insert(number)
        except Exception:  # noqa: BLE001 - whatever Java says then, it did not acknowledge the row
            continue
        done.append(number)
    return done


def _append_all(shared: Shared) -> None:
    """Each batch twice, as after a crash of the driver. Until Java is warm it takes its time, so there are pauses."""
    for batch in range(EACH):
        shared.lake.append(batch, rows(batch))
        shared.lake.append(batch, rows(batch))
