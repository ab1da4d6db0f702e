"""Small batches are made into larger ones, and nothing else changes."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from paimon_sink.write.gather import gathered


def batch(*texts: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.string())})


@pytest.mark.parametrize("seed", range(20))
def test_the_rows_and_their_order_stay(seed: int) -> None:
    chance = random.Random(seed)
    given = [
        batch(*(chance.choice([None, "x" * chance.randrange(40)]) for _ in range(chance.randrange(1, 9))))
        for _ in range(chance.randrange(30))
    ]

    made = list(gathered(iter(given), rows=16, size_bytes=chance.choice([1, 100, 10_000])))

    assert [row for each in made for row in each.to_pylist()] == [row for each in given for row in each.to_pylist()]


def test_many_small_batches_become_few() -> None:
    made = list(gathered(iter([batch("a", "b")] * 100), rows=50))

    assert [each.num_rows for each in made] == [50] * 4


def test_a_batch_that_is_large_enough_passes_as_it_is() -> None:
    large = batch(*"abcdefgh")

    (made,) = gathered(iter([large]), rows=8)

    assert made is large


def test_no_more_is_held_than_the_bytes_allow() -> None:
    wide = batch("x" * 1000)

    made = list(gathered(iter([wide] * 10), rows=1000, size_bytes=3 * wide.get_total_buffer_size()))

    assert [each.num_rows for each in made] == [3, 3, 3, 1]


def test_wide_batches_are_not_copied_together() -> None:
    wide = batch("x" * 1000)

    made = list(gathered(iter([wide] * 3), rows=1000, size_bytes=10))

    assert all(each is wide for each in made)
