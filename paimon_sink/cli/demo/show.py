"""What ``pwc demo`` prints: a story while it runs, figures at the end."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from paimon_sink.cli.demo.place import TABLE, Place
from paimon_sink.cli.demo.run import Figures, Kill
from paimon_sink.cli.figures import many
from paimon_sink.cli.terminal import show_figure

__all__ = ["Silence", "Story", "progress_bar", "show_figures", "show_opening", "show_run", "show_summary"]

_INDENT = 9


def progress_bar(console: Console) -> Progress:
    """Where there is a terminal; elsewhere nothing."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} batches published"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class Silence:
    """Moves the progress bar, and says nothing."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def driver_started(self, *, pid: int, restart: bool) -> None:
        pass

    def batches_in(self, published: int) -> None:
        self._bar.update(self._task, completed=published)

    def killed(self, kill: Kill) -> None:
        pass

    def replay_recognised(self, batch_id: int) -> None:
        pass


class Story(Silence):
    """Tells what happens as it happens."""

    def __init__(self, bar: Progress, task: TaskID, console: Console) -> None:
        super().__init__(bar, task)
        self._console = console

    def driver_started(self, *, pid: int, restart: bool) -> None:
        if restart:
            self._say("restart", f"driver {pid}, on the same checkpoint", style="cyan")
        else:
            self._say("start", f"driver {pid}, a process of its own with a JVM and Python workers", style="cyan")

    def killed(self, kill: Kill) -> None:
        self._say(f"kill {kill.number}", f"SIGKILL to driver {kill.driver_pid} and its JVM,", style="red")
        self._say("", kill.moment)
        self._say("", f"  the table ends at        {_newest(kill)}")
        self._say("", f"  Spark's log ends at      {_batch(kill.logged_batch)}")
        for line in _consequence(kill):
            self._say("", line)

    def replay_recognised(self, batch_id: int) -> None:
        self._say("replay", f"batch {batch_id} came again and was recognised: no second snapshot", style="green")

    def _say(self, what: str, text: str, *, style: str = "") -> None:
        self._console.print(Text.assemble((what.ljust(_INDENT), f"bold {style}"), text), soft_wrap=True)


def _newest(kill: Kill) -> str:
    if kill.snapshot_id is None:
        return "nothing yet"
    return f"snapshot {kill.snapshot_id}, which holds batch {kill.published_batch}"


def _batch(batch_id: int | None) -> str:
    return "nothing yet" if batch_id is None else f"batch {batch_id}"


def _consequence(kill: Kill) -> list[str]:
    if kill.repeats_what_is_in:
        lines = [
            f"So Spark will send batch {kill.spark_will_repeat} again although it is in:",
            "its rows must not get in twice.",
        ]
    elif kill.spark_will_repeat is not None:
        lines = [f"So Spark will send batch {kill.spark_will_repeat} again: none of its rows may be lost."]
    else:
        lines = ["Spark was between two batches."]
    if kill.files_left_behind:
        files = many(kill.files_left_behind, "data file")
        lines.append(f"On disk: {files} that no snapshot names and no reader sees.")
    return lines


def show_opening(console: Console, place: Place, *, rows: int, batches: int, kills: str) -> None:
    console.print(Text("A Spark stream into a local table, and a driver that gets killed", style="bold"))
    console.print(f"{rows:,} orders, each with an id of its own, go into {TABLE} in {batches} batches,")
    console.print('by format("pwc"). At the end every id is counted.')
    console.print(f"format     {place.table_format}")
    console.print(f"kills      {kills}", soft_wrap=True)
    console.print(f"directory  {place.root}", soft_wrap=True, markup=False)
    console.print()


def show_figures(console: Console, figures: Figures) -> None:
    console.print()
    show_figure(console, "rows sent", figures.rows_sent, "")
    show_figure(console, "rows in the table", figures.rows_in_table, "read back without Spark")
    show_figure(console, "duplicates", figures.duplicates, "", wrong=figures.duplicates > 0)
    show_figure(console, "missing", figures.missing, "", wrong=figures.missing > 0)
    show_figure(console, "snapshots", figures.snapshots, f"for {figures.batches} batches")
    show_figure(console, "kills", figures.kills, "SIGKILL to the driver and its JVM")
    show_figure(console, "replays recognised", figures.replays_recognised, "batches sent again that were in already")
    show_figure(console, "files left behind", figures.files_left_behind, "by killed tasks; no snapshot names them")
    console.print()
    console.print(_verdict(figures))


def _verdict(figures: Figures) -> Text:
    if figures.exactly_once:
        despite = f", in spite of {many(figures.kills, 'kill')}" if figures.kills else ""
        return Text(f"Every row is in the table exactly once{despite}. ({figures.seconds:.0f} s)", style="bold green")
    wrong = f"WRONG: {figures.missing:,} rows are missing, {figures.duplicates:,} are there more than once."
    return Text(wrong, style="bold red")


def show_run(console: Console, number: int, of: int, figures: Figures) -> None:
    """One line."""
    line = (
        f"run {number:>{len(str(of))}} of {of}  {many(figures.kills, 'kill'):<8}  "
        f"{many(figures.replays_recognised, 'replay'):<10}  {figures.missing} missing  {figures.duplicates} doubled  "
        f"{figures.seconds:5.1f} s"
    )
    console.print(Text(line, style="" if figures.exactly_once else "bold red"), soft_wrap=True)


def show_summary(console: Console, runs: Sequence[Figures]) -> None:
    good = all(figures.exactly_once for figures in runs)
    line = (
        f"{len(runs)} runs, {sum(figures.kills for figures in runs)} kills, "
        f"{sum(figures.replays_recognised for figures in runs)} replays recognised: "
        f"{sum(figures.missing for figures in runs)} missing, {sum(figures.duplicates for figures in runs)} doubled"
    )
    console.print()
    console.print(Text(line, style="bold green" if good else "bold red"), soft_wrap=True)
