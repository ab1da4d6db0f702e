"""The benchmarks of each release as one file: benchmarks/history/VERSION.json.

python scripts/bench_history.py 0.2.0                    keeps what benchmarks/results has now
python scripts/bench_history.py --compare 0.1.0 0.2.0    what moved by more than a tenth; `now` is benchmarks/results

Only ratios of interleaved measurements are kept: absolute times say more about the machine than about the code.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS, HISTORY = ROOT / "benchmarks" / "results", ROOT / "benchmarks" / "history"
_RATIO = re.compile(r"^x |ratio|speed|largest / mean|telling %")
_NAMES = ("commits", "committers", "files", "partitions", "rows")
"""Whole numbers that say which row it is, where they are not measured."""
_MOVED = 0.1

Figures = Mapping[str, float]


def kept(results: Path = RESULTS) -> dict[str, Any]:
    """When each benchmark ran, on what, and its ratios by name."""
    runs, figures = {}, {}
    for file in sorted(results.glob("*.json")):
        body = json.loads(file.read_text(encoding="utf-8"))
        runs[file.stem] = {"at": body["at"], "machine": body["machine"], "versions": body["versions"]}
        for row in body["rows"]:
            for name, value in _ratios(file.stem, row):
                if name in figures:
                    raise ValueError(f"{file.name}: two rows are called {name!r}.")
                figures[name] = value
    return {"runs": runs, "figures": figures}


def _ratios(benchmark: str, row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    which = [str(value) for key, value in row.items() if isinstance(value, str) or key in _NAMES]
    for key, value in row.items():
        if _RATIO.search(key) and isinstance(value, (int, float)):
            yield ", ".join((benchmark, *which, key)), float(value)


def compared(before: Figures, after: Figures) -> Iterator[tuple[str, float | None, float | None]]:
    """What moved by more than a tenth, and what is there on one side only."""
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None or abs(new - old) > _MOVED * max(abs(old), 0.01):
            yield name, old, new


def figures_of(version: str) -> Figures:
    stored = kept() if version == "now" else json.loads((HISTORY / f"{version}.json").read_text(encoding="utf-8"))
    return {name: float(value) for name, value in stored["figures"].items()}


def main(arguments: list[str]) -> int:
    if len(arguments) == 3 and arguments[0] == "--compare":
        moved = list(compared(figures_of(arguments[1]), figures_of(arguments[2])))
        print(f"| figure | {arguments[1]} | {arguments[2]} |\n|---|---:|---:|")
        for name, old, new in moved:
            print(f"| {name} | {'' if old is None else f'{old:.2f}'} | {'' if new is None else f'{new:.2f}'} |")
        return 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    HISTORY.mkdir(exist_ok=True)
    text = json.dumps(kept(), indent=1, ensure_ascii=False, sort_keys=True)
    (HISTORY / f"{arguments[0]}.json").write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
