"""``python -m integration.soak``: SIGKILLs at random for a cluster that writes to S3, then a count of every row.

A SeaweedFS server, a Spark standalone cluster, and a driver with two streaming queries and a batch writer on the same
table run as processes of their own. Drivers, commit processes, Python workers, executors and worker daemons are killed.
Exit status: 0 every row is in exactly once, 1 something is wrong, 2 bad usage.
"""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import FrameType

import click
import pyarrow as pa
from rich.console import Console

from integration.soak.cluster import SoakError
from integration.soak.count import Figures
from integration.soak.pipeline import PipelineFigures, soak_pipeline
from integration.soak.place import Place
from integration.soak.run import soak
from integration.soak.show import audience, show_figures, show_opening, show_pipeline
from paimon_sink.core.errors import PwcError
from paimon_sink.formats.registry import BUILT_IN
from tests.support.s3 import s3_server


@click.command("soak", help=__doc__)
@click.option("--kills", type=click.IntRange(min=0), envvar="SOAK_KILLS", show_envvar=True,
              help="How many. If not given, 200, or 100 of a pipeline.")  # fmt: skip
@click.option("--seed", type=int, envvar="SOAK_SEED", show_envvar=True, help="For what is random. Chosen if not given.")
@click.option("--format", "table_format", type=click.Choice(list(BUILT_IN)), envvar="SOAK_FORMAT",
              default="paimon", show_default=True, show_envvar=True, help="The table's format.")  # fmt: skip
@click.option("--tidy", is_flag=True, envvar="SOAK_TIDY", show_envvar=True,
              help="Compact, expire and clean all the while, too.")  # fmt: skip
@click.option(
    "--pipeline", is_flag=True, help="A stream from table to table instead, the first of which is maintained."
)
@click.option("--directory", type=click.Path(file_okay=False, path_type=Path), envvar="SOAK_DIRECTORY",
              show_envvar=True, help="Where to make the soak's own directory.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="For machines: a JSON object, and nothing else.")
def main(
    *,
    kills: int | None,
    seed: int | None,
    table_format: str,
    tidy: bool,
    pipeline: bool,
    directory: Path | None,
    as_json: bool,
) -> None:
    if not Path("/proc/self/stat").exists():
        raise click.UsageError("The soak finds its processes in /proc, so it needs Linux.")
    # The blocks below end the processes; a signal that ended Python at once would skip them.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    if kills is None:
        kills = 100 if pipeline else 200
    if seed is None:
        seed = random.randrange(10_000)
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    place = Place(Path(tempfile.mkdtemp(prefix="pwc-soak-", dir=directory)))
    console = Console(highlight=False, quiet=as_json)
    figures: Figures | PipelineFigures | None = None
    try:
        with s3_server() as server:
            show_opening(
                console,
                table_format=table_format,
                tidy=tidy,
                pipeline=pipeline,
                kills=kills,
                seed=seed,
                directory=str(place.root),
                server=server.kind,
            )
            with audience(console, kills) as listener:
                run = soak_pipeline if pipeline else partial(soak, tidy=tidy)
                figures = run(place, server, listener, table_format=table_format, kills=kills, seed=seed)
    except (SoakError, PwcError, OSError, pa.ArrowException) as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)
    except (KeyboardInterrupt, SystemExit):
        # Nobody has seen anything wrong.
        shutil.rmtree(place.root, ignore_errors=True)
        raise
    if figures is not None:
        if isinstance(figures, PipelineFigures):
            show_pipeline(console, figures)
        else:
            show_figures(console, figures)
        if as_json:
            click.echo(json.dumps({**dataclasses.asdict(figures), "wrongs": figures.wrongs()}, indent=2))
        if not figures.wrongs():
            shutil.rmtree(place.root)
            return
    click.echo(f"Logs, checkpoints and a copy of the table are in {place.root} (SOAK_SEED={seed}).", err=True)
    raise click.exceptions.Exit(1)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
