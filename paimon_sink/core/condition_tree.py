"""Conditions joined by AND, OR and NOT: a tree of values, whatever its leaves are.

SQL has three truth values. A leaf is true, false or null for a row, and so is the whole: NOT of null is null, AND of
null and false is false, OR of null and true is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

__all__ = ["AllOf", "AnyOf", "Not", "Tree", "conjuncts", "leaves", "with_leaves"]

Leaf = TypeVar("Leaf")
Other = TypeVar("Other")


@dataclass(frozen=True)
class AllOf(Generic[Leaf]):
    """Joined by AND."""

    parts: tuple[Tree[Leaf], ...]


@dataclass(frozen=True)
class AnyOf(Generic[Leaf]):
    """Joined by OR."""

    parts: tuple[Tree[Leaf], ...]


@dataclass(frozen=True)
class Not(Generic[Leaf]):
    part: Tree[Leaf]


Tree: TypeAlias = Leaf | AllOf[Leaf] | AnyOf[Leaf] | Not[Leaf]


def leaves(trees: Iterable[Tree[Leaf]]) -> Iterator[Leaf]:
    """From left to right, as they are written."""
    for tree in trees:
        if isinstance(tree, AllOf | AnyOf):
            yield from leaves(tree.parts)
        elif isinstance(tree, Not):
            yield from leaves([tree.part])
        else:
            yield tree


def with_leaves(tree: Tree[Leaf], replaced: Callable[[Leaf], Tree[Other]]) -> Tree[Other]:
    """The same tree with other leaves."""
    if isinstance(tree, AllOf):
        return AllOf(tuple(with_leaves(part, replaced) for part in tree.parts))
    if isinstance(tree, AnyOf):
        return AnyOf(tuple(with_leaves(part, replaced) for part in tree.parts))
    if isinstance(tree, Not):
        return Not(with_leaves(tree.part, replaced))
    return replaced(tree)


def conjuncts(tree: Tree[Leaf]) -> list[Tree[Leaf]]:
    """The parts that all have to hold for the whole to hold."""
    if isinstance(tree, AllOf):
        return [conjunct for part in tree.parts for conjunct in conjuncts(part)]
    return [tree]
