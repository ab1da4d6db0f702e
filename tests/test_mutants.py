"""The catalogue of mutants keeps up with the code: ``make mutants`` itself takes minutes and is not run every time."""

from __future__ import annotations

import ast
import importlib
from functools import cache

import pytest

from tests.mutants.catalogue import MUTANTS, ROOT, Mutant


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def is_there(test: str) -> bool:
    """Whether a file has this test: a function, or a method of a class, which may be inherited from another file."""
    file, _, name = test.partition("::")
    class_name, is_method, method = name.partition("::")
    if not is_method:
        return name in functions(file)
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    return callable(getattr(getattr(module, class_name, None), method, None))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_code_as_it_is(mutant: Mutant) -> None:
    changed = mutant.mutated((ROOT / mutant.file).read_text(encoding="utf-8"))

    ast.parse(changed)
    for test in mutant.tests:
        assert is_there(test), f"{test} is not there; name the test that holds: {mutant.protection}"


@pytest.mark.parametrize("name", ["TestPlaces::test_no_such_clause", "TestNowhere::test_an_empty_table_has_no_splits"])
def test_a_clause_that_is_not_there_is_noticed(name: str) -> None:
    assert is_there("tests/formats/test_contract.py::TestPlaces::test_an_empty_table_has_no_splits")

    assert not is_there(f"tests/formats/test_contract.py::{name}")


def test_no_two_mutants_share_a_name_and_there_are_enough() -> None:
    names = [mutant.name for mutant in MUTANTS]

    assert len(set(names)) == len(names) >= 16
