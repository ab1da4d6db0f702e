"""What stands behind ``catalog.*``: names that a catalog knows, and the nearest one to a name it does not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from paimon_sink.core.option_secrets import quoted_key

__all__ = ["nearest", "unknown_name"]

_LONGEST = 100
"""The search takes time that grows with the length of the name."""


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    close = difflib.get_close_matches(name.lower()[:_LONGEST], list(known), n=1, cutoff=cutoff)
    return close[0] if close else None


def unknown_name(name: str, known: Iterable[str], *, catalog: str) -> str:
    """The sentence for a name that ``catalog`` ("a Paimon catalog") does not have."""
    close = nearest(name, known)
    cure = f"did you mean catalog.{close}?" if close else f"it has {', '.join(f'catalog.{each}' for each in known)}."
    return f"{quoted_key(f'catalog.{name}')} is not an option of {catalog}; {cure}"
