"""What MkDocs does not find below docs/: pages of other directories, pages made from the code, and links to both.

A hook of mkdocs.yml. Links to what is no page (sources, workflows) become plain text: the site is not the repository.
"""

from __future__ import annotations

import html
import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import TYPE_CHECKING, Any

import click

from paimon_sink.cli.main import LazyCommand, cli

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```.*?^```[^\S\n]*$)", re.DOTALL | re.MULTILINE)

ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "recipes.md",
}
"""Pages of the repository that are pages of the site, under another name."""
PICTURES = "benchmarks/results"


# ---------------------------------------------------------------- what MkDocs calls


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for path, name in ELSEWHERE.items():
        if (ROOT / path).exists():
            text = (ROOT / path).read_text(encoding="utf-8")
            made = with_recipes(text) if name == "recipes.md" else text
            files.append(File.generated(config, name, content=for_site(made, at=path)))
    files.append(File.generated(config, "cli.md", content=command_line()))
    for picture in sorted((ROOT / PICTURES).glob("*.png")):
        files.append(File.generated(config, f"{PICTURES}/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = page.file.src_uri
    return markdown if source in ELSEWHERE.values() else for_site(markdown, at=f"docs/{source}")


# ---------------------------------------------------------------- links


def for_site(text: str, *, at: str) -> str:
    """The text of a file of the repository, with its links as they are on the site. ``at``: where the file is."""
    here = PurePosixPath(ELSEWHERE.get(at, at.removeprefix("docs/"))).parent

    def link(found: re.Match[str]) -> str:
        sign, label, target, anchor = found.group(1), found.group(2), found.group(3), found.group(4) or ""
        if re.match(r"[a-z]+:", target):
            return found.group(0)
        path = normpath(str(PurePosixPath(at).parent / target))
        page = ELSEWHERE.get(path) or (path.removeprefix("docs/") if path.startswith(("docs/", PICTURES)) else None)
        if page is None or not (ROOT / path).is_file():
            return label
        return f"{sign}[{label}]({relpath(page, str(here))}{anchor})"

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


# ---------------------------------------------------------------- pages made from the code


def with_recipes(text: str) -> str:
    """The page of recipes, with each of them below."""
    parts = [text]
    for script in sorted((ROOT / "examples").glob("*.py")):
        code = script.read_text(encoding="utf-8")
        parts.append(f"\n## {script.name}\n\n```python\n{code.rstrip()}\n```\n")
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        parts.append(f"\n## {notebook.name}\n\n{''.join(_cells(json.loads(notebook.read_text(encoding='utf-8'))))}")
    return "".join(parts)


def _cells(notebook: dict[str, Any]) -> Iterator[str]:
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            yield f"```python\n{text}\n```\n\n"
        else:
            yield re.sub(r"^# .*\n+", "", text) + "\n\n"


def command_line() -> str:
    """Every command with its arguments and options, as ``--help`` has them."""
    parts = [
        "# Command line\n\n",
        f"{inspect.getdoc(cli.callback) or ''} TABLE is a location, or `--warehouse W --table d.t`; `--option k=v` "
        "gives an [option](options.md) and may be repeated. `--json` is for machines. Exit status: 0 good, 1 found "
        "something wrong, 2 bad usage.\n",
    ]
    for name in sorted(cli.commands):
        listed = cli.commands[name]
        command = listed.load() if isinstance(listed, LazyCommand) else listed
        parts.append(_command(name, command))
    return "".join(parts)


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"pwc {name}")
    usage = command.get_usage(context).removeprefix("Usage: ")
    said = inspect.cleandoc(command.help or "").replace("\b\n", "")
    options = [record for record in (each.get_help_record(context) for each in command.params) if record]
    rows = "".join(f"| `{_cell(option)}` | {_cell(text, escape=html.escape)} |\n" for option, text in options)
    table = f"\n| option | meaning |\n|---|---|\n{rows}" if rows else ""
    return f"\n## pwc {name}\n\n```\n{' '.join(usage.split())}\n```\n\n{html.escape(said, quote=False)}\n{table}"


def _cell(text: str, *, escape: Callable[[str], str] = str) -> str:
    return " ".join(escape(text).split()).replace("|", r"\|")
