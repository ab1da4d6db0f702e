"""Write tests/compat/public_interface.txt: all that users type or read by name, one thing a line.

python scripts/public_interface.py              adds what is new, and stops where a line would go
python scripts/public_interface.py --take-out   also takes lines out: see docs/compatibility.md for what that needs
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from paimon_sink.cli.main import LazyCommand, cli
from paimon_sink.core import properties
from paimon_sink.core.option_docs import describe_options
from paimon_sink.formats.registry import FORMATS
from paimon_sink.listen.loading import BUILT_IN

FILE = Path(__file__).parent.parent / "tests" / "compat" / "public_interface.txt"
_DOORS = ("paimon_sink", "paimon_sink.errors", "paimon_sink.listeners")


def lines() -> list[str]:
    """The interface as the code has it."""
    return sorted({*_python(), *_options(), *_commands(), *_names()})


def gone(stored: list[str], now: list[str]) -> list[str]:
    return [line for line in stored if line not in now]


def _python() -> Iterator[str]:
    for door in _DOORS:
        module = importlib.import_module(door)
        for name in module.__all__ if hasattr(module, "__all__") else _public(module):
            yield from _of(f"{door}.{name}", getattr(module, name))


def _public(module: object) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_") and callable(getattr(module, name))]


def _of(path: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base.__module__.startswith("paimon_sink"))
        yield f"class {path}({bases})"
    elif callable(value):
        for parameter in inspect.signature(value).parameters.values():
            # Annotations may become wider; names, kinds and defaults may not change.
            default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
            yield f"function {path}: {parameter.kind.description} {parameter.name}{default}"


def _options() -> Iterator[str]:
    for option in describe_options():
        default = option.default or ""
        yield f"option {option.key} [{default}]" if default else f"option {option.key}"


def _commands() -> Iterator[str]:
    for name, listed in cli.commands.items():
        command = listed.load() if isinstance(listed, LazyCommand) else listed
        yield f"command pwc {name}"
        for parameter in command.params:
            spelt = " ".join(parameter.opts + parameter.secondary_opts)
            yield f"command pwc {name}: {'argument' if isinstance(parameter, click.Argument) else 'option'} {spelt}"


def _names() -> Iterator[str]:
    yield from (f"snapshot property {getattr(properties, name)}" for name in properties.__all__)
    yield from (f"tableFormat {name}" for name in FORMATS if re.fullmatch("paimon|iceberg", name))
    yield from (f"listener {name}" for name in BUILT_IN)


def main() -> int:
    stored = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    now = lines()
    lost = gone(stored, now)
    if lost and "--take-out" not in sys.argv[1:]:
        print("These are part of the public interface, and gone:", *lost, sep="\n  ", file=sys.stderr)
        print("Keep them, or see docs/compatibility.md and add --take-out.", file=sys.stderr)
        return 1
    FILE.write_text("".join(f"{line}\n" for line in now), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
