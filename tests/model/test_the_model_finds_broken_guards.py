"""The model can fail: each guard is broken in turn, and the machine finds it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from paimon_sink.commit import coordinator, decide
from paimon_sink.commit.coordinator import Coordinator
from paimon_sink.commit.decide import Decision, Publish, Verdict
from paimon_sink.commit.fold import written_files
from paimon_sink.core.steps import Step
from paimon_sink.formats.contract import Prepared
from paimon_sink.formats.iceberg.commits import IcebergCommits
from paimon_sink.formats.iceberg.prepared import IcebergPrepared
from paimon_sink.formats.paimon.claims import ClaimFiles
from paimon_sink.formats.paimon.commit import PaimonPrepared
from paimon_sink.formats.paimon.commits import PaimonCommits
from paimon_sink.formats.paimon.snapshots import SnapshotFiles
from paimon_sink.formats.values import Plan, PutOutcome
from tests.model.machine import JOB, MACHINES, SinkMachine
from tests.model.stage import Try
from tests.support.lying_files import Lies

Break = Callable[[pytest.MonkeyPatch], None]
Script = Callable[[SinkMachine], None]


# ---------------------------------------------------------------- guards, broken


def the_ledger_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "decide", lambda *_, **__: Verdict.COMMIT)


def the_ledger_is_asked_in_the_first_round_only(patch: pytest.MonkeyPatch) -> None:
    asked: set[int] = set()
    decide_attempt = decide.decide_attempt

    def once(plan: Plan, *arguments: Any, **named: Any) -> Decision:
        if id(plan) in asked:
            return Publish()
        asked.add(id(plan))
        return decide_attempt(plan, *arguments, **named)

    patch.setattr(coordinator, "decide_attempt", once)


def the_put_overwrites(patch: pytest.MonkeyPatch) -> None:
    def publish(self: SnapshotFiles, snapshot: Any, **_: Any) -> bool:
        from pypaimon.common.json_util import JSON

        self.store.write(self.path(snapshot.id), JSON.to_json(snapshot).encode())
        return True

    patch.setattr(SnapshotFiles, "publish", publish)


def a_put_without_an_answer_counts_as_lost(patch: pytest.MonkeyPatch) -> None:
    for prepared in (PaimonPrepared, IcebergPrepared):
        patch.setattr(prepared, "resolve_outcome", lambda *_: PutOutcome.LOST)


def a_put_without_an_answer_counts_as_landed(patch: pytest.MonkeyPatch) -> None:
    for prepared in (PaimonPrepared, IcebergPrepared):
        patch.setattr(prepared, "resolve_outcome", lambda *_: PutOutcome.LANDED)


def a_lost_put_deletes_the_data_files(patch: pytest.MonkeyPatch) -> None:
    publish = Coordinator._publish

    def or_delete(self: Coordinator, run: Any, prepared: Prepared) -> bool:
        landed = publish(self, run, prepared)
        if not landed:
            self.table.files.drop(file.path for file in run.plan.files)
        return landed

    patch.setattr(Coordinator, "_publish", or_delete)


def an_abort_deletes_all_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Coordinator,
        "abort",
        lambda self, messages, **_: self.table.files.drop(file.path for file in written_files(messages)),
    )


def a_replay_spares_no_file(patch: pytest.MonkeyPatch) -> None:
    for commits in (PaimonCommits, IcebergCommits):
        patch.setattr(commits, "files_added_by", lambda *_: frozenset())


def claims_are_not_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClaimFiles, "that_may_be_in", lambda *_: [])


# ---------------------------------------------------------------- what happens meanwhile, in the machine's own rules


def sent(machine: SinkMachine, user: str, *, tries: int = 1) -> list[Try]:
    """Tries at the next batch of a user, each about to look."""
    return list(machine.send_batch(user=user, tasks=1, tries=tries, commits=False).values)


def goes_to_its_put(machine: SinkMachine, one: Try) -> None:
    while one.taker.at != Step.BEFORE_PUT.value:
        assert not one.taker.over, one.taker.error
        machine.go_on_by_steps(one=one, count=1)


def ends(machine: SinkMachine, one: Try) -> None:
    machine.go_all_the_way(one=one)
    machine.the_table_agrees_with_the_model()


def a_batch_comes_again(machine: SinkMachine) -> None:
    first, again = sent(machine, "ann", tries=2)
    ends(machine, first)
    ends(machine, again)


def a_batch_is_committed_by_its_twin_before_its_put(machine: SinkMachine) -> None:
    slow, quick = sent(machine, "ann", tries=2)
    goes_to_its_put(machine, slow)
    ends(machine, quick)
    ends(machine, slow)


def another_user_commits_before_its_put(machine: SinkMachine) -> None:
    (slow,), (quick,) = sent(machine, "ann"), sent(machine, "bob")
    goes_to_its_put(machine, slow)
    ends(machine, quick)
    ends(machine, slow)


def its_put_lands_and_is_reported_failed(machine: SinkMachine) -> None:
    """A batch job's: no ledger would know it again."""
    (one,) = sent(machine, JOB)
    machine.stage.files.lie(Lies(fails_after=1.0, only="create"), seed=0)
    ends(machine, one)


def its_puts_never_land(machine: SinkMachine) -> None:
    (one,) = sent(machine, "ann")
    machine.stage.files.lie(Lies(refused=1.0, only="create"), seed=0)
    ends(machine, one)


def it_is_aborted_after_it_landed(machine: SinkMachine) -> None:
    (one,) = sent(machine, "ann")
    ends(machine, one)
    machine.abort_after_a_commit_was_tried(one=one)
    machine.the_table_agrees_with_the_model()


def its_very_messages_come_again(machine: SinkMachine) -> None:
    (one,) = sent(machine, "ann")
    ends(machine, one)
    (again,) = machine.commit_the_same_files_too(one=one).values
    ends(machine, again)


def another_engine_expires_it_before_its_twin_looks(machine: SinkMachine) -> None:
    first, again = sent(machine, "ann", tries=2)
    ends(machine, first)
    machine.another_engine(keeps=0)
    machine.another_engine(keeps=1)
    ends(machine, again)


CASES: list[tuple[Break, Script]] = [
    (the_ledger_is_not_asked, a_batch_comes_again),
    (the_ledger_is_asked_in_the_first_round_only, a_batch_is_committed_by_its_twin_before_its_put),
    (the_put_overwrites, another_user_commits_before_its_put),
    (a_put_without_an_answer_counts_as_lost, its_put_lands_and_is_reported_failed),
    (a_put_without_an_answer_counts_as_landed, its_puts_never_land),
    (a_lost_put_deletes_the_data_files, another_user_commits_before_its_put),
    (an_abort_deletes_all_files, it_is_aborted_after_it_landed),
    (a_replay_spares_no_file, its_very_messages_come_again),
    (claims_are_not_read, another_engine_expires_it_before_its_twin_looks),
]


ONLY_PAIMON = (the_put_overwrites, claims_are_not_read)
"""An Iceberg catalog compares by itself, and its ledger needs no claims."""

EVERYWHERE = [
    pytest.param(table_format, case, id=f"{table_format}: {case[0].__name__.replace('_', ' ')}")
    for table_format in MACHINES
    for case in CASES
    if table_format == "paimon" or case[0] not in ONLY_PAIMON
]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@contextmanager
def playing(table_format: str) -> Iterator[SinkMachine]:
    machine = MACHINES[table_format]()
    try:
        yield machine
    finally:
        machine.teardown()


@pytest.mark.parametrize(("table_format", "case"), EVERYWHERE)
def test_with_its_guards_nothing_is_wrong(table_format: str, case: tuple[Break, Script]) -> None:
    with playing(table_format) as machine:
        case[1](machine)


@pytest.mark.parametrize(("table_format", "case"), EVERYWHERE)
def test_a_broken_guard_is_found(
    table_format: str, case: tuple[Break, Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    with playing(table_format) as machine:
        case[0](monkeypatch)

        with pytest.raises(AssertionError):
            case[1](machine)
