"""``pwc requeue``: quarantined rows, written again."""

from __future__ import annotations

from collections.abc import Mapping

import click
from rich.console import Console
from rich.text import Text

from paimon_sink.cli.arguments import echo_json, json_flag, options_argument, parsed
from paimon_sink.cli.figures import many
from paimon_sink.cli.terminal import Terminal, show_figure
from paimon_sink.core.rejected import in_words
from paimon_sink.maintain.requeue import Requeued, requeue

__all__ = ["requeue_command"]


@click.command("requeue")
@options_argument
@click.option("--where", help="Only rows of the quarantine that meet this condition, such as \"_pwc_rule = 'lossy'\".")
@click.option("--dry-run", is_flag=True, help="Only count the rows.")
@json_flag
def requeue_command(*, options: dict[str, str], where: str | None, dry_run: bool, as_json: bool) -> None:
    """Write the quarantined rows of a table into it again, each once.

    TABLE is the table's location. They are judged again: by its columns, and by the checks that are given, such as
    --option check.positive='amount > 0'. What fails comes back into the quarantine, with its attempts counted. Exit
    status 1 if some rows failed again, or were left where they are.
    """
    report = requeue(parsed(options), where=where, dry_run=dry_run)
    if as_json:
        echo_json(
            {
                "table": report.table,
                "quarantine": report.quarantine,
                "dry_run": report.dry_run,
                "tried": dict(report.tried),
                "written": report.written,
                "failed_again": dict(report.back or {}),
                "left": report.left,
                "snapshot": report.snapshot_id,
            }
        )
    else:
        _show(Terminal(highlight=False), report)
    if report.back or report.left:
        raise click.exceptions.Exit(1)


def _show(console: Console, report: Requeued) -> None:
    console.print(Text(report.table, style="bold"), soft_wrap=True)
    console.print()
    show_figure(console, "to be tried" if report.dry_run else "tried", sum(report.tried.values()), _rules(report.tried))
    if not report.dry_run:
        at = "" if report.snapshot_id is None else f"as snapshot {report.snapshot_id}"
        show_figure(console, "written", report.written, at)
        show_figure(console, "failed again", sum((report.back or {}).values()), _rules(report.back or {}))
    if report.left:
        note = f"they have values that {report.table} has no column for: {many(report.left, 'row')} in quarantine"
        show_figure(console, "left", report.left, note)


def _rules(rules: Mapping[str, int]) -> str:
    return in_words(rules)
