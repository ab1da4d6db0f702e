"""Faults that the machine found, as short scripts that stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paimon_sink.commit.decide import Policy
from paimon_sink.core.errors import StorageError
from paimon_sink.formats.paimon.table import PaimonTable
from tests.model.model import Batch
from tests.model.paimon import PaimonActions
from tests.model.stage import Stage
from tests.support.lying_files import Lies


@pytest.mark.parametrize("request_that_fails", ["get schema/", "head schema/"])
def test_a_schema_that_cannot_be_read_is_the_fault_of_the_store_and_not_of_the_message(
    tmp_path: Path, request_that_fails: str
) -> None:
    stage = Stage(PaimonActions(str(tmp_path)), str(tmp_path))
    one = stage.begin(Batch("ann", 0), tasks=1, policy=Policy())
    while one.plan is None:
        one.taker.move()
    stage.turns.close()
    coordinators_table = stage.actions.open(stage.store)
    assert isinstance(coordinators_table, PaimonTable)
    # As if a column had come after the tasks: theirs is not the schema that the table was opened with.
    coordinators_table.native.table_schema = replace(coordinators_table.native.table_schema, id=1)
    stage.files.lie(Lies(times_out=1, only=request_that_fails), seed=0)

    with pytest.raises(StorageError, match="schema-0: TimeoutError"):
        coordinators_table.commits.check_files(one.plan.files)
