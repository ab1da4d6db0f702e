"""A command imports what it needs when it is run: the list of commands and the version are there at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import paimon_sink
from paimon_sink.cli.main import LazyCommand, cli

ROOT = Path(paimon_sink.__path__[0])
HEAVY = {"pyspark", "pyarrow", "pypaimon", "pyiceberg", "fsspec", "rich", "numpy", "pandas"}
LIBRARIES_AFTER = """
import json, sys

out = sys.argv.pop(1)
try:
    {code}
finally:
    with open(out, "w") as file:
        json.dump(sorted(set(name.partition(".")[0] for name in sys.modules)), file)
"""
RUNS_THE_COMMAND = "from paimon_sink.cli.main import main; main()"


def libraries_after(code: str, directory: Path, *arguments: str) -> set[str]:
    """What a fresh process has imported once the code is through, or has ended it well."""
    script, out = directory / "script.py", directory / "libraries.json"
    script.write_text(LIBRARIES_AFTER.format(code=code))
    command = [sys.executable, str(script), str(out), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return set(json.loads(out.read_text()))


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["-h"], []], ids=" ".join)
def test_the_version_and_the_list_of_commands_need_no_library_but_click(tmp_path: Path, arguments: list[str]) -> None:
    ends_well = f"try:\n        {RUNS_THE_COMMAND}\n    except SystemExit:\n        pass"

    libraries = libraries_after(ends_well, tmp_path, *arguments)

    assert "click" in libraries
    assert libraries & HEAVY == set()


def test_what_is_written_for_machines_and_for_browsers_needs_nothing_to_print_with(tmp_path: Path) -> None:
    code = "import paimon_sink.cli.history.as_json, paimon_sink.cli.report.page, paimon_sink.cli.watch.state"

    assert "rich" not in libraries_after(code, tmp_path)


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_no_command_needs_pyspark_before_it_starts_spark(tmp_path: Path, name: str) -> None:
    libraries = libraries_after(RUNS_THE_COMMAND, tmp_path, name, "--help")

    assert "pyspark" not in libraries


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_the_list_of_commands_says_what_the_command_itself_says(name: str) -> None:
    listed = cli.commands[name]
    assert isinstance(listed, LazyCommand)

    command = listed.load()

    assert command.name == name
    first_paragraph = str(command.help).split("\n\n", maxsplit=1)[0].replace("\n", " ")
    assert first_paragraph.startswith(str(listed.help))
