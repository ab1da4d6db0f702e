"""``pwc schema``: show the columns of a table and what they were before; add, widen or comment one with ``--yes``."""

from __future__ import annotations

from typing import Any

import click

from paimon_sink.cli.arguments import echo_json, json_flag, options_argument, parsed
from paimon_sink.cli.schema.show import change_json, schema_json, show_changes, show_schema
from paimon_sink.cli.terminal import Terminal
from paimon_sink.core.errors import OptionError
from paimon_sink.core.evolve_requests import AddRequest, CommentRequest, Request, WidenRequest
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.type_text import parse_column, parse_path, split_name
from paimon_sink.formats.registry import open_table, open_to_rewrite
from paimon_sink.maintain.schema import change_schema, planned_changes, read_schema

__all__ = ["schema_command"]


@click.command("schema")
@options_argument
@click.option("--add", "added", multiple=True, metavar="'NAME TYPE'",
              help="Add a nullable column, or with dots a field inside one; may be repeated.")  # fmt: skip
@click.option("--widen", "widened", multiple=True, metavar="'NAME TYPE'",
              help="Let a column take more values, such as bigint after int; may be repeated.")  # fmt: skip
@click.option("--comment", "comments", multiple=True, metavar="'NAME TEXT'",
              help="Say what a column is; may be repeated.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Do it. Without it, nothing is changed.")
@json_flag
def schema_command(
    *,
    options: dict[str, str],
    added: tuple[str, ...],
    widened: tuple[str, ...],
    comments: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> None:
    """Show the columns of a table and what they were before; add, widen or comment one with --yes.

    Names inside of structs are written with dots, those inside of arrays and maps with element and value:
    lines.element.price. Types are Spark's. What is asked for follows the rules of mergeSchema: nothing is narrowed,
    dropped or made not null, and what is there already needs nothing.
    """
    requests = _requests(added, widened, comments)
    if yes and not requests:
        raise click.UsageError("--yes does what --add, --widen and --comment ask for; give one of them.")
    named = _table_options(options)
    if not requests:
        report = read_schema(_opened(named, to_change=False))
        if as_json:
            echo_json(schema_json(report))
        else:
            show_schema(Terminal(highlight=False), report)
        return
    table = _opened(named, to_change=True)
    changes = planned_changes(table, requests)
    if yes and changes:
        change_schema(table, requests, reopen=lambda: open_to_rewrite(named, compression=None))
    if as_json:
        echo_json(change_json(table.label, changes, dry_run=not yes))
    else:
        show_changes(Terminal(highlight=False), table.label, changes, dry_run=not yes)


def _table_options(options: dict[str, str]) -> TableOptions:
    return parsed(options).table


def _opened(named: TableOptions, *, to_change: bool) -> Any:
    try:
        return open_to_rewrite(named, compression=None) if to_change else open_table(named)
    except OptionError as error:
        raise click.UsageError(str(error)) from error


def _requests(added: tuple[str, ...], widened: tuple[str, ...], comments: tuple[str, ...]) -> list[Request]:
    try:
        return [
            *(AddRequest(*parse_column(text)) for text in added),
            *(WidenRequest(*parse_column(text)) for text in widened),
            *map(_comment, comments),
        ]
    except OptionError as error:
        raise click.UsageError(str(error)) from error


def _comment(text: str) -> CommentRequest:
    name, comment = split_name(text)
    if not comment:
        raise OptionError(f"{text!r} has no text. Write a name and then what to say about it.")
    return CommentRequest(parse_path(name), comment)
