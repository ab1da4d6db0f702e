"""Options of ours for the benchmarks of reads, on versions of the package that know them and on others."""

from __future__ import annotations

from collections.abc import Iterable

from paimon_sink.core.options import DECLARED

__all__ = ["is_option", "known", "pairs"]


def is_option(name: str) -> bool:
    """Whether this version of the package knows it."""
    return name.lower() in DECLARED.options


def known(**options: str) -> dict[str, str]:
    """Those of the options that it knows."""
    return {name: value for name, value in options.items() if is_option(name)}


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """``KEY=VALUE`` as people write it. Raises ``ValueError`` at one without a sign of equality."""
    split = [text.partition("=") for text in texts]
    for key, sign, _ in split:
        if not sign:
            raise ValueError(f"--option {key} has no value; write it as KEY=VALUE.")
    return {key: value for key, _, value in split}
