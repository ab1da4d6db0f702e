"""Rolling a Paimon table back while an expiry is about to take what it goes back to."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import PwcError
from paimon_sink.formats.paimon.expiry import PaimonExpiry
from paimon_sink.maintain.expire import Retention, expire
from paimon_sink.maintain.rollback import plan_rollback, roll_back
from paimon_sink.maintain.verify import verify
from tests.support.clock import FakeClock
from tests.support.lake import Lake, rows


@pytest.mark.fault(82)
def test_a_snapshot_that_an_expiry_is_about_to_take_cannot_be_gone_back_to(
    local_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = local_lake
    for batch in range(4):
        lake.append(batch, rows(batch))
    lake.commit(4, lake.write(rows(4)), overwrite=True)
    table = lake.open()
    plan = plan_rollback(table, str(lake.snapshot_ids()[0]))
    remove = PaimonExpiry._remove
    refused: list[bool] = []

    def beside(self: PaimonExpiry, each: object) -> None:
        if not refused:
            with pytest.raises(PwcError, match="expired, or is about to"):
                roll_back(table, plan)
            refused.append(True)
        remove(self, each)  # type: ignore[arg-type]

    monkeypatch.setattr(PaimonExpiry, "_remove", beside)
    expire(lake.open(), Retention(older_than_ms=1, keep_last=1), clock=FakeClock(10**15))

    assert refused
    assert lake.ids() == [4]
    assert verify(lake.open(), deep=True).problems == ()
