"""A lake as people name it on the command line."""

from __future__ import annotations

from tests.support.lake import Lake

__all__ = ["named"]


def named(lake: Lake) -> list[str]:
    """The arguments that lead ``pwc`` to the lake's table."""
    pairs = [f"--option={key}={value}" for key, value in lake.options.items() if key != "warehouse"]
    return ["--warehouse", lake.options["warehouse"], "--table", lake.table, *pairs]
