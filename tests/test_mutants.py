"""The catalogue of mutants keeps up with the code: ``make mutants`` itself takes minutes and is not run every time."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.mutants.catalogue import MUTANTS, ROOT, Mutant


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_code_as_it_is(mutant: Mutant) -> None:
    changed = mutant.mutated((ROOT / mutant.file).read_text(encoding="utf-8"))

    ast.parse(changed)
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name in functions(file), f"{test} is not there; name the test that holds: {mutant.protection}"


def test_no_two_mutants_share_a_name_and_there_are_enough() -> None:
    names = [mutant.name for mutant in MUTANTS]

    assert len(set(names)) == len(names) >= 16
