"""What must hold of a table after every fault: it reads, its history is in order, and no batch is in it twice."""

from __future__ import annotations

from collections import Counter

from paimon_sink.core.errors import TableNotFoundError
from paimon_sink.maintain.verify import verify
from tests.support.lake import Lake

__all__ = ["assert_whole"]


def assert_whole(lake: Lake) -> None:
    """Every file that a snapshot names is there, and the newest one holds the rows that it says. No table is whole."""
    try:
        history = lake.history()
    except TableNotFoundError:
        return
    ids = [found.snapshot_id for found in history]
    assert len(ids) == len(set(ids)), "a snapshot is in twice"
    batches = Counter((found.commit_user, found.query_id, found.batch_id) for found in history)
    assert [batch for batch, times in batches.items() if batch[2] is not None and times > 1] == []
    rows = lake.read()
    if history and history[-1].rows is not None:
        assert len(rows) == history[-1].rows, "the newest snapshot does not hold the rows that it says"
    assert verify(lake.open()).problems == ()
