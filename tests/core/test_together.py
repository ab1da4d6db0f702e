"""Work at the same time: in order where it is near, all of it before a failure where it is far."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from paimon_sink.core.together import beside, for_each, together

somebody: ContextVar[str] = ContextVar("somebody", default="nobody")


def failing(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def meeting(*, parties: int) -> Callable[[], int]:
    """Ends only when so many are in it at the same time."""
    barrier = threading.Barrier(parties, timeout=30)
    return barrier.wait


def test_what_is_far_is_done_at_the_same_time() -> None:
    meet = meeting(parties=3)

    met = together(meet, meet, meet, far=True)

    assert sorted(met) == [0, 1, 2]


def test_what_is_near_is_done_in_order_by_the_calling_thread() -> None:
    here: list[tuple[str, int]] = []

    together(
        lambda: here.append(("first", threading.get_ident())),
        lambda: here.append(("second", threading.get_ident())),
        far=False,
    )

    assert here == [("first", threading.get_ident()), ("second", threading.get_ident())]


def test_what_is_near_ends_at_its_first_failure() -> None:
    done: list[str] = []

    with pytest.raises(ValueError, match="first"):
        together(failing(ValueError("first")), lambda: done.append("second"), far=False)

    assert done == []


def test_a_failure_far_away_leaves_nothing_running() -> None:
    may_end, done = threading.Event(), []

    def slow() -> None:
        assert may_end.wait(30)
        done.append("slow")

    def fail() -> None:
        may_end.set()
        raise ValueError("failed while the other was under way")

    with pytest.raises(ValueError, match="failed while"):
        together(fail, slow, far=True)

    assert done == ["slow"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pwc-together")]


def test_of_several_failures_the_first_in_order_is_raised() -> None:
    with pytest.raises(ValueError, match="first"):
        together(failing(ValueError("first")), failing(KeyError("second")), far=True)


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_for_each_keeps_the_order_of_its_items(far: bool) -> None:
    assert for_each(lambda number: number * number, range(50), far=far) == [number * number for number in range(50)]


def test_the_context_of_the_caller_holds_in_every_thread() -> None:
    token = somebody.set("the caller")
    try:
        assert for_each(lambda _: somebody.get(), range(3), far=True) == ["the caller"] * 3
    finally:
        somebody.reset(token)


def test_work_beside_a_block_is_done_while_it_runs() -> None:
    meet = meeting(parties=2)

    with beside(meet, far=True):
        meet()


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_work_beside_a_block_fails_it(far: bool) -> None:
    with pytest.raises(ValueError, match="beside"), beside(failing(ValueError("beside")), far=far):
        pass


def test_a_block_that_fails_waits_for_the_work_beside_it() -> None:
    may_end, done = threading.Event(), []

    def slow() -> None:
        assert may_end.wait(30)
        done.append("slow")

    def block() -> None:
        with beside(slow, far=True):
            may_end.set()
            raise KeyError("the block")

    with pytest.raises(KeyError, match="the block"):
        block()

    assert done == ["slow"]
