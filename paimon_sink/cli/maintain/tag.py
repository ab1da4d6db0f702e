"""``pwc tag``: list, set and delete names of snapshots."""

from __future__ import annotations

from typing import Any

import click
from rich.text import Text

from paimon_sink.cli.arguments import echo_json, json_flag, table_and_name, usage_errors
from paimon_sink.cli.figures import clock_time, count
from paimon_sink.cli.printable import printable
from paimon_sink.cli.terminal import Terminal, grid
from paimon_sink.formats.contract import Table
from paimon_sink.maintain.tags import Tag, create_tag, delete_tag, list_tags

__all__ = ["tag_command"]


@click.command("tag")
@table_and_name
@click.option("--snapshot", "snapshot_id", type=int, metavar="ID", help="Tag this snapshot, not the newest.")
@click.option("--delete", "is_deleted", is_flag=True, help="Take the tag NAME away.")
@json_flag
def tag_command(*, table: Table, name: str | None, snapshot_id: int | None, is_deleted: bool, as_json: bool) -> None:
    """List the tags of a table, or give its newest snapshot the name NAME.

    A tag keeps its snapshot from expiring, and can be read: versionAsOf=NAME. A name that is taken is an error.
    """
    if name is None:
        if snapshot_id is not None or is_deleted:
            raise click.UsageError("Name the tag: pwc tag TABLE NAME.")
        _list(table, as_json=as_json)
        return
    if is_deleted and snapshot_id is not None:
        raise click.UsageError("--delete takes the name alone. Leave --snapshot out.")
    with usage_errors():
        tag = delete_tag(table, name) if is_deleted else create_tag(table, name, snapshot_id=snapshot_id)
    if as_json:
        echo_json({"table": table.label, "deleted": is_deleted, **_as_json(tag)})
        return
    if is_deleted:
        said = (
            f"Deleted the tag {printable(tag.name)} of {table.label}. Snapshot {tag.snapshot.snapshot_id} may expire "
            "again."
        )
    else:
        said = f"Snapshot {tag.snapshot.snapshot_id} of {table.label} has the tag {printable(tag.name)}."
    Terminal(highlight=False).print(Text(said, style="bold"), soft_wrap=True)


def _list(table: Table, *, as_json: bool) -> None:
    tags = list_tags(table)
    if as_json:
        echo_json({"table": table.label, "tags": [_as_json(tag) for tag in tags]})
        return
    console = Terminal(highlight=False)
    if not tags:
        console.print(Text(f"{table.label} has no tags."), soft_wrap=True)
        return
    shown = grid(("tag", "snapshot", "committed", "rows"), numbers=("snapshot", "rows"))
    for tag in tags:
        note = f" (reader {tag.consumer})" if tag.consumer is not None else ""
        cells = (
            f"{tag.name}{note}",
            str(tag.snapshot.snapshot_id),
            clock_time(tag.snapshot.at_ms, "%Y-%m-%d %H:%M:%S"),
            count(tag.snapshot.rows),
        )
        shown.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(shown)


def _as_json(tag: Tag) -> dict[str, Any]:
    return {
        "tag": tag.name,
        "snapshot_id": tag.snapshot.snapshot_id,
        "at_ms": tag.snapshot.at_ms,
        "rows": tag.snapshot.rows,
        "consumer": tag.consumer,
    }
