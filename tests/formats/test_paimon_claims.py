"""Claims: the notes that Paimon tables need because their ledger may expire. This file is about Paimon only."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_sink.formats.ledger import Claim
from paimon_sink.formats.paimon.format import PaimonFormat
from tests.support.batches import sink_options
from tests.support.lake import Lake

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])


@pytest.mark.witness
def test_claims_are_on_record_until_they_are_released(paimon_lake: Lake) -> None:
    PaimonFormat().create(sink_options(paimon_lake).table, SCHEMA, [])
    table = paimon_lake.open()
    claims = [Claim("u.v/w", 7, "query.with/odd=signs", "c-7"), Claim("u.v/w", 8, None, "c-8")]

    for claim in claims:
        table.commits.claim(claim)
    table.commits.release(claims[0])
    table.commits.release(claims[0])

    assert table.commits.load_head(commit_user="u.v/w").ledger.claims == ()
    assert len(paimon_lake.files("pwc/claims/")) == 1
