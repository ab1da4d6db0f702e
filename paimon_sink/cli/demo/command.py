"""``pwc demo``: kill a streaming query where it hurts, restart it, and count."""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from paimon_sink.cli.arguments import echo_json, json_flag
from paimon_sink.cli.demo.place import FILES_A_BATCH, Place
from paimon_sink.cli.demo.run import Figures, PlannedKill, random_kills, run_demo, scripted_kills
from paimon_sink.cli.demo.show import (
    Silence,
    Story,
    progress_bar,
    show_figures,
    show_opening,
    show_run,
    show_summary,
)
from paimon_sink.cli.terminal import Terminal
from paimon_sink.core.errors import OptionError
from paimon_sink.formats.registry import BUILT_IN

__all__ = ["demo_command"]


@click.command("demo")
@click.option("--directory", type=click.Path(file_okay=False, path_type=Path), default="demo", show_default=True,
              help="Where to do it. Emptied first, unless something else is there.")  # fmt: skip
@click.option("--format", "table_format", type=click.Choice(list(BUILT_IN)), default=next(iter(BUILT_IN)),
              show_default=True, help="The format of the table.")  # fmt: skip
@click.option("--rows", type=click.IntRange(min=1), default=600_000, show_default=True, help="How many rows to send.")
@click.option("--batches", type=click.IntRange(min=6), default=12, show_default=True, help="In how many batches.")
@click.option("--random-kills", "kill_count", type=click.IntRange(min=0), metavar="N",
              help="N kills at random moments, instead of two at chosen ones.")  # fmt: skip
@click.option("--seed", type=int, help="For the random moments. One is chosen and shown if there is none.")
@click.option("--runs", type=click.IntRange(min=1), default=1, show_default=True, help="Do it all so many times.")
@json_flag
def demo_command(
    *,
    directory: Path,
    table_format: str,
    rows: int,
    batches: int,
    kill_count: int | None,
    seed: int | None,
    runs: int,
    as_json: bool,
) -> None:
    """Stream into a local table, kill the driver in the middle, restart it, and count the rows.

    The kills are real: SIGKILL to the driver process and its JVM, once right after a snapshot was published and before
    Spark knew, and once in the middle of a write. Exit status 1 if a row is missing or there twice.
    """
    if rows < batches * FILES_A_BATCH:
        raise click.UsageError(
            f"{rows} rows are too few for {batches} batches: take {batches * FILES_A_BATCH} or more."
        )
    if seed is not None and kill_count is None:
        raise click.UsageError("--seed is for --random-kills.")
    if kill_count is not None and seed is None:
        seed = random.randrange(10_000)
    console = Terminal(highlight=False, quiet=as_json)
    place = Place(Path(os.path.abspath(directory)), table_format)
    try:
        place.empty()
        # There is no table yet. What it takes to look for one may be missing, and is said by name.
        place.published()
    except OptionError as error:
        raise click.UsageError(str(error)) from error
    story = _kills_in_words(kill_count, seed) + (f", and all of it {runs} times" if runs > 1 else "")
    show_opening(console, place, rows=rows, batches=batches, kills=story)

    finished: list[Figures] = []
    with progress_bar(console) as bar:
        task = bar.add_task("streaming", total=batches)
        audience = Story(bar, task, console) if runs == 1 else Silence(bar, task)
        for number in range(1, runs + 1):
            bar.reset(task, description=f"run {number} of {runs}" if runs > 1 else "streaming")
            kills: Sequence[PlannedKill] = (
                scripted_kills(batches=batches)
                if kill_count is None
                else random_kills(kill_count, batches=batches, seed=f"{seed}/{number}")
            )
            finished.append(run_demo(place, kills, audience, rows=rows, batches=batches))
            if runs > 1:
                show_run(console, number, runs, finished[-1])

    if as_json:
        echo_json(_as_json(finished, seed))
    elif runs == 1:
        show_figures(console, finished[0])
    else:
        show_summary(console, finished)
    if not all(figures.exactly_once for figures in finished):
        raise click.exceptions.Exit(1)


def _kills_in_words(kill_count: int | None, seed: int | None) -> str:
    if kill_count is None:
        return "2, at the two moments that hurt most"
    return f"{kill_count}, at random moments (seed {seed})"


def _as_json(runs: Sequence[Figures], seed: int | None) -> dict[str, Any]:
    """The sums over all runs, and each run."""
    each = [dataclasses.asdict(figures) for figures in runs]
    sums = {name: round(sum(run[name] for run in each), 1) for name in each[0]}
    return {**sums, "exactly_once": all(figures.exactly_once for figures in runs), "seed": seed, "runs": each}
