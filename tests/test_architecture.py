"""The rooms of the design, and the directions between them, read off the import statements."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "paimon_sink"
ROOT = Path(__file__).parent.parent / PACKAGE
LONGEST_MODULE = 500
PROPERTY = re.compile(r"pwc\.[a-z.-]*")
FORMATS = frozenset({"paimon", "iceberg", "delta"})

# What each room may import of this package. A room may always import itself. "" is the package's own front door:
# `paimon_sink/__init__.py`, `paimon_sink/errors.py`
# and `paimon_sink/listeners.py`.
ROOMS: dict[str, set[str]] = {
    "core": set(),
    "storage": {"core"},
    "formats": {"storage", "core"},
    "formats.paimon": {"formats", "storage", "core"},
    "formats.iceberg": {"formats", "storage", "core"},
    "formats.memory": {"formats", "storage", "core"},
    "write": {"formats", "storage", "core"},
    "commit": {"formats", "core"},
    "read": {"formats", "core"},
    # A stream reads what a batch reads, a piece at a time.
    "follow": {"read", "formats", "core"},
    # A compaction is a write and a commit: it uses the same tasks and the same coordinator as everybody.
    "maintain": {"write", "commit", "read", "formats", "storage", "core"},
    "listen": {"formats", "storage", "core"},
    # One stream into many tables: it writes and commits as everybody does, into each of them.
    "route": {"write", "commit", "maintain", "formats", "storage", "core"},
    # The composition of a writer from its options, for Spark and for whoever has none.
    "sink": {"route", "write", "commit", "maintain", "listen", "formats", "core"},
    "spark": {"sink", "route", "write", "commit", "read", "follow", "maintain", "listen", "formats", "storage", "core"},
    "cli": {"", "route", "write", "commit", "read", "maintain", "listen", "formats", "storage", "core"},
    # The contract suite, for whoever tests a format. No room may import it.
    "testing": {"sink", "commit", "formats", "storage", "core"},
    "": {"spark", "listen", "core"},
}

# Each library has its doors, and enters nowhere else. A door is a room, or one module of it.
DOORS: dict[str, set[str]] = {
    "pyarrow": {room for room in ROOMS if room},
    "fsspec": {"storage"},
    "s3fs": {"storage"},
    "botocore": {"storage"},
    "pypaimon": {"formats.paimon"},
    "fastavro": {"formats.paimon"},
    "pyiceberg": {"formats.iceberg"},
    "pyspark": {"spark", "cli.demo.query", "cli.maintain.session"},
    "click": {"cli"},
    "pytest": {"testing"},
    # What is written for machines and for browsers, and the list of commands, prints without it.
    "rich": {
        "cli.terminal",
        "cli.progress",
        "cli.columns",
        "cli.listeners",
        "cli.options",
        "cli.demo.show",
        "cli.history.show",
        "cli.schema.show",
        "cli.maintain",
        "cli.watch.frame",
        "cli.watch.live",
    },
}


def room_of(module: str) -> str:
    """The room a dotted name belongs to: ``paimon_sink.core.errors`` lives in ``core``."""
    return max((room for room in ROOMS if _is_in(_inside(module), room)), key=len)


def _inside(module: str) -> str:
    return module.removeprefix(PACKAGE).strip(".")


def _is_in(name: str, room: str) -> bool:
    return room in {"", name} or name.startswith(f"{room}.")


def imports_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every import, wherever it stands: lazy ones and those for type checkers count too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            # `from paimon_sink.formats import paimon` imports a room by its name, not a thing out of one.
            names = [f"{source}.{alias.name}" for alias in node.names]
            rooms = [name for name in names if name.removeprefix(f"{PACKAGE}.") in ROOMS]
            yield from ((node.lineno, name) for name in rooms)
            if node.level:
                yield node.lineno, "." * node.level + source
            elif len(rooms) < len(names):
                yield node.lineno, source


def import_complaints(module: str, tree: ast.Module) -> Iterator[str]:
    here = room_of(module)
    for line, name in imports_of(tree):
        library = name.split(".")[0]
        if name.startswith("."):
            yield f"{module}:{line} imports {name} by a relative name"
        elif library == PACKAGE:
            there = room_of(name)
            if there != here and there not in ROOMS[here] and not _opens_a_format(module, there):
                yield f"{module}:{line} imports {name}, but {here or PACKAGE} must not know {there or PACKAGE}"
        elif library not in sys.stdlib_module_names and not _has_door(library, module):
            yield f"{module}:{line} imports {name}, which has no door in {here or PACKAGE}"


def _has_door(library: str, module: str) -> bool:
    return any(door == room_of(module) or (door and _is_in(_inside(module), door)) for door in DOORS.get(library, ()))


def _opens_a_format(module: str, room: str) -> bool:
    """The registry of formats is where a format's name becomes its package, and the only such place."""
    return module in {f"{PACKAGE}.formats", f"{PACKAGE}.formats.registry"} and room.startswith("formats.")


def branch_complaints(module: str, tree: ast.Module) -> Iterator[str]:
    """Asking which format it is, by name, outside of the formats; or a list of names, to ask whether it is in there."""
    if room_of(module).startswith("formats"):
        return
    named: dict[int, ast.Constant] = {}  # one that is compared may stand in a list as well
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            asked = [node.value]
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            asked = [element for element in node.elts if isinstance(element, ast.Constant)]
        constants = (inner for part in asked for inner in ast.walk(part) if isinstance(inner, ast.Constant))
        named |= {id(constant): constant for constant in constants if constant.value in FORMATS}
    for constant in named.values():
        yield f"{module}:{constant.lineno} branches on the format {constant.value!r}: ask its capabilities instead"


def property_complaints(module: str, tree: ast.Module) -> Iterator[str]:
    """A snapshot property by its name: all of them are in one module, since they are on disk for good."""
    if module == f"{PACKAGE}.core.properties":
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and PROPERTY.fullmatch(node.value):
            yield f"{module}:{node.lineno} spells out {node.value!r}: take it from core/properties.py"


def store_complaints(module: str, tree: ast.Module) -> Iterator[str]:
    """A store reached through a value, in a room that may not import storage."""
    room = room_of(module)
    if "storage" in ROOMS[room] or room in ("storage", "core"):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "store":
            yield f"{module}:{node.lineno} reaches a store through .store: {room} must not know storage"


def front_door_complaints(module: str, tree: ast.Module) -> Iterator[str]:
    """The package importing Spark, or a room that does, before anybody touches it."""
    if module != PACKAGE:
        return
    lazy = {inner for node in ast.walk(tree) if _is_late(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in lazy:
            for line, name in imports_of(ast.Module(body=[node], type_ignores=[])):
                if name.startswith(f"{PACKAGE}."):
                    yield f"{module}:{line} imports {name} at once: the front door is lazy"


def _is_late(node: ast.AST) -> bool:
    is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    return is_for_types or isinstance(node, ast.FunctionDef)


def adapter_complaints(module: str, tree: ast.Module) -> Iterator[str]:
    """A public class of listeners' authors with the adapter itself as a field anybody may use."""
    if module != f"{PACKAGE}.listen.loading":
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "ListenerContext":
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and "Table" in _names_in(part.annotation):
                    yield f"{module}:{part.lineno} hands the adapter out: give listeners a ListenerTable"


def _names_in(node: ast.expr) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def length_complaints(module: str, source: str) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines > LONGEST_MODULE:
        yield f"{module} has {lines} lines, more than {LONGEST_MODULE}: split it"


def complaints(module: str, source: str) -> list[str]:
    tree = ast.parse(source)
    return [
        *import_complaints(module, tree),
        *branch_complaints(module, tree),
        *store_complaints(module, tree),
        *front_door_complaints(module, tree),
        *adapter_complaints(module, tree),
        *property_complaints(module, tree),
        *length_complaints(module, source),
    ]


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_a_module_keeps_to_its_room(path: Path) -> None:
    assert complaints(dotted(path), path.read_text()) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {dotted(path): set(_edges(path)) for path in modules()}

    assert _cycle(graph) == []


def _edges(path: Path) -> Iterator[str]:
    """The modules that one imports; `from a import b` imports the module a.b where there is one."""
    names = {dotted(module) for module in modules()}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in inner if name in names)
            if node.module in names and not all(name in names for name in inner):
                yield node.module


def _cycle(graph: dict[str, set[str]]) -> list[str]:
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_directory_of_the_package_is_a_room_of_the_design() -> None:
    directories = {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.glob("*.py"))}

    assert directories - set(ROOMS) == set()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        pytest.param("core.options", "import paimon_sink.storage.store", id="core looks up to storage"),
        pytest.param("storage.s3", "from paimon_sink.formats.contract import Table", id="storage looks up to formats"),
        pytest.param("commit.fold", "from paimon_sink.write.task import Task", id="commit looks sideways at write"),
        pytest.param("commit.fold", "from paimon_sink.storage.store import Store", id="commit reaches past formats"),
        pytest.param("commit.fold", "from paimon_sink.formats import paimon", id="commit names a format's package"),
        pytest.param("formats.contract", "import paimon_sink.formats.paimon.table", id="the contract knows a format"),
        pytest.param("formats.paimon.table", "import paimon_sink.formats.iceberg", id="a format knows another"),
        pytest.param("spark.source", "import paimon_sink.cli.main", id="spark looks sideways at cli"),
        pytest.param("core.clock", "import paimon_sink", id="core goes through the front door"),
        pytest.param("core.clock", "from . import errors", id="a relative import"),
        pytest.param("core.clock", "def late():\n    import numpy", id="a lazy import of an unknown library"),
        pytest.param("core.clock", "import fsspec", id="fsspec outside storage"),
        pytest.param("commit.fold", "from pypaimon.snapshot import Snapshot", id="pypaimon outside its format"),
        pytest.param("formats.contract", "import pypaimon", id="pypaimon in the contract"),
        pytest.param("formats.paimon.table", "import pyiceberg", id="pyiceberg in the other format"),
        pytest.param("cli.main", "from pyspark.sql import SparkSession", id="pyspark in cli outside its doors"),
        pytest.param("cli.main", "from rich.console import Console", id="rich in the list of commands"),
        pytest.param("cli.report.page", "from rich.text import Text", id="rich in a web page"),
        pytest.param("cli.demo.run", "from pyspark.sql import SparkSession", id="pyspark in the process that kills"),
        pytest.param("read.scan", "import click", id="click outside cli"),
        pytest.param("sink", "import pytest", id="pytest outside the suite for formats"),
        pytest.param("", "def late():\n    import paimon_sink.testing", id="the package imports what is for tests"),
        pytest.param(
            "write.task",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pyspark.sql import Row",
            id="an import for type checkers only",
        ),
        pytest.param("commit.fold", "if table_format == 'paimon':\n    pass", id="an if on the format"),
        pytest.param("spark.source", "ok = name in ('iceberg', 'x')", id="a membership test on the format"),
        pytest.param("core.options", "WITH_BRANCHES = ('iceberg',)", id="a list of formats to ask"),
        pytest.param("cli.main", "match name:\n    case 'paimon':\n        pass", id="a match on the format"),
        pytest.param("formats.iceberg.table", "said = {'pwc.commit-user': 'u'}", id="a property by its name"),
        pytest.param("maintain.history", "names = [f'pwc.{key}' for key in ('rows',)]", id="a property put together"),
        pytest.param("core.clock", "\n" * (LONGEST_MODULE + 1), id="a module that is too long"),
        pytest.param("commit.presence", "def f(table):\n    table.store.list('x')", id="commit lists through a value"),
        pytest.param("", "from paimon_sink.spark.source import PwcDataSource", id="the front door imports Spark"),
        pytest.param(
            "listen.loading", "class ListenerContext:\n    table: Table | None = None", id="listeners get the adapter"
        ),
    ],
)
def test_a_broken_rule_is_noticed(module: str, source: str) -> None:
    assert len(complaints(f"{PACKAGE}.{module}".rstrip("."), source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        pytest.param("", "def register(spark):\n    from paimon_sink.spark import source", id="the front door is lazy"),
        pytest.param("formats", "from paimon_sink.formats.paimon.table import PaimonFormat", id="the format registry"),
        pytest.param("cli.demo.query", "import paimon_sink\nfrom pyspark.sql import SparkSession", id="the demo"),
        pytest.param("core.options", "default = 'paimon'", id="naming a format without asking"),
        pytest.param("core.properties", "COMMIT_USER = 'pwc.commit-user'", id="the module of properties"),
        pytest.param("formats.paimon.table", "import pypaimon, fastavro, pyarrow", id="a format's own libraries"),
        pytest.param("testing.format_contract", "import pytest\nimport paimon_sink.sink", id="the suite for formats"),
    ],
)
def test_what_the_design_allows_passes(module: str, source: str) -> None:
    assert complaints(f"{PACKAGE}.{module}".rstrip("."), source) == []
