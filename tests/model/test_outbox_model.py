"""Two tables, one decision: the models that the outbox was designed by, played with the code itself, in memory.

Drivers die at any step, answers are lost, the quarantine refuses for a while, replays judge otherwise. At the end each
row is in the table or in its quarantine, once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pytest

from paimon_sink.core.errors import PwcError, StaleBatchError, StorageError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.core.steps import Step, listening
from paimon_sink.formats.memory import MemoryLake, memory_lake
from paimon_sink.formats.memory.state import Snapshot, TableState
from paimon_sink.formats.memory.store import MemoryStore
from paimon_sink.formats.registry import open_table
from paimon_sink.maintain.quarantine_sums import opener
from paimon_sink.maintain.verify import verify
from paimon_sink.sink import Sink
from tests.support.interleave import Run, run_in_order
from tests.support.quarantined import Died

SCHEMA = pa.schema([("id", pa.int64())])
TABLE, BAD = "sales.orders", "sales.bad"
A_BATCH = 6


class Game:
    """A stream of small batches into one table, by a driver that is started again whenever it dies."""

    def __init__(self, lake: MemoryLake, seed: int, *, drifts: bool) -> None:
        self.lake, self.luck, self.drifts = lake, random.Random(seed), drifts
        self.refusing = 0

    def sink(self, threshold: int = 0) -> Sink:
        options = {"quarantine": BAD, "quarantine.maxShare": "1", "check.enough": f"id >= {threshold}"}
        return Sink.of(self.lake.options(TABLE, commitUser="stream", **options))

    def batch(self, number: int) -> list[int]:
        """Ids from -500 to 500, none of them twice."""
        draw = random.Random(number)
        return [draw.randrange(-5, 5) * 1_000_000 + number * A_BATCH + position for position in range(A_BATCH)]

    def play(self, batches: int) -> None:
        number = attempt = 0
        while number < batches:
            self.refusing = self.refusing - 1 if self.refusing else self.luck.choice([0] * 9 + [2])
            try:
                with listening(self._dying), self._lying():
                    self._commit(number, threshold=random.Random(f"{number}/{attempt}").randrange(-3, 3) * 1_000_000)
                number, attempt = number + 1, 0
            except (Died, PwcError):
                attempt += 1 if self.drifts else 0
        self.refusing = 0
        self._commit(batches, threshold=0)

    def _commit(self, number: int, *, threshold: int) -> None:
        sink = self.sink(threshold)
        sink.commit(messages(sink, self.batch(number)), batch_id=number)

    def _dying(self, step: Step) -> None:
        if self.luck.random() < 0.03:
            raise Died(step.value)

    @contextmanager
    def _lying(self) -> Iterator[None]:
        """The quarantine's store refuses to be written to while it flaps; of some puts that land the answer is lost."""
        put, write, luck = TableState.put, MemoryStore.open_output, self.luck

        def losing(state: TableState, snapshot: Snapshot, *, base: Snapshot | None) -> bool:
            landed = put(state, snapshot, base=base)
            if luck.random() < 0.05:
                raise OSError("the answer is lost")
            return landed

        def refusing(store: MemoryStore, path: str, **how: int) -> object:
            if self.refusing and "/bad/" in path:
                raise StorageError("the store refuses")
            return write(store, path, **how)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TableState, "put", losing)
            patch.setattr(MemoryStore, "open_output", refusing)
            yield

    def ids(self, table: str) -> list[int]:
        return [int(row) for row in self.lake.read(table)["id"].to_pylist()]


def messages(sink: Sink, ids: Sequence[int]) -> list[TaskMessage | None]:
    halves = (ids[: len(ids) // 2], ids[len(ids) // 2 :])
    return [
        TaskMessage.from_bytes(
            sink.write(iter([pa.record_batch([pa.array(half, pa.int64())], schema=SCHEMA)]), schema=SCHEMA).to_bytes()
        )
        for half in halves
    ]


def assert_each_row_once(lake: MemoryLake, sent: Sequence[int]) -> None:
    found = [int(row) for table in (TABLE, BAD) for row in lake.read(table)["id"].to_pylist()]
    assert Counter(found) == Counter(sent)
    options = Sink.of(lake.options(TABLE)).options.table
    assert verify(open_table(options), open_quarantine=opener(options)).problems == ()


def _games(count: int) -> list[object]:
    return [*range(count), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(count, count + 300))]


@pytest.mark.fault(85, 86, 92)
@pytest.mark.parametrize("seed", _games(3))
@pytest.mark.parametrize("drifts", [False, True], ids=["replays are equal", "replays judge otherwise"])
def test_whatever_happens_each_row_is_in_one_of_the_two_tables_once(seed: int, drifts: bool) -> None:
    with memory_lake() as lake:
        game = Game(lake, seed, drifts=drifts)

        game.play(16)

        assert_each_row_once(lake, [row for number in range(17) for row in game.batch(number)])
        batches = [snapshot.batch_id or 0 for snapshot in lake.snapshots(BAD)]
        assert batches == sorted(set(batches)), "bad rows come in order, each batch once"


# ---------------------------------------------------------------- the zombie


@pytest.mark.fault(87)
@pytest.mark.parametrize("seed", range(2))
def test_a_zombie_beside_its_successor_doubles_nothing_in_any_order(seed: int) -> None:
    luck = random.Random(seed)
    ends = set()
    for _ in range(12):
        with memory_lake() as lake:
            game = Game(lake, 0, drifts=True)
            first, second, third = [1, 2, -3, -4], [5, -6], [7, -8]
            game.sink().commit(messages(game.sink(), [0]), batch_id=0)

            run = _at_once(game, first, second, [luck.randrange(2) for _ in range(60)])

            game.sink().commit(messages(game.sink(), third), batch_id=3)
            zombie, successor = run.results
            assert successor is None, (run.moves, successor)
            assert zombie is None or isinstance(zombie, StaleBatchError), (run.moves, zombie)
            assert_each_row_once(lake, [0, *first, *second, *third])
            ends.add((type(zombie).__name__, len(game.ids(BAD))))
    assert len(ends) > 1, "the orders make no difference: nothing was interleaved"


def _at_once(game: Game, first: list[int], second: list[int], choices: Sequence[int]) -> Run[None]:
    """A zombie commits batch 1 as it judged it, while its successor commits batches 1 and 2, judging otherwise."""
    old, new = game.sink(), game.sink(threshold=-3)

    def zombie() -> None:
        old.commit(written[0], batch_id=1)

    def successor() -> None:
        new.commit(written[1], batch_id=1)
        new.commit(written[2], batch_id=2)

    written = [messages(old, first), messages(new, first), messages(new, second)]
    actors: list[Callable[[], None]] = [zombie, successor]
    return _results(run_in_order(actors, choices), 2)


def _results(run: Run[None], actors: int) -> Run[None]:
    """An actor that returned nothing left none."""
    errors = [result for result in run.results if isinstance(result, Exception)]
    return Run([*errors, *[None] * (actors - len(errors))][:actors], run.moves, run.choices)
