"""One stream, many tables, played with the code itself, in memory, as the protocol's model was.

Drivers die at any step, answers are lost, tables and the home refuse for a while, replays route and judge otherwise,
and zombies go on. At the end each row is in one table or in the quarantine, once, where one try put it, and each table
got its batches in order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pytest

from paimon_sink.core.errors import PwcError, StaleBatchError, StorageError, TableNotFoundError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.options import Purpose
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.memory import MemoryLake, memory_lake
from paimon_sink.formats.memory.commits import MemoryCommit
from paimon_sink.formats.memory.state import Snapshot, TableState
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.maintain.quarantine_sums import opener
from paimon_sink.maintain.verify import verify
from paimon_sink.route.sums import RouteSums
from paimon_sink.sink import Sink
from tests.support.interleave import run_in_order
from tests.support.quarantined import Died

SCHEMA = pa.schema([("id", pa.int64()), ("to", pa.string())])
HOME, BAD = "lake.pwc_routes", "lake.bad"
TABLES = tuple(f"t{number}" for number in range(5))
A_BATCH = 8


class Game:
    """A stream of small batches by a driver that is started again whenever it dies."""

    def __init__(self, lake: MemoryLake, seed: int, *, drifts: bool, regional: bool = False) -> None:
        self.lake, self.luck, self.drifts, self.regional = lake, random.Random(seed), drifts, regional
        self.refusing: dict[str, int] = {}

    def sink(self, user: str = "stream", **extra: str) -> Sink:
        base = {key: text for key, text in self.lake.options("x.y").items() if key != "table"}
        options = {
            "routeColumn": "to",
            "route.database": "lake",
            "route.commitThreads": "1",
            "route.onUnknown": "quarantine",
            "quarantine": BAD,
            "quarantine.maxShare": "1",
            "check.enough": "id >= 0",
            **(
                {"regional": "true", "regional.maxConsecutive": "3", "regional.maxShare": "0.7"}
                if self.regional
                else {}
            ),
        }
        return Sink.of({**base, **options, "commitUser": user, **extra})

    def batch(self, number: int, attempt: int) -> list[tuple[int, str | None]]:
        """Ids are the same in each try, routes and signs may not be: a changed program routes and judges anew."""
        luck = random.Random(f"{number}/{attempt if self.drifts else 0}")
        ids = range(1 + number * A_BATCH, 1 + (number + 1) * A_BATCH)
        routes = [luck.choice([*TABLES, *TABLES, None]) for _ in ids]
        return [(id_ if luck.random() > 0.1 else -id_, route) for id_, route in zip(ids, routes, strict=True)]

    def play(self, batches: int) -> None:
        number = attempt = 0
        while number < batches:
            self._flap()
            try:
                with listening(self._dying), self._lying():
                    self.commit(number, attempt)
                number, attempt = number + 1, 0
            except (Died, PwcError):
                attempt += 1
        self.refusing = {}
        self.commit(batches, 0)
        # What a table did not take in the last batch that it refused, it takes with this one.
        self.commit(batches + 1, 0)

    def commit(self, number: int, attempt: int) -> None:
        sink = self.sink()
        sink.commit(messages(sink, self.batch(number, attempt)), batch_id=number)

    def _flap(self) -> None:
        for name in (*TABLES, "pwc_routes", "bad"):
            left = self.refusing.get(name, 0)
            if left:
                self.refusing[name] = left - 1
            elif self.luck.random() < (0.02 if name == "pwc_routes" else 0.1):
                self.refusing[name] = self.luck.randint(1, 3)

    def _dying(self, step: Step) -> None:
        if self.luck.random() < 0.01:
            raise Died(step.value)

    @contextmanager
    def _lying(self) -> Iterator[None]:
        """Tables refuse commits while they flap; of some puts that land the answer is lost."""
        put, build, luck = TableState.put, MemoryCommit.build, self.luck

        def losing(state: TableState, snapshot: Snapshot, *, base: Snapshot | None) -> bool:
            landed = put(state, snapshot, base=base)
            if luck.random() < 0.05:
                raise OSError("the answer is lost")
            return landed

        def refusing(commit: MemoryCommit, head: object, draft: object) -> object:
            name = commit._handle.location.rpartition("/")[2]
            if self.refusing.get(name):
                raise StorageError("the store refuses")
            return build(commit, head, draft)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TableState, "put", losing)
            patch.setattr(MemoryCommit, "build", refusing)
            yield


def messages(sink: Sink, found: Sequence[tuple[int, str | None]]) -> list[TaskMessage | None]:
    halves = (found[: len(found) // 2], found[len(found) // 2 :])
    return [TaskMessage.from_bytes(sink.write(iter([rows(half)]), schema=SCHEMA).to_bytes()) for half in halves]


def rows(found: Sequence[tuple[int, str | None]]) -> pa.RecordBatch:
    ids, routes = [each for each, _ in found], [route for _, route in found]
    return pa.RecordBatch.from_pydict({"id": ids, "to": routes}, schema=SCHEMA)


def ids_of(lake: MemoryLake, name: str) -> list[int]:
    try:
        return [abs(int(row)) for row in lake.read(name)["id"].to_pylist()]
    except TableNotFoundError:
        return []


def assert_each_row_once(lake: MemoryLake, batches: int) -> None:
    found = Counter(row for name in (*(f"lake.{table}" for table in TABLES), BAD) for row in ids_of(lake, name))
    assert found == Counter(range(1, 1 + batches * A_BATCH))
    options = parse_options(lake.options(HOME), purpose=Purpose.READ)
    home = open_table(options.table)
    assert verify(home, open_quarantine=opener(options.table), check_routes=RouteSums(options)).problems == ()
    for table in TABLES:
        in_order = [(row - 1) // A_BATCH for row in ids_of(lake, f"lake.{table}")]
        assert in_order == sorted(in_order), f"{table} did not get its batches in order"


def _games(count: int) -> list[object]:
    return [*range(count), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(count, count + 300))]


@pytest.mark.fault(94, 95, 96, 101)
@pytest.mark.parametrize("seed", _games(2))
@pytest.mark.parametrize("drifts", [False, True], ids=["replays are equal", "replays route otherwise"])
def test_whatever_happens_each_row_is_in_one_of_all_tables_once(seed: int, drifts: bool) -> None:
    with memory_lake() as lake:
        game = Game(lake, seed, drifts=drifts)

        game.play(20)

        assert_each_row_once(lake, 22)


@pytest.mark.fault(104, 105, 106)
@pytest.mark.parametrize("seed", _games(2))
@pytest.mark.parametrize("drifts", [False, True], ids=["replays are equal", "replays route otherwise"])
def test_whatever_is_carried_each_row_is_in_one_of_all_tables_once_and_in_order(seed: int, drifts: bool) -> None:
    with memory_lake() as lake:
        game = Game(lake, seed, drifts=drifts, regional=True)

        game.play(20)

        assert_each_row_once(lake, 22)


def test_the_games_carry_batches_and_fold_them() -> None:
    with memory_lake() as lake:
        Game(lake, 1, drifts=True, regional=True).play(20)

        assert any("," in commits for name in TABLES for commits in history_of(lake, name))


def history_of(lake: MemoryLake, name: str) -> list[str]:
    try:
        return [snapshot.properties.get("pwc.outbox-of", "") for snapshot in lake.snapshots(f"lake.{name}")]
    except TableNotFoundError:
        return []


@pytest.mark.fault(96)
@pytest.mark.parametrize("seed", range(2))
def test_a_zombie_beside_its_successor_doubles_nothing_in_any_table(seed: int) -> None:
    luck = random.Random(seed)
    ends = set()
    for _ in range(6):
        with memory_lake() as lake:
            game = Game(lake, 0, drifts=True)
            game.commit(0, 0)
            old, new = game.sink(), game.sink()
            written = [
                messages(old, game.batch(1, 0)),
                messages(new, game.batch(1, 1)),
                messages(new, game.batch(2, 0)),
            ]

            run = run_in_order(_actors(old, new, written), [luck.randrange(2) for _ in range(80)])

            game.commit(3, 0)
            errors = [result for result in run.results if isinstance(result, Exception)]
            assert all(isinstance(error, StaleBatchError) for error in errors), (run.moves, errors)
            assert len(errors) < 2, run.moves
            assert_each_row_once(lake, 4)
            ends.add((len(errors), *(tuple(ids_of(lake, f"lake.{table}")) for table in TABLES)))
    assert len(ends) > 1, "the orders make no difference: nothing was interleaved"


def _actors(old: Sink, new: Sink, written: Sequence[list[TaskMessage | None]]) -> list[Callable[[], None]]:
    """A zombie commits batch 1 as it routed it, while its successor commits batches 1 and 2, routing otherwise."""

    def zombie() -> None:
        old.commit(written[0], batch_id=1)

    def successor() -> None:
        new.commit(written[1], batch_id=1)
        new.commit(written[2], batch_id=2)

    return [zombie, successor]
