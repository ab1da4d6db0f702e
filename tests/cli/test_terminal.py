"""Nothing that stands in a table moves a terminal, whichever command prints it."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.table import Table as Grid
from rich.text import Text

import paimon_sink.cli
from paimon_sink.cli.main import cli
from paimon_sink.cli.printable import printable, printable_lines
from paimon_sink.cli.terminal import Terminal
from tests.support.ages import Ages
from tests.support.command_line import named
from tests.support.engines import other_engine
from tests.support.lake import Lake, rows

HOSTILE = "\x9b31m\u202egpj\u2066.\x1b]0;owned\x07\u200b\u2028line\nof its own"
"""A colour and a title by C1 and C0, right-to-left marks, a blank of no width, and two kinds of line breaks."""
COMMANDS = {
    "verify": ["verify"],
    "clean": ["clean"],
    "expire": ["expire", "--keep-last", "1", "--dry-run"],
    "history": ["history"],
    "watch": ["watch", "--once"],
    "compact": ["compact", "--dry-run"],
}


def pwc(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "200"})


def odd_characters(text: str) -> set[str]:
    return {character for character in text if not character.isprintable()} - {"\n"}


@pytest.fixture
def hostile_lake(local_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Hostile names wherever a table has names: of users, partitions, tags and of files that nothing names."""
    lake = local_lake.with_options(partitionBy="day")
    lake.append(0, rows(0, day=HOSTILE))
    for number in range(2):
        other_engine(lake).append(rows(number), commit_user=HOSTILE)
    lake.append(1, rows(1, day=HOSTILE))
    table = lake.open()
    for name in (f"bucket-0/{HOSTILE}.parquet", f"{HOSTILE}.txt", f"tag/tag-{HOSTILE}"):
        body = Path(table.location, "snapshot", "snapshot-1").read_bytes() if name.startswith("tag") else b"x"
        table.store.write(table.store.join(table.location, name), body)
    ages = Ages()
    ages.grow_old(lake)
    ages.install(monkeypatch)
    return lake


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_what_stands_in_a_table_is_printed_without_what_a_terminal_acts_upon(
    hostile_lake: Lake, command: list[str]
) -> None:
    result = pwc(*command, *named(hostile_lake))

    assert "\N{REPLACEMENT CHARACTER}31m\N{REPLACEMENT CHARACTER}gpj" in result.output
    assert odd_characters(result.output) == set()
    assert not any(line.startswith("of its own") for line in result.output.splitlines())


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_for_machines_it_is_exact_and_moves_no_terminal_either(hostile_lake: Lake, command: list[str]) -> None:
    result = pwc(*command, "--json", *named(hostile_lake))

    assert result.stdout.isascii()
    assert odd_characters(result.stdout) == set()
    assert repr(HOSTILE)[1:-1] in str(json.loads(result.stdout))


def test_an_error_and_bad_usage_that_quote_a_name_of_the_table_move_nothing(hostile_lake: Lake) -> None:
    near = HOSTILE.replace("gpj", "gp")

    usage = pwc("history", "--user", near, *named(hostile_lake))
    missing = pwc("history", f"{hostile_lake.options['warehouse']}/sales.db/\u202egpj")

    assert (usage.exit_code, missing.exit_code) == (2, 1)
    assert "Is it \N{REPLACEMENT CHARACTER}31m" in usage.output
    assert odd_characters(usage.output + missing.output) == set()


def test_every_command_prints_through_the_same_door() -> None:
    """By rich's own class, nobody would be kept from printing raw."""
    root = Path(paimon_sink.cli.__path__[0])
    sources = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}

    raw = r"\bConsole\(|(?<![.\w])print\(|sys\.std(out|err)"
    assert {name for name, source in sources.items() if re.search(raw, source)} == set()
    assert "class Terminal(Console)" in sources["terminal.py"]


def test_text_keeps_its_styles_its_lines_and_its_letters() -> None:
    out = StringIO()
    terminal = Terminal(file=out, force_terminal=True, color_system="standard", highlight=False)

    terminal.print(Text("ends\x9b ", style="red").append("here", style="bold"))
    terminal.print(Text("żółw\u202e 亀 אב"))
    grid = Grid(box=None)
    grid.add_row("a cell that is no Text\x9b")
    terminal.print(grid)

    assert "\x1b[31mends\N{REPLACEMENT CHARACTER} \x1b[0m" in out.getvalue()
    assert "żółw\N{REPLACEMENT CHARACTER} 亀 אב\n" in out.getvalue()
    assert "\x9b" not in out.getvalue()
    assert printable("half \udc9b") == "half \N{REPLACEMENT CHARACTER}"
    assert printable_lines("two problems:\n  1. \x85") == "two problems:\n  1. \N{REPLACEMENT CHARACTER}"
