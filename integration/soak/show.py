"""What a soak prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from integration.soak.count import Figures
from integration.soak.kills import KINDS, PlannedKill
from integration.soak.pipeline import PipelineFigures
from integration.soak.place import TABLE
from integration.soak.run import Audience

__all__ = ["audience", "show_figures", "show_opening", "show_pipeline"]

_A_LINE_EVERY = 10


def show_opening(
    console: Console,
    *,
    table_format: str,
    tidy: bool,
    pipeline: bool,
    kills: int,
    seed: int,
    directory: str,
    server: str,
) -> None:
    writers = "Two streams, a batch writer and a janitor" if tidy else "Two streams and a batch writer"
    title = f"{writers} on one {table_format.capitalize()} table, under fire"
    if pipeline:
        title = f"A stream from one {table_format.capitalize()} table to another, compacted and expired, under fire"
    console.print(Text(title, style="bold"))
    console.print(f"cluster    Spark standalone: a master, two workers, a driver; {TABLE} on {server}", soft_wrap=True)
    console.print(f"kills      {kills} times SIGKILL (SOAK_KILLS), at random (SOAK_SEED={seed})", soft_wrap=True)
    console.print(f"directory  {directory}", soft_wrap=True, markup=False)


@contextmanager
def audience(console: Console, kills: int) -> Iterator[Audience]:
    """A bar where there is a terminal; elsewhere a line every ten kills."""
    bar = Progress(
        # Of one width, or the bar would jump.
        TextColumn("{task.description:<36}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("kills, {task.fields[batches]} batches"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    counted: Counter[str] = Counter()
    with bar:
        task = bar.add_task("", total=kills, batches=0)

        def killed(kill: PlannedKill, batches: int) -> None:
            counted[kill.kind] += 1
            at = f", {kill.step}" if kill.step is not None else ""
            bar.update(task, advance=1, batches=batches, description=f"killed: {kill.kind}{at}")
            done = counted.total()
            if not console.is_terminal and (done % _A_LINE_EVERY == 0 or done == kills):
                each = ", ".join(f"{kind} {counted[kind]}" for kind in counted)
                console.print(f"{done:>3} of {kills} kills, {batches:,} batches in ({each})", soft_wrap=True)

        def says(text: str) -> None:
            bar.update(task, description=text)
            if not console.is_terminal:
                console.print(text)

        yield Audience(killed=killed, says=says)


def show_figures(console: Console, figures: Figures) -> None:
    _show(console, _kills(figures))
    table = Table("", "figure", "", box=box.SIMPLE_HEAD, show_header=False)
    table.columns[1].justify = "right"
    batches = sum(figures.batches.values())
    each = ", ".join(f"{name} {count:,}" for name, count in figures.batches.items())
    restarts = ", ".join(f"{name} {count:,}" for name, count in figures.query_restarts.items())
    rows: list[tuple[str, int, str, bool]] = [
        ("rows sent", figures.rows_sent, "", False),
        ("rows in the table", figures.rows_in_table, "read back without Spark", False),
        ("missing", figures.missing, "", figures.missing > 0),
        ("doubled", figures.doubled, "", figures.doubled > 0),
        ("batches", batches, each, False),
        _snapshots(figures, batches),
        ("driver restarts", figures.driver_restarts, "", False),
        ("worker restarts", figures.worker_restarts, "", False),
        ("query restarts", sum(figures.query_restarts.values()), restarts, False),
        ("replays recognised", figures.replays_recognised, "batches sent again that were in already", False),
        *(("chores: " + name, count, "times to some effect", False) for name, count in (figures.chores or {}).items()),
        ("metadata files", figures.metadata_files, "snapshots, manifests, lists, schemas", False),
        ("files left behind", figures.files_left_behind, "no snapshot names them", False),
        ("problems of pwc verify", len(figures.verify_problems), "", bool(figures.verify_problems)),
    ]
    for name, value, note, wrong in rows:
        table.add_row(name, f"{value:,}", Text(note, style="dim"), style="bold red" if wrong else "")
    _show(console, table)
    console.print()
    for problem in figures.verify_problems[:10]:
        console.print(Text(f"  {_in_words(problem)}", style="red"), soft_wrap=True)
    console.print(_verdict(figures), soft_wrap=True)


def show_pipeline(console: Console, figures: PipelineFigures) -> None:
    _show(console, _kills(figures))
    table = Table("", "figure", "", box=box.SIMPLE_HEAD, show_header=False)
    table.columns[1].justify = "right"
    chores = figures.chores
    rows: list[tuple[str, int, str]] = [
        ("rows in A", figures.rows_in_a, f"{figures.appends:,} appends, {figures.rows_sent:,} rows sent"),
        ("rows in B", figures.rows_in_b, f"{figures.batches:,} batches"),
        ("missing", figures.missing, ""),
        ("doubled", figures.doubled, ""),
        ("driver restarts", figures.driver_restarts, ""),
        ("worker restarts", figures.worker_restarts, ""),
        ("query restarts", sum(figures.query_restarts.values()), "by a driver that lived"),
        ("without a put", figures.without_a_put, "batches of B that were in already, or empty"),
        ("files of A compacted", chores.get("compact", 0), ""),
        ("snapshots of A expired", chores.get("expire", 0), "all that the stream's hold let go"),
        ("files of A cleaned", chores.get("clean", 0), "no snapshot named them"),
        ("problems of pwc verify", len(figures.verify_problems), "A and B"),
    ]
    for name, value, note in rows:
        table.add_row(name, f"{value:,}", Text(note, style="dim"))
    _show(console, table)
    console.print()
    console.print(_verdict(figures), soft_wrap=True)


def _snapshots(figures: Figures, batches: int) -> tuple[str, int, str, bool]:
    if figures.chores is None:
        return ("snapshots", figures.snapshots, "one a batch", figures.snapshots != batches)
    return ("snapshots", figures.snapshots, "of batches and compactions, the rest expired", False)


def _kills(figures: Figures | PipelineFigures) -> Table:
    table = Table("killed", "times", "of these at a named step", box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for kind in dict.fromkeys([*KINDS, *figures.kills]):
        table.add_row(kind, f"{figures.kills.get(kind, 0):,}", f"{figures.kills_at_a_step.get(kind, 0):,}")
    together = (f"{sum(figures.kills.values()):,}", f"{sum(figures.kills_at_a_step.values()):,}")
    table.add_row("together", *together, style="bold")
    return table


def _in_words(problem: object) -> str:
    """``pwc verify`` names problems by kind, place and what it found there."""
    return ", ".join(map(str, problem.values())) if isinstance(problem, dict) else str(problem)


def _verdict(figures: Figures | PipelineFigures) -> Text:
    wrongs = figures.wrongs()
    kills = sum(figures.kills.values())
    if wrongs:
        return Text(f"WRONG: {'; '.join(wrongs)}.", style="bold red")
    return Text(f"Every row is in the table exactly once after {kills} kills. ({figures.seconds:.0f} s)", "bold green")


def _show(console: Console, table: Table) -> None:
    # rich pads every line with blanks, which would stay when it is piped.
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().rstrip().splitlines():
        console.print(Text.from_ansi(line.rstrip()), soft_wrap=True)
