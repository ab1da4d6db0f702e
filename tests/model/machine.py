"""The machine: coordinators and writers of several users on one table, stopped, killed, replayed and lied to at will.

A try at a batch stops at every named step. Rules move one of them on, kill it, replay its batch, or let others in. The
table is compared with the model after every rule.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, consumes, invariant, multiple, rule

from paimon_sink.commit.decide import Policy
from paimon_sink.core.errors import LedgerLostError, PwcError
from tests.model.excuses import unexcused
from tests.model.formats import FormatActions
from tests.model.iceberg import IcebergActions
from tests.model.model import Batch, Model
from tests.model.paimon import PaimonActions
from tests.model.stage import Stage, Try
from tests.support.lying_files import Lies
from tests.support.turns import KilledError

__all__ = ["JOB", "LIES", "MACHINES", "SinkMachine", "Tally"]

JOB = "a batch job"
COMPACTION = "a compaction"
USERS = st.sampled_from(["ann", "bob"])
SENDERS = st.sampled_from(["ann", "bob", "ann", JOB])
TASKS = st.integers(min_value=1, max_value=3)
LIES = {
    "the truth": Lies(),
    "timeouts": Lies(times_out=0.04),
    "refusals": Lies(refused=0.04),
    "throttling": Lies(throttled=0.02),
    "creates are done and reported failed": Lies(fails_after=0.6, only="create"),
    "creates are late": Lies(late=0.6, only="create"),
    "all may be late": Lies(late=0.06),
    "requests are repeated": Lies(repeated=0.3),
    "listings of snapshots are stale": Lies(stale=0.5, hidden_names=2, only="/snapshot"),
    "all at once": Lies(0.01, 0.01, 0.03, 0.03, 0.05, 0.05, 0.005),
}
_ALL = 5000
"""More steps than any commit has."""


class Tally:
    """How much was played, over all machines since it began."""

    steps = 0
    acknowledged = 0
    by_rule: dict[str, int] = {}  # noqa: RUF012 - one tally a process

    @classmethod
    def begin(cls) -> None:
        cls.steps = cls.acknowledged = 0
        cls.by_rule = {}

    @classmethod
    def count(cls, name: str) -> None:
        cls.steps += 1
        cls.by_rule[name] = cls.by_rule.get(name, 0) + 1


class SinkMachine(RuleBasedStateMachine):
    tries = Bundle("tries")

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp(prefix="model-")
        self.model = Model()
        self.stage = Stage(self.new_table(self.directory), self.directory)
        self.next_batch = dict.fromkeys(["ann", "bob"], 0)
        self.ledger_lost: set[str] = set()
        self.running: list[Try] = []
        self.highest: dict[str, int] = {}
        self.batch_jobs = self.foreign_appends = self.compactions = 0
        self.seen: object = None

    def new_table(self, warehouse: str) -> FormatActions:
        return PaimonActions(warehouse)

    # ---------------------------------------------------------------- tries

    @rule(target=tries, user=SENDERS, tasks=TASKS, tries=st.integers(min_value=1, max_value=2), commits=st.booleans())
    def send_batch(self, user: str, tasks: int, tries: int, commits: bool) -> MultipleResults[Try]:
        """The next batch of a user, or the same again: Spark moves on only when a commit of it returned."""
        Tally.count("send batch")
        batch = self._batch_of(user)
        begun = [self._begin(batch, tasks) for _ in range(1 if user == JOB else tries)]
        while commits and not begun[0].taker.over:
            begun[0].taker.move()
        return self._settled(*begun)

    @rule(target=tries, one=consumes(tries), count=st.sampled_from([1, 3, 6]))
    def go_on_by_steps(self, one: Try, count: int) -> MultipleResults[Try]:
        Tally.count("go on by steps")
        return self._go_on(one, count)

    @rule(target=tries, one=consumes(tries), count=st.integers(min_value=1, max_value=20))
    def go_on_by_requests(self, one: Try, count: int) -> MultipleResults[Try]:
        """Into the middle of a step, right before a request to the store."""
        Tally.count("go on by requests")
        return self._go_on(one, count, to_request=True)

    @rule(target=tries, one=consumes(tries))
    def go_all_the_way(self, one: Try) -> MultipleResults[Try]:
        Tally.count("go all the way")
        return self._go_on(one, _ALL)

    def _go_on(self, one: Try, count: int, *, to_request: bool = False) -> MultipleResults[Try]:
        for _ in range(count):
            if not one.taker.over:
                one.taker.move(to_request=to_request)
        return self._settled(one)

    @rule(target=tries, one=consumes(tries), replay_with=st.integers(min_value=0, max_value=3))
    def kill(self, one: Try, replay_with: int) -> MultipleResults[Try]:
        """The process ends where it is. It is started again with so many tasks, or not yet."""
        Tally.count("kill")
        self._kill(one)
        if replay_with == 0 or one.batch.user in (JOB, COMPACTION):
            return multiple()
        return self._settled(self._begin(self._batch_of(one.batch.user), replay_with))

    @rule(target=tries, one=tries)
    def commit_the_same_files_too(self, one: Try) -> MultipleResults[Try]:
        """A second coordinator with the very messages of another try."""
        Tally.count("commit the same files too")
        if one.plan is None or one.batch.user in (JOB, COMPACTION):
            return multiple()
        return self._settled(self._begin(one.batch, 1, plan=one.plan))

    @rule(one=tries)
    def abort_after_a_commit_was_tried(self, one: Try) -> None:
        """Spark does so when a commit fails: every message is there, and it may have landed."""
        Tally.count("abort")
        if one.batch.user == COMPACTION:
            return
        self._guarded(lambda: self.stage.abort(one.batch, one.messages))

    @rule(user=USERS, tasks=TASKS, killed_after=st.integers(min_value=0, max_value=6))
    def lose_a_task(self, user: str, tasks: int, killed_after: int) -> None:
        """All are killed after some steps of a task. With 0 the last one fails for good, and the batch is aborted."""
        Tally.count("lose a task")
        if killed_after == 0:
            self._guarded(lambda: self.stage.write_then_abort(self._batch_of(user), tasks=tasks))
            return
        one = self._new(self._batch_of(user), tasks)
        for _ in range(killed_after):
            if not self._is_at_commit(one):
                one.taker.move()
        self._kill(one)

    @rule(target=tries, ends=st.booleans())
    def compact(self, ends: bool) -> MultipleResults[Try]:
        """Small files are put together: at once, or stopped before it looks, to go on whenever it likes."""
        Tally.count("compact")
        self.compactions += 1
        one = self.stage.compact(self.compactions)
        self.running.append(one)
        while not (one.taker.over if ends else self._is_at_commit(one)):
            one.taker.move()
        return self._settled(one)

    # ---------------------------------------------------------------- others

    @rule(keeps=st.integers(min_value=0, max_value=4))
    def another_engine(self, keeps: int) -> None:
        """It lets all but so many snapshots expire. With 0 it appends."""
        Tally.count("another engine")
        if keeps == 0:
            self.foreign_appends += 1
            batch = Batch("another engine", self.foreign_appends)
            self.model.tried.add(batch)
            self.stage.actions.foreign_append(batch.tasks(1)[0])
            self.model.acknowledged.add(batch)
            return
        # No request is under way for as long as snapshots are kept.
        self.stage.files.land_late()
        self.stage.actions.expire(keeps)
        self.stage.expiries += 1

    @rule(tells=st.sampled_from(list(LIES)), seed=st.integers(min_value=0, max_value=999))
    def storage(self, tells: str, seed: int) -> None:
        Tally.count("storage")
        if tells == "the truth":
            self.stage.files.land_late()
        self.stage.files.lie(LIES[tells], seed=seed)

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def the_table_agrees_with_the_model(self) -> None:
        try:
            self._check()
        except AssertionError as error:
            log = "\n".join(self.stage.files.log[-80:])
            raise AssertionError(f"{error}\nThe requests before, and what happened to them:\n{log}") from error

    def _check(self) -> None:
        missing = self.stage.missing()
        assert not missing, f"snapshots name files that are gone: {missing}"
        version = self.stage.actions.version()
        if version != self.seen:
            self.seen = version
            for user, last in self.stage.last_batches().items():
                assert last >= self.highest.get(user, last), f"the ledger of {user} went back to {last}"
                self.highest[user] = last
        self.model.check(self.stage.rows())

    def teardown(self) -> None:
        self.stage.turns.close()
        shutil.rmtree(self.directory)

    # ---------------------------------------------------------------- inside

    def _begin(self, batch: Batch, tasks: int, **arguments: Any) -> Try:
        """A try that has written its files and is about to look."""
        one = self._new(batch, tasks, **arguments)
        while not self._is_at_commit(one):
            one.taker.move()
        self._note_end(one)
        return one

    def _batch_of(self, user: str) -> Batch:
        if user == JOB:
            self.batch_jobs += 1
            return Batch(user, self.batch_jobs)
        return Batch(user, self.next_batch[user])

    def _new(self, batch: Batch, tasks: int, **arguments: Any) -> Try:
        self.model.tried.add(batch)
        one = self.stage.begin(batch, tasks=tasks, policy=self._policy(batch), **arguments)
        self.running.append(one)
        return one

    def _policy(self, batch: Batch) -> Policy:
        """Where the ledger is lost, somebody stops all tries, looks into the table, and says what to do."""
        if batch.user not in self.ledger_lost or any(one.batch.user == batch.user for one in self.running):
            return Policy()
        self.stage.files.land_late()
        is_in = set(batch.ids) <= set(self.stage.rows())
        return Policy(on_ledger_lost="skip" if is_in else "commit")

    def _is_at_commit(self, one: Try) -> bool:
        return one.taker.over or one.taker.at == "before look"

    def _settled(self, *tries: Try) -> MultipleResults[Try]:
        """The tries that go on from here."""
        for one in tries:
            self._note_end(one)
        return multiple(*(one for one in tries if not one.taker.over))

    def _note_end(self, one: Try) -> None:
        if not one.taker.over or one not in self.running:
            return
        self.running.remove(one)
        user, number = one.batch
        error = one.taker.error
        if error is None and user == COMPACTION:
            return
        if error is None:
            Tally.acknowledged += 1
            self.model.acknowledged.add(one.batch)
            self.ledger_lost.discard(user)
            if user in self.next_batch:
                self.next_batch[user] = max(self.next_batch[user], number + 1)
            return
        problem = unexcused(error, one, self.stage, is_superseded=number < self.next_batch.get(user, 0))
        if problem is not None:
            raise AssertionError(f"{one.batch} ended with {error!r}: {problem}") from error
        if isinstance(error, LedgerLostError):
            self.ledger_lost.add(user)

    def _kill(self, one: Try) -> None:
        if not one.taker.over:
            one.taker.kill()
            assert isinstance(one.taker.error, KilledError), one.taker.error
            self.running.remove(one)
        self._note_end(one)

    def _guarded(self, call: Callable[[], None]) -> None:
        """The writer logs what goes wrong in an abort, and the failure that led to it goes up."""
        try:
            call()
        except PwcError:
            assert self.stage.files.lies_told, "an abort failed on an honest store"


class IcebergMachine(SinkMachine):
    def new_table(self, warehouse: str) -> FormatActions:
        return IcebergActions(warehouse)


MACHINES: dict[str, type[SinkMachine]] = {"paimon": SinkMachine, "iceberg": IcebergMachine}
"""A format joins with its actions and a line here."""
