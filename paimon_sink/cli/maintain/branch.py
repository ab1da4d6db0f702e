"""``pwc branch``: create a branch, look at what it has, publish it as the table itself, or delete it."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from paimon_sink.cli.arguments import echo_json, json_flag, table_and_name, usage_errors
from paimon_sink.cli.figures import count, many, or_nothing, size
from paimon_sink.cli.printable import printable
from paimon_sink.cli.terminal import Terminal, grid
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.branches import (
    Difference,
    Side,
    create_branch,
    delete_branch,
    difference,
    list_branches,
    publish_branch,
)

__all__ = ["branch_command"]

_VERBS = ("create", "diff", "publish", "delete")


@click.command("branch")
@table_and_name
@click.option("--create", "verb", flag_value="create", help="Create it, at the newest snapshot of main.")
@click.option("--snapshot", "snapshot_id", type=int, metavar="ID", help="With --create: at this snapshot instead.")
@click.option("--diff", "verb", flag_value="diff", help="Show what it and main have since they parted (the default).")
@click.option("--publish", "verb", flag_value="publish", help="Make it main, if main has not moved on.")
@click.option("--delete", "verb", flag_value="delete", help="Take it away, with what only it has.")
@json_flag
def branch_command(*, table: Table, name: str | None, verb: str | None, snapshot_id: int | None, as_json: bool) -> None:
    """List the branches of an Iceberg table, or create, compare, publish or delete the branch NAME.

    Write to a branch with the option branch=NAME, read it the same way, and publish it once it is right.
    """
    if name is None:
        if verb is not None or snapshot_id is not None:
            raise click.UsageError("Name the branch: pwc branch TABLE NAME.")
        _list(table, as_json=as_json)
        return
    if snapshot_id is not None and verb != "create":
        raise click.UsageError("--snapshot goes with --create.")
    with usage_errors():
        if verb == "create":
            _created(table, name, create_branch(table, name, snapshot_id=snapshot_id), as_json=as_json)
            return
        act = {"publish": publish_branch, "delete": delete_branch}.get(verb or "", difference)
        found = act(table, name)
    done = verb if verb in ("publish", "delete") else None
    if as_json:
        echo_json({**_as_json(found), "done": done})
    else:
        _show(Terminal(highlight=False), found, done)


def _created(table: Table, name: str, snapshot_id: int, *, as_json: bool) -> None:
    if as_json:
        echo_json({"table": table.label, "branch": name, "snapshot_id": snapshot_id})
        return
    said = f"Created the branch {printable(name)} of {table.label} at snapshot {snapshot_id}. Write with branch={name}"
    Terminal(highlight=False).print(Text(said, style="bold"), soft_wrap=True)


def _list(table: Table, *, as_json: bool) -> None:
    heads = list_branches(table)
    if as_json:
        echo_json({"table": table.label, "branches": heads})
        return
    console = Terminal(highlight=False)
    if not heads:
        console.print(Text(f"{table.label} has no snapshot yet, and no branch."), soft_wrap=True)
        return
    shown = grid(("branch", "newest snapshot"), numbers=("newest snapshot",))
    for name, head in sorted(heads.items()):
        shown.add_row(Text(printable(name)), Text(str(head)))
    console.print(shown)


def _as_json(found: Difference) -> dict[str, Any]:
    return {
        "table": found.table,
        "parted_at": found.parted_at,
        "main_moved_on": found.main_moved_on,
        **{side: _side(of) for side, of in (("branch", found.branch), ("main", found.main))},
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "head": side.head,
        "snapshots": [snapshot.snapshot_id for snapshot in side.snapshots],
        "rows": side.rows,
        "files": side.files,
        "bytes": side.size_bytes,
    }


def _show(console: Console, found: Difference, done: str | None) -> None:
    shown = grid(("", "snapshots", "rows", "files", "bytes", "newest"), numbers=("snapshots", "rows", "files", "bytes"))
    for side in (found.branch, found.main):
        rows = or_nothing(side.rows, "{:+,}".format)
        cells = (
            side.name,
            f"{len(side.snapshots):,}",
            rows,
            count(side.files),
            or_nothing(side.size_bytes, size),
            str(side.head),
        )
        shown.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(Text(_since(found), style="dim"), soft_wrap=True)
    console.print(shown)
    console.print()
    console.print(Text(_end(found, done), style="bold"), soft_wrap=True)


def _since(found: Difference) -> str:
    if found.parted_at is None:
        return f"{found.table}: they have no snapshot in common that still stands"
    return f"{found.table} since snapshot {found.parted_at}, the last that both have"


def _end(found: Difference, done: str | None) -> str:
    name = printable(found.branch.name)
    if done == "publish":
        return f"Published {name}: main is at snapshot {found.branch.head}. Delete the branch when nobody writes to it."
    if done == "delete":
        left = many(len(found.branch.snapshots), "snapshot")
        return f"Deleted the branch {name}." + (f" {left} that main has not may expire." * bool(found.branch.snapshots))
    if found.main_moved_on:
        return "Main moved on since: it cannot be published. Write to a new branch again."
    if not found.branch.snapshots:
        return "The branch has nothing that main has not."
    return "Main has not moved on: it can be published with --publish."
