"""What stands behind ``catalog.*``: the sentence for a name that a catalog does not have."""

from __future__ import annotations

from collections.abc import Iterable

from paimon_sink.core.names import nearest_name
from paimon_sink.core.option_secrets import quoted_key

__all__ = ["unknown_name"]


def unknown_name(name: str, known: Iterable[str], *, catalog: str) -> str:
    """The sentence for a name that ``catalog`` ("a Paimon catalog") does not have."""
    nearest = nearest_name(name, known)
    cure = (
        f"did you mean catalog.{nearest}?" if nearest else f"it has {', '.join(f'catalog.{each}' for each in known)}."
    )
    return f"{quoted_key(f'catalog.{name}')} is not an option of {catalog}; {cure}"
