"""Many users, crashes, zombies, other engines and a store that lies: every batch is in once.

``PWC_MODEL_STEPS=20000 pytest tests/model`` plays that many steps from a random seed, which is printed.
``PWC_MODEL_SEED`` plays a seed again.
"""

from __future__ import annotations

import logging
import os
import random
import sys

import hypothesis
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import MACHINES, SinkMachine, Tally

STEPS_AN_EXAMPLE = 40
EXAMPLES = {"paimon": 15, "iceberg": 6}
SOAK_STEPS = int(os.environ.get("PWC_MODEL_STEPS") or 0)

COMMON = settings(
    stateful_step_count=STEPS_AN_EXAMPLE,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """A commit that is lied to says so, thousands of times."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("table_format", MACHINES)
def test_every_batch_is_in_once_whatever_happens(table_format: str, capsys: pytest.CaptureFixture[str]) -> None:
    machine, examples = MACHINES[table_format], EXAMPLES[table_format]
    Tally.begin()
    if SOAK_STEPS:
        soak(machine, examples, capsys)
    else:
        run_state_machine_as_test(machine, settings=settings(COMMON, max_examples=examples, derandomize=True))

    assert Tally.acknowledged > 0


def soak(machine: type[SinkMachine], examples: int, capsys: pytest.CaptureFixture[str]) -> None:
    while Tally.steps < SOAK_STEPS:
        seed = int(os.environ.get("PWC_MODEL_SEED") or random.randrange(2**32))
        say(capsys, f"{Tally.steps} steps so far, {Tally.acknowledged} commits acknowledged; now seed {seed}")
        wanted = min(examples, 1 + (SOAK_STEPS - Tally.steps) // STEPS_AN_EXAMPLE)
        seeded = hypothesis.seed(seed)(machine)
        run_state_machine_as_test(seeded, settings=settings(COMMON, max_examples=wanted, derandomize=False))
    say(capsys, f"{Tally.steps} steps, {Tally.acknowledged} commits acknowledged: {Tally.by_rule}")


def say(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """To the terminal at once: a soak takes its time."""
    with capsys.disabled():
        sys.stdout.write(f"\nmodel: {text}\n")
        sys.stdout.flush()
