"""The table a command works on: ``TABLE``, or ``--warehouse`` and ``--table``, and options as the sink takes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from paimon_sink.core.errors import OptionError
from paimon_sink.core.options import Purpose, SinkOptions
from paimon_sink.formats.base import Table
from paimon_sink.formats.registry import open_table

__all__ = ["open_named", "options_argument", "parsed", "table_argument"]


def table_argument(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the open table as ``table``. Options that make no sense are bad usage."""

    @options_argument
    @wraps(command)
    def with_table(*, options: dict[str, str], **arguments: Any) -> None:
        command(table=open_named(options), **arguments)

    return with_table


def options_argument(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that name the table, and all others, as ``options``: text, not looked at yet."""

    @click.argument("location", metavar="[TABLE]", required=False)
    @click.option("--warehouse", help="Where tables live; with --table, instead of TABLE.")
    @click.option("--table", "name", metavar="DATABASE.TABLE", help="The table in the warehouse.")
    @click.option("--option", "pairs", metavar="KEY=VALUE", multiple=True,
                  help='Any option of format("pwc"), such as s3.endpoint=…; may be repeated.')  # fmt: skip
    @wraps(command)
    def with_options(
        *, location: str | None, warehouse: str | None, name: str | None, pairs: tuple[str, ...], **arguments: Any
    ) -> None:
        options = dict(map(_pair, pairs))
        options |= {
            key: value
            for key, value in (("path", location), ("warehouse", warehouse), ("table", name))
            if value is not None
        }
        if not options.keys() & {"path", "warehouse"}:
            raise click.UsageError("Name the table: its location, or --warehouse and --table.")
        command(options=options, **arguments)

    return with_options


def parsed(options: dict[str, str]) -> SinkOptions:
    """The options, checked. Those that make no sense are bad usage."""
    try:
        return SinkOptions.parse(options, purpose=Purpose.READ)
    except OptionError as error:
        raise click.UsageError(str(error)) from error


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.UsageError(f"--option takes KEY=VALUE, not {key!r}.")
    return key, value


def open_named(options: dict[str, str]) -> Table:
    """The table that the options name."""
    try:
        return open_table(parsed(options))
    except OptionError as error:
        raise click.UsageError(str(error)) from error
