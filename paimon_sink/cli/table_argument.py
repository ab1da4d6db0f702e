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

__all__ = ["table_argument"]


def table_argument(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the open table as ``table``. Options that make no sense are bad usage."""

    @click.argument("location", metavar="[TABLE]", required=False)
    @click.option("--warehouse", help="Where tables live; with --table, instead of TABLE.")
    @click.option("--table", "name", metavar="DATABASE.TABLE", help="The table in the warehouse.")
    @click.option("--option", "pairs", metavar="KEY=VALUE", multiple=True,
                  help='Any option of format("pwc"), such as s3.endpoint=…; may be repeated.')  # fmt: skip
    @wraps(command)
    def with_table(
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
        command(table=_open(options), **arguments)

    return with_table


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.UsageError(f"--option takes KEY=VALUE, not {key!r}.")
    return key, value


def _open(options: dict[str, str]) -> Table:
    try:
        return open_table(SinkOptions.parse(options, purpose=Purpose.READ))
    except OptionError as error:
        raise click.UsageError(str(error)) from error
