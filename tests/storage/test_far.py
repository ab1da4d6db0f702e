"""The proxy of the tests that is far away: what it counts."""

from __future__ import annotations

import pytest

from tests.support.far import Request, longest_chain


def request(began_s: float, ended_s: float) -> Request:
    return Request("GET", "/", began_s, ended_s)


@pytest.mark.parametrize(
    ("requests", "chain"),
    [
        ([], 0),
        ([(0, 1)], 1),
        ([(0, 1), (0, 1), (0.5, 2)], 1),
        ([(0, 1), (1, 2), (2, 3)], 3),
        ([(0, 10), (1, 2), (3, 4), (5, 6)], 3),
        ([(0, 1), (0, 4), (2, 3), (5, 6), (3.5, 4)], 4),
    ],
    ids=["none", "one", "at once", "in a row", "a long one beside", "two ways"],
)
def test_a_chain_is_made_of_requests_each_of_which_began_after_the_one_before_ended(
    requests: list[tuple[float, float]], chain: int
) -> None:
    assert longest_chain([request(*times) for times in requests]) == chain
