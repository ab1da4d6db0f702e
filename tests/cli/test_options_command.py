"""The ``pwc`` command and ``pwc options``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from paimon_sink.cli.main import cli, main
from paimon_sink.core.errors import OptionError
from paimon_sink.core.option_docs import describe_options, render_markdown

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def pwc(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "80"})


def test_the_options_page_is_what_the_declarations_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_markdown(), "run: pwc options --markdown > docs/options.md"


def test_options_for_people_names_every_option_in_80_columns() -> None:
    result = pwc("options")

    assert result.exit_code == 0
    first_words = [line.split()[0] for line in result.stdout.splitlines() if line[:1].strip()]
    assert first_words == ["option", *(option.key for option in describe_options())]
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert "\x1b" not in result.stdout


def test_options_for_machines_is_a_json_list() -> None:
    result = pwc("options", "--json")

    assert result.exit_code == 0
    listed = {entry["key"]: entry for entry in json.loads(result.stdout)}
    assert list(listed) == [option.key for option in describe_options()]
    assert listed["s3.secret-access-key"]["secret"] is True
    assert listed["targetFileSize"]["default"] == "128mb"
    assert listed["commitIdentifier"]["used_by"] == ["batch"]


def test_options_as_markdown_is_the_page() -> None:
    assert pwc("options", "--markdown").stdout == render_markdown()


def test_two_forms_at_once_is_bad_usage() -> None:
    result = pwc("options", "--json", "--markdown")

    assert result.exit_code == 2
    assert "not both" in result.stderr


def test_an_unknown_command_is_bad_usage() -> None:
    assert pwc("optoins").exit_code == 2


def test_help_and_version_read_well() -> None:
    assert "options" in pwc("--help").stdout
    assert pwc("--version").stdout.startswith("pwc ")


def test_our_own_error_is_a_sentence_on_stderr_and_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("fail")
    def fail() -> None:
        raise OptionError("table is missing; give it.")

    monkeypatch.setitem(cli.commands, "fail", fail)

    result = pwc("fail")

    assert result.exit_code == 1
    assert result.stderr == "table is missing; give it.\n"
    assert result.stdout == ""


def test_main_is_the_entry_point(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["pwc", "options", "--json"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)
