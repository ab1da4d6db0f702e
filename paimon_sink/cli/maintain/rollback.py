"""``pwc rollback``: make an older snapshot the newest, and say first what that means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from paimon_sink.cli.arguments import branch_option, echo_json, json_flag, table_argument, usage_errors
from paimon_sink.cli.figures import clock_time, many
from paimon_sink.cli.printable import printable
from paimon_sink.cli.terminal import Terminal, show_figure
from paimon_sink.formats.contract import Table
from paimon_sink.formats.refs import RolledBack
from paimon_sink.maintain.rollback import RollbackPlan, UserLoss, plan_rollback, roll_back

__all__ = ["rollback_command"]

_NAMES = 5


@click.command("rollback")
@branch_option
@table_argument
@click.option("--to", "to", metavar="ID|TAG", required=True, help="The snapshot that is to be the newest.")
@click.option("--yes", "is_done", is_flag=True, help="Do it. Without this, only what it means is shown.")
@json_flag
def rollback_command(*, table: Table, to: str, is_done: bool, as_json: bool) -> None:
    """Make an older snapshot of a table the newest.

    Shows what goes: snapshots, batches of which commit users, rows, tags; and what streams will do. With --yes it is
    done. Stop the streams that write to the table first, and set their checkpoints back with it.
    """
    with usage_errors():
        plan = plan_rollback(table, to)
    done = roll_back(table, plan) if is_done and not plan.is_nothing else None
    if as_json:
        echo_json(_as_json(plan, done))
    else:
        _show(Terminal(highlight=False), plan, done)


def _as_json(plan: RollbackPlan, done: RolledBack | None) -> dict[str, Any]:
    return {
        "table": plan.table,
        "to": plan.to.snapshot_id,
        "tag": plan.tag,
        "newest": plan.newest.snapshot_id,
        "done": done is not None,
        "snapshots": [snapshot.snapshot_id for snapshot in plan.going],
        "rows_before": plan.newest.rows,
        "rows_after": plan.to.rows,
        "users": [
            {
                "user": loss.user,
                "snapshots": loss.snapshots,
                "batches": list(loss.batches),
                "rows": loss.rows,
                "last_batch": loss.last,
                "ledger_knows": loss.knows,
            }
            for loss in plan.users
        ],
        "tags": list(plan.tags),
        "tags_go": plan.takes_tags_along,
        "branches": list(plan.branches),
        "consumers": [consumer.name for consumer in plan.consumers],
        "went": [] if done is None else list(done.snapshot_ids),
        "tags_went": [] if done is None else list(done.tags),
    }


def _show(console: Console, plan: RollbackPlan, done: RolledBack | None) -> None:
    if plan.is_nothing:
        said = f"Snapshot {plan.to.snapshot_id} is the newest of {plan.table} already. Nothing was changed."
        console.print(Text(said, style="bold"), soft_wrap=True)
        return
    console.print(Text(plan.table, style="bold"), soft_wrap=True)
    at = clock_time(plan.to.at_ms, "%Y-%m-%d %H:%M:%S")
    named = f", tag {printable(plan.tag)}" if plan.tag is not None else ""
    console.print(Text(f"back to snapshot {plan.to.snapshot_id}{named}, of {at}", style="dim"), soft_wrap=True)
    console.print()
    show_figure(console, "snapshots that go", len(plan.going), _range(plan))
    show_figure(console, "rows now", plan.newest.rows)
    show_figure(console, "rows afterwards", plan.to.rows)
    _say(console, "What goes:", [_loss(loss) for loss in plan.users])
    _say(console, "What else:", list(_others(plan)))
    _say(console, "What streams do:", _streams(plan))
    console.print()
    console.print(Text(_end(plan, done), style="bold"), soft_wrap=True)


def _say(console: Console, head: str, lines: Sequence[str]) -> None:
    if lines:
        console.print()
        console.print(Text(head))
        for line in lines:
            console.print(Text(f"  {printable(line)}"), soft_wrap=True)


def _range(plan: RollbackPlan) -> str:
    if not plan.going:
        return ""
    oldest, newest = plan.going[-1].snapshot_id, plan.going[0].snapshot_id
    return f"{oldest}" if oldest == newest else f"{oldest} to {newest}"


def _loss(loss: UserLoss) -> str:
    rows = _rows(loss.rows)
    what = _batches(loss.batches) if loss.batches else many(loss.snapshots, "snapshot")
    if not loss.batches:
        return f"{loss.user or 'another engine'}: {what}, {rows}. No batch of the ledger."
    if loss.last is not None:
        then = f"Then its last batch is {loss.last}."
    elif loss.knows:
        then = "Then the ledger has no batch of it."
    else:
        then = "Then the ledger cannot tell which batches it wrote, and may refuse some."
    return f"{loss.user}: {what}, {rows}. {then}"


def _rows(number: int | None) -> str:
    if number is None:
        return "an unknown number of rows"
    return many(number, "row") if number >= 0 else f"which took out {many(-number, 'row')}"


def _batches(batches: Sequence[int]) -> str:
    if len(batches) == 1:
        return f"batch {batches[0]}"
    is_row = list(batches) == list(range(batches[0], batches[0] + len(batches)))
    if is_row:
        return f"batches {batches[0]} to {batches[-1]}"
    return f"batches {_names([str(number) for number in batches])}"


def _others(plan: RollbackPlan) -> list[str]:
    lines = []
    if plan.tags and plan.takes_tags_along:
        lines.append(f"Tags above it go too: {_names(plan.tags)}.")
    elif plan.tags:
        lines.append(f"Tags on what goes stay, and keep their snapshots: {_names(plan.tags)}.")
    if plan.branches:
        lines.append(f"Branches stay, and keep what goes: {_names(plan.branches)}.")
    if plan.consumers:
        names = _names([consumer.name for consumer in plan.consumers])
        lines.append(f"Readers have read what goes, and stop with TableRolledBackError: {names}.")
    return lines


def _streams(plan: RollbackPlan) -> list[str]:
    if not any(loss.batches for loss in plan.users):
        return []
    return [
        "One that writes and goes on from its checkpoint does not write these again:",
        "stop it, delete the entries after its last batch from offsets and commits of",
        "its checkpoint, and start it: it writes them anew. Batch jobs: run them again.",
    ]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def _end(plan: RollbackPlan, done: RolledBack | None) -> str:
    if done is None:
        return "Nothing was changed. Do it with --yes."
    planned = {snapshot.snapshot_id for snapshot in plan.going}
    late = [str(number) for number in done.snapshot_ids if number not in planned]
    meanwhile = f" Landed meanwhile, and went too: {_names(late)}." if late else ""
    tags = f" Tags that went: {printable(_names(done.tags))}." if done.tags else ""
    return f"{plan.table} is at snapshot {plan.to.snapshot_id}.{tags}{meanwhile}"
