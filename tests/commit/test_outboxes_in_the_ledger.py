"""Who leaves the ledger, and what is delivered first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from paimon_sink.commit.coordinator import Coordinator
from paimon_sink.commit.decide import Policy, advance
from paimon_sink.core.outbox import Outbox, OutboxPart
from paimon_sink.formats.ledger import Ledger, LedgerEntry
from paimon_sink.formats.memory import MemoryLake, memory_lake
from paimon_sink.maintain.quarantine import Quarantine
from paimon_sink.sink import Sink
from tests.support.batches import sink_options
from tests.support.clock import FakeClock
from tests.support.lake import Lake, rows
from tests.support.quarantined import Quarantined

DAY_MS = 24 * 3600 * 1000
OWING = LedgerEntry(7, None, "c-1", 9, 0, outbox=Outbox(3, (OutboxPart("sales.bad", "f", 1, 1),)))


@pytest.fixture
def lake() -> Iterator[MemoryLake]:
    with memory_lake() as opened:
        yield opened


def test_who_owes_rows_stays_in_the_ledger() -> None:
    ledger = Ledger({"owing": OWING, "paid": replace(OWING, outbox=Outbox(3))})

    after = advance(ledger, commit_user="other", entry=None, now_ms=40 * DAY_MS, retention_ms=30 * DAY_MS)

    assert list(after.entries) == ["owing"]
    assert not after.complete


def test_who_is_about_to_leave_the_ledger_has_what_it_owes_delivered_first(lake: MemoryLake) -> None:
    tables = Quarantined(Lake(lake.options("sales.orders")))
    tables.append(0, 1, -1)
    later = Coordinator(
        tables.lake.open(),
        Policy(),
        clock=FakeClock(lake.clock.now_ms() + 40 * DAY_MS),
        outboxes=Quarantine(tables.lake.open(), sink_options(tables.lake).table),
    )
    other = Sink.of({**tables.lake.all_options(), "commitUser": "other"})
    message = other.write(iter([rows(2)]), schema=rows(2).schema)
    plan = other._plan([message], 0)
    assert plan is not None

    later.commit(plan)

    ledger = lake.snapshots("sales.orders")[-1].ledger
    assert ledger is not None
    assert list(ledger.entries) == ["other"]
    tables.assert_sorted(good=[1, 2], bad=[-1])
