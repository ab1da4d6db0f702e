"""Arguments that several commands share: the table, ``--json``, durations and commit users. Nonsense is bad usage."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from paimon_sink.core.errors import OptionError
from paimon_sink.core.names import nearest_name
from paimon_sink.core.options import Options, Purpose
from paimon_sink.core.units import parse_duration_ms
from paimon_sink.formats.contract import Table
from paimon_sink.formats.registry import open_table, parse_options
from paimon_sink.maintain.reading import Reading

__all__ = [
    "branch_option", "check_user", "duration_ms", "echo_json", "json_flag", "open_named", "options_argument", "parsed",
    "table_and_name", "table_argument", "usage_errors",
]  # fmt: skip

_LONGEST_MS = 100 * 365 * 24 * 3600 * 1000

# ---------------------------------------------------------------- the table and its options


def table_argument(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the open table as ``table``."""

    @options_argument
    @wraps(command)
    def with_table(*, options: dict[str, str], **arguments: Any) -> None:
        command(table=open_named(options), **arguments)

    return with_table


def table_and_name(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the open table as ``table``, and what is named after it, if anything, as ``name``."""

    @options_argument
    @click.argument("ref", metavar="[NAME]", required=False)
    @wraps(command)
    def with_table(*, options: dict[str, str], ref: str | None, **arguments: Any) -> None:
        if ref is None and options.keys() >= {"path", "warehouse"}:
            # The table has a name already: what looks like its location is the other one.
            ref = options.pop("path")
        command(table=open_named(options), name=ref, **arguments)

    return with_table


def branch_option(command: Callable[..., None]) -> Callable[..., None]:
    """``--branch``, short for ``--option branch=…``. To stand above :func:`table_argument`."""

    @click.option("--branch", metavar="NAME", help="Of this branch, where the format has branches.")
    @wraps(command)
    def with_branch(*, branch: str | None, pairs: tuple[str, ...], **arguments: Any) -> None:
        command(pairs=pairs if branch is None else (*pairs, f"branch={branch}"), **arguments)

    return with_branch


@contextmanager
def usage_errors() -> Iterator[None]:
    """What is asked for cannot be: that is bad usage."""
    try:
        yield
    except OptionError as error:
        raise click.UsageError(str(error)) from error


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


def parsed(options: dict[str, str]) -> Options:
    """The options, checked."""
    try:
        return parse_options(options, purpose=Purpose.READ)
    except OptionError as error:
        raise click.UsageError(str(error)) from error


def open_named(options: dict[str, str]) -> Table:
    """The table that the options name."""
    try:
        return open_table(parsed(options).table)
    except OptionError as error:
        raise click.UsageError(str(error)) from error


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.UsageError(f"--option takes KEY=VALUE, not {key!r}.")
    return key, value


# ---------------------------------------------------------------- for machines

json_flag = click.option("--json", "as_json", is_flag=True, help="For machines: a JSON object, and nothing else.")


def echo_json(body: object) -> None:
    """What a command prints with ``--json``: ASCII, so that names of the table move no terminal either."""
    click.echo(json.dumps(body, indent=2))


# ---------------------------------------------------------------- values


def duration_ms(flag: str, text: str) -> int:
    """A duration, spelled as in options."""
    milliseconds = parse_duration_ms(text)
    if milliseconds is None or milliseconds > _LONGEST_MS:
        raise click.UsageError(f"{flag} takes a duration with its unit, such as 30d, 12h, 15m or 90s, not {text!r}.")
    return milliseconds


def check_user(user: str | None, reading: Reading, table: Table) -> None:
    """``--user`` is a name that somebody wrote under. A typo is bad usage, not an empty answer."""
    users = {snapshot.commit_user for snapshot in reading.snapshots} | reading.ledger.keys()
    if user is not None and user not in users:
        nearest = nearest_name(user, [name for name in users if name is not None])
        hint = f" Is it {nearest}?" if nearest else ""
        raise click.UsageError(f"Nobody wrote to {table.label} as {user!r}.{hint}")
