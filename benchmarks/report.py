"""What all benchmarks share: the machine, the versions, a table, JSON, Markdown and a plot.

The machine may be noisy. So figures are ratios of things measured in turns in one run, medians of several turns.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = [
    "RESULTS",
    "TURNS",
    "Bar",
    "Line",
    "Panel",
    "Took",
    "bars",
    "machine",
    "markdown",
    "median",
    "median_ms",
    "panels",
    "plot",
    "save",
    "show",
    "timed",
    "versions",
]

RESULTS = Path(__file__).resolve().parent / "results"
TURNS = 7
"""Fewer than five are no median."""

_PACKAGES = ("paimon-sink", "pypaimon", "pyiceberg", "pyarrow", "fsspec", "s3fs", "pyspark")
_COLOURS = ("#1f5fa8", "#c2571a", "#2f7d4f", "#7a4a9c", "#8a8a8a")
_LOG_WIDTH = 140
_OTHERS = "#b9bec5"
_MARKERS = ("o", "s", "^", "D", "v")


def machine() -> dict[str, Any]:
    """What it ran on. No names of machines or people."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "load_before": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


@dataclass(frozen=True)
class Took:
    """Wall clock, and processor time of all threads, which other work on the machine disturbs less."""

    wall_ms: float
    cpu_ms: float


def timed(work: Callable[[], object]) -> Took:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Took((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)


def median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 3)


def median_ms(times: Sequence[float]) -> float:
    return median(times)


def show(title: str, rows: Sequence[Mapping[str, object]], *, notes: Sequence[str] = ()) -> None:
    """A table for people, with the machine below it."""
    # In a log there is no terminal to be as wide as.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _LOG_WIDTH)
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False, padding=0)
    names = [name for name, value in rows[0].items() if not isinstance(value, list)]
    for name in names:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_shown(row[name]) for name in names))
    console.print(table)
    about, software = machine(), versions()
    for note in notes:
        console.print(note, soft_wrap=True)
    console.print(
        f"{about['processor']}, {about['cores']} cores, {about['memory_gb']} GB, {about['system']}", soft_wrap=True
    )
    console.print(", ".join(f"{name} {version}" for name, version in software.items()), soft_wrap=True)


def save(name: str, *, arguments: Mapping[str, object], rows: Sequence[Mapping[str, object]], to: Path) -> Path:
    """JSON for machines, with all that is needed to judge it, and the table in Markdown beside it."""
    to.mkdir(parents=True, exist_ok=True)
    path = to / f"{name}.json"
    body = {
        "benchmark": name,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        # Where it was written to is nobody's business but this machine's.
        "arguments": {key: value for key, value in arguments.items() if not isinstance(value, Path)},
        "machine": machine(),
        "versions": versions(),
        "rows": list(rows),
    }
    path.write_text(json.dumps(body, indent=2) + "\n")
    path.with_suffix(".md").write_text(markdown(rows))
    return path


def markdown(rows: Sequence[Mapping[str, object]]) -> str:
    """One table. Lists, such as the times of all rounds, are for the JSON only."""
    names = [name for name, value in rows[0].items() if not isinstance(value, list)]
    rulers = ["---" if isinstance(rows[0][name], str) else "---:" for name in names]
    lines = [names, rulers, *([_shown(row[name]) for name in names] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@dataclass(frozen=True)
class Line:
    label: str
    points: Sequence[tuple[float, float]]


def plot(name: str, lines: Sequence[Line], *, title: str, x: str, y: str, to: Path, log_y: bool = False) -> Path | None:
    """Lines over a logarithmic axis, where matplotlib is there."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    figure, axes = pyplot.subplots(figsize=(8, 4.8), dpi=150, facecolor="white")
    for number, line in enumerate(lines):
        axes.plot(
            [at for at, _ in line.points],
            [value for _, value in line.points],
            label=line.label,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=5,
            linewidth=1.8,
        )
    axes.set_title(title, loc="left", fontsize=12)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    places = sorted({at for line in lines for at, _ in line.points})
    if len(places) > 1 and places[0] > 0:
        axes.set_xscale("log")
        axes.set_xticks(places, [f"{place:,.0f}" for place in places])
        axes.xaxis.set_minor_formatter(NullFormatter())
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.grid(visible=True, color="#dddddd", linewidth=0.7)
    axes.legend(frameon=False)
    return _saved(pyplot, figure, axes, to / f"{name}.png")


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    note: str
    """What stands at its end."""
    ours: bool = False


def bars(name: str, found: Sequence[Bar], *, title: str, x: str, to: Path) -> Path | None:
    """Lying bars, the first on top, ours in colour."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    figure, axes = pyplot.subplots(figsize=(8, 1.4 + 0.45 * len(found)), dpi=150, facecolor="white")
    colours = [_COLOURS[0] if bar.ours else _OTHERS for bar in found]
    drawn = axes.barh([bar.label for bar in found], [bar.value for bar in found], color=colours, height=0.65)
    axes.bar_label(drawn, labels=[bar.note for bar in found], padding=4, fontsize=9)
    axes.invert_yaxis()
    axes.set_title(title, loc="left", fontsize=12)
    axes.set_xlabel(x)
    # Room for the notes at the ends.
    axes.set_xlim(0, max(bar.value for bar in found) * 1.3 or 1)
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    return _saved(pyplot, figure, axes, to / f"{name}.png")


@dataclass(frozen=True)
class Panel:
    """Bars among others that are about something else. A label without a bar keeps its line empty."""

    title: str
    bars: Sequence[Bar]


def panels(name: str, grid: Sequence[Sequence[Panel]], *, title: str, x: str, to: Path) -> Path | None:
    """Lying bars in rows and columns. All panels of a row have the same labels; 1 is marked."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    labels = [list(dict.fromkeys(bar.label for panel in row for bar in panel.bars)) for row in grid]
    tall, wide = [0.9 + 0.26 * len(row) for row in labels], max(len(row) for row in grid)
    figure, found = pyplot.subplots(
        len(grid), wide, figsize=(1.2 + 3 * wide, 0.6 + sum(tall)), dpi=120, height_ratios=tall, squeeze=False
    )
    for row, names, row_axes in zip(grid, labels, found, strict=True):
        for panel, axes in zip(row, row_axes, strict=False):
            places = [names.index(bar.label) for bar in panel.bars]
            colours = [_COLOURS[0] if bar.ours else _OTHERS for bar in panel.bars]
            drawn = axes.barh(places, [bar.value for bar in panel.bars], color=colours, height=0.65)
            axes.bar_label(drawn, labels=[bar.note for bar in panel.bars], padding=3, fontsize=8)
            axes.axvline(1, color="#555555", linewidth=0.8)
            axes.set_title(panel.title, loc="left", fontsize=9)
            axes.set_xlim(0, max(bar.value for bar in panel.bars) * 1.35 or 1)
            axes.set_ylim(len(names) - 0.4, -0.6)
            axes.set_yticks(range(len(names)), names if axes is row_axes[0] else [""] * len(names), fontsize=8)
            axes.tick_params(axis="x", labelsize=8)
            axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    figure.supxlabel(x, fontsize=9)
    return _saved(pyplot, figure, found[0][0], to / f"{name}.png")


def _pyplot() -> Any:
    if importlib.util.find_spec("matplotlib") is None:
        print("No plot: pip install 'paimon-sink[bench]' brings matplotlib.", file=sys.stderr)
        return None
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _saved(pyplot: Any, figure: Any, axes: Any, path: Path) -> Path:
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    pyplot.close(figure)
    return path


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
