"""Another engine expired all that named our batches: the known is used, the unknown refused, nothing is doubled."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import CommitUserConflictError, LedgerLostError
from tests.support.batches import of_query
from tests.support.engines import OtherEngine
from tests.support.lake import Lake, rows


def lose_the_ledger(lake: Lake, engine: OtherEngine) -> None:
    newest = len(lake.history())
    engine.append(rows(70))
    engine.append(rows(71))
    engine.expire(newest)


@pytest.mark.fault(11)
@pytest.mark.needs("a ledger that expires")
def test_skipping_one_batch_of_a_lost_ledger_does_not_skip_the_next_ones(lake: Lake, engine: OtherEngine) -> None:
    lake.append(5, rows(105))
    lose_the_ledger(lake, engine)
    skipping = lake.with_options(onLedgerLost="skip")

    for batch_id in (5, 6, 7):
        skipping.append(batch_id, rows(100 + batch_id))

    assert lake.ids() == [70, 71, 105, 106, 107]


@pytest.mark.fault(6, 11)
def test_an_empty_batch_does_not_take_a_name_over(lake: Lake, engine: OtherEngine) -> None:
    lake.commit(5, of_query(lake.write(rows(1)), "A"))
    lose_the_ledger(lake, engine)

    lake.commit(8, of_query(lake.write(), "B"))

    with pytest.raises(CommitUserConflictError):
        lake.commit(9, of_query(lake.write(rows(2)), "B"))


@pytest.mark.fault(6, 11)
@pytest.mark.needs("a ledger that expires")
def test_an_empty_batch_does_not_vouch_for_the_next_one(lake: Lake, engine: OtherEngine) -> None:
    for batch_id in (3, 4, 5):
        lake.append(batch_id, rows(batch_id))
    lose_the_ledger(lake, engine)
    engine.forget_claims()

    lake.commit(3, lake.write())

    with pytest.raises(LedgerLostError):
        lake.append(4, rows(4))


@pytest.mark.fault(6, 11)
def test_a_new_stream_whose_first_batch_is_empty_goes_on_although_history_expired(
    lake: Lake, engine: OtherEngine
) -> None:
    lake.append(0, rows(1))
    lose_the_ledger(lake, engine)
    new = lake.with_options(commitUser="new")

    new.commit(0, new.write())
    new.append(1, rows(2))

    assert lake.ids() == [1, 2, 70, 71]
