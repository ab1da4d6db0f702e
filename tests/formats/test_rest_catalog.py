"""A REST catalog that fails, lies or is slow: the batch is in once all the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_sink.commit.coordinator import Bounds
from paimon_sink.core.errors import (
    CommitUnknownError,
    PwcError,
    SchemaMismatchError,
    TableChangedError,
    UnsupportedTableError,
)
from paimon_sink.core.steps import Step, listening
from paimon_sink.maintain.schema import read_schema
from tests.rest_server import RestCatalogServer
from tests.support import foreign
from tests.support.batches import coordinator, write_plan
from tests.support.evolving import append, with_note
from tests.support.lake import Lake, rows


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429, 409])
def test_an_error_after_the_commit_was_applied_is_committed_once(
    rest_lake: Lake, rest_server: RestCatalogServer, status: int
) -> None:
    rest_lake.append(0, rows(1))
    batch = write_plan(rest_lake, 1, rows(2))
    rest_server.fail_next_commit(after_apply=True, status=status)

    outcome = coordinator(rest_lake).commit(batch)

    assert (outcome.snapshot_id, outcome.already_committed) == (2, False)
    assert rest_lake.ids() == [1, 2]
    assert rest_lake.batch_ids() == [0, 1]
    assert rest_server.commits_accepted == 2
    assert {file.path for file in batch.files} <= set(rest_lake.data_files())


@pytest.mark.parametrize("status", [500, 503])
def test_an_error_before_the_commit_is_applied_is_tried_again(
    rest_lake: Lake, rest_server: RestCatalogServer, status: int
) -> None:
    rest_lake.append(0, rows(1))
    batch = write_plan(rest_lake, 1, rows(2))
    for _ in range(2):
        rest_server.fail_next_commit(after_apply=False, status=status)

    outcome = coordinator(rest_lake).commit(batch)

    assert outcome.snapshot_id == 2
    assert rest_lake.ids() == [1, 2]
    assert rest_server.commits_accepted == 2


def test_errors_without_end_leave_the_outcome_unknown_and_a_replay_settles_it(
    rest_lake: Lake, rest_server: RestCatalogServer
) -> None:
    rest_lake.append(0, rows(1))
    batch = write_plan(rest_lake, 1, rows(2))
    for _ in range(3):
        rest_server.fail_next_commit(after_apply=False)

    with pytest.raises(CommitUnknownError, match=r"batch 1 on sales\.orders"):
        coordinator(rest_lake, bounds=Bounds(puts_per_attempt=3)).commit(batch)
    assert {file.path for file in batch.files} <= set(rest_lake.data_files())

    rest_lake.append(1, rows(2))

    assert rest_lake.ids() == [1, 2]


def test_two_writers_behind_a_catalog_both_land(rest_lake: Lake, rest_server: RestCatalogServer) -> None:
    rest_lake.append(0, rows(1))
    batch = write_plan(rest_lake, 1, rows(2))
    let_in: list[Step] = []

    def let_another_in_once(step: Step) -> None:
        if step is Step.BEFORE_PUT and not let_in:
            let_in.append(step)
            rest_lake.with_options(commitUser="other").append(0, rows(3))

    with listening(let_another_in_once):
        outcome = coordinator(rest_lake).commit(batch)

    assert (outcome.snapshot_id, outcome.attempts) == (3, 2)
    assert rest_lake.ids() == [1, 2, 3]
    assert rest_server.commits_rejected == 1


def test_a_table_dropped_behind_a_catalog_is_not_created_again_by_a_commit(rest_lake: Lake) -> None:
    message = rest_lake.write(rows(1))
    foreign.catalog(rest_lake).drop_table(rest_lake.table)

    with pytest.raises(TableChangedError, match="dropped"):
        rest_lake.commit(0, message)

    assert foreign.catalog(rest_lake).list_tables("sales") == []


def test_a_table_recreated_behind_a_catalog_is_another_table(rest_lake: Lake) -> None:
    message = rest_lake.write(rows(1))
    foreign.catalog(rest_lake).drop_table(rest_lake.table)
    rest_lake.write()

    with pytest.raises(TableChangedError, match="dropped and created again"):
        rest_lake.commit(0, message)


def test_a_wrong_token_is_refused_without_quoting_it(rest_lake: Lake) -> None:
    wrong = rest_lake.with_options(**{"catalog.token": "wr0ng-t0k3n-m4rk3r"})

    with pytest.raises(PwcError) as caught:
        wrong.write(rows(1))

    assert "wr0ng-t0k3n-m4rk3r" not in str(caught.value)


def test_a_catalog_that_does_not_answer_is_an_error_of_ours(rest_lake: Lake) -> None:
    gone = rest_lake.with_options(**{"catalog.uri": "http://127.0.0.1:9"})

    with pytest.raises(PwcError, match=r"sales\.orders|127\.0\.0\.1"):
        gone.write(rows(1))


def test_a_path_and_a_catalog_contradict_each_other(rest_lake: Lake) -> None:
    options = {key: value for key, value in rest_lake.options.items() if key != "warehouse"}

    with pytest.raises(PwcError, match="path"):
        Lake(options).with_options(path="/tmp/nowhere", table="").write(rows(1))


def test_a_catalog_of_another_kind_is_refused_by_name(local_lake: Lake) -> None:
    with pytest.raises(PwcError, match=r"catalog\.type=hive"):
        local_lake.with_options(**{"catalog.type": "hive"}).write(rows(1))


def test_columns_are_not_changed_through_a_rest_catalog(rest_lake: Lake) -> None:
    rest_lake.append(0, rows(1))

    with pytest.raises(UnsupportedTableError, match="alters a table whatever it has become meanwhile"):
        append(rest_lake, 1, with_note(2))
    with pytest.raises(SchemaMismatchError, match=r"column note is not in the table\. Drop it, or add it .* first\.$"):
        append(rest_lake, 1, with_note(2), merge=False)

    append(rest_lake, 1, pa.table({"id": [2]}))
    assert rest_lake.ids() == [1, 2]
    assert [column.path for column in read_schema(rest_lake.open()).today.columns] == [("id",), ("day",)]
