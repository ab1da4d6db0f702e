"""``pwc options``: what can be set, generated from the declarations."""

from __future__ import annotations

import dataclasses

import click
from rich.markup import escape
from rich.table import Table

from paimon_sink.cli.arguments import echo_json
from paimon_sink.cli.terminal import Terminal
from paimon_sink.core.option_docs import OptionDoc, describe_options, render_markdown

__all__ = ["options_command"]


@click.command("options")
@click.option("--json", "as_json", is_flag=True, help="For machines: a JSON list.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The page docs/options.md.")
def options_command(*, as_json: bool, as_markdown: bool) -> None:
    """List every option of format("pwc")."""
    if as_json and as_markdown:
        raise click.UsageError("Give --json or --markdown, not both.")
    if as_json:
        echo_json([dataclasses.asdict(option) for option in describe_options()])
    elif as_markdown:
        click.echo(render_markdown(), nl=False)
    else:
        Terminal().print(_table(describe_options()))


def _table(options: list[OptionDoc]) -> Table:
    table = Table(box=None, padding=(0, 2, 1, 0), header_style="bold")
    table.add_column("option", no_wrap=True, style="cyan")
    table.add_column("default", overflow="fold")
    table.add_column("meaning", overflow="fold", ratio=1)
    for option in options:
        table.add_row(option.key, option.default or "", escape(_meaning(option)))
    return table


def _meaning(option: OptionDoc) -> str:
    meaning = option.meaning.replace("`", "")
    if option.secret:
        return f"{meaning} Secret: never shown."
    return f"{meaning}\nExample: {option.example}"
