"""Switch protections off one by one and see that a test notices: ``make mutants``.

Each mutant of ``tests/mutants/catalogue.py`` is made in a copy of the package and its tests; the tree itself is never
touched. A mutant is killed when one of its tests fails by an assertion or by an error of this package. One that breaks
the code instead (it cannot be imported, a name is missing) proves nothing and counts as a failure of the catalogue.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from paimon_sink.core import errors
from tests.mutants.catalogue import MUTANTS, ROOT, Mutant

AT_ONCE = 2
TIMEOUT_S = 300
UNCHANGED_TIMEOUT_S = 1200
KILLERS = {"AssertionError", "Failed", "FileNotFoundError", *errors.__all__}
"""``Failed`` is pytest's own, for an error that was expected and did not come."""

WITNESS = """
import json, os, sys
import paimon_sink

HERE = os.path.dirname(os.path.abspath(__file__))
FAILURES = []

def pytest_configure(config):
    if not os.path.abspath(paimon_sink.__file__).startswith(HERE + os.sep):
        raise SystemExit(f"not the copy: {paimon_sink.__file__}")

def pytest_exception_interact(node, call, report):
    FAILURES.append([node.nodeid, getattr(report, "when", "collect"), call.excinfo.type.__name__])

def pytest_sessionfinish(session, exitstatus):
    with open(os.path.join(HERE, "witness.json"), "w") as file:
        json.dump({"tests": session.testscollected, "failures": FAILURES}, file)
"""


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant. ``verdict`` is killed, SURVIVED or BROKEN."""

    name: str
    protection: str
    tests: tuple[str, ...]
    verdict: str
    by: str

    @property
    def is_killed(self) -> bool:
        return self.verdict == "killed"


@dataclass(frozen=True)
class Run:
    """One run of tests in a copy."""

    code: int
    tests: int
    failures: tuple[tuple[str, str, str], ...]
    """(node id, setup or call or teardown or collect, type of the exception)"""
    output: str


@contextmanager
def copied() -> Iterator[Path]:
    """The package and its tests in a directory of their own, with the plugin that says what was run there."""
    with tempfile.TemporaryDirectory(prefix="pwc-mutant-", ignore_cleanup_errors=True) as directory:
        copy = Path(directory)
        for name in ("paimon_sink", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        (copy / "mutant_witness.py").write_text(WITNESS, encoding="utf-8")
        yield copy


def run_tests(copy: Path, tests: Sequence[str], *, stop_at_first: bool, timeout_s: int = TIMEOUT_S) -> Run:
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "mutant_witness", "-m", "not s3 and not spark and not long"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *(["-x"] if stop_at_first else []), *arguments, *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    found = copy / "witness.json"
    if not found.exists():
        return Run(done.returncode, 0, (), done.stdout)
    witness = json.loads(found.read_text(encoding="utf-8"))
    failures = tuple((node, when, kind) for node, when, kind in witness["failures"])
    return Run(done.returncode, int(witness["tests"]), failures, done.stdout)


def judge(mutant: Mutant) -> Outcome:
    def outcome(verdict: str, by: str) -> Outcome:
        return Outcome(mutant.name, mutant.protection, mutant.tests, verdict, by)

    with copied() as copy:
        changed = copy / mutant.file
        try:
            changed.write_text(mutant.mutated(changed.read_text(encoding="utf-8")), encoding="utf-8")
            run = run_tests(copy, mutant.tests, stop_at_first=True)
        except ValueError as error:
            return outcome("BROKEN", str(error))
        except subprocess.TimeoutExpired:
            return outcome("BROKEN", f"its tests did not end in {TIMEOUT_S} s")
    if run.code == 0:
        return outcome("SURVIVED", f"{run.tests} tests passed")
    killers = [(node, kind) for node, when, kind in run.failures if when == "call" and kind in KILLERS]
    if run.code == 1 and killers:
        node, kind = killers[0]
        return outcome("killed", f"{node.partition('::')[2]} ({kind})")
    why = "; ".join(f"{node} {when}: {kind}" for node, when, kind in run.failures)
    return outcome("BROKEN", why or f"pytest ended with {run.code}: {run.output[-300:].strip()}")


def check_unchanged(mutants: Sequence[Mutant]) -> str | None:
    """What is wrong with the tests when nothing is changed, or None. A red test there would kill every mutant."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with copied() as copy:
        run = run_tests(copy, tests, stop_at_first=False, timeout_s=UNCHANGED_TIMEOUT_S)
    if run.code == 0 and run.tests >= len(tests):
        return None
    return f"Without any change, {run.tests} tests ended with code {run.code}:\n{run.output[-3000:]}"


def run_all(mutants: Sequence[Mutant], console: Console) -> list[Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task("Switching protections off", total=len(mutants))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            running = [pool.submit(judge, mutant) for mutant in mutants]
            for _ in as_completed(running):
                progress.advance(bar)
    return [done.result() for done in running]


def show(outcomes: Sequence[Outcome], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, title="What happens when a protection is switched off")
    for heading in ("mutant", "protection", "killed by"):
        table.add_column(heading, overflow="fold")
    for found in outcomes:
        by = escape(found.by) if found.is_killed else f"[bold red]{found.verdict}[/]: {escape(found.by)}"
        table.add_row(found.name, found.protection, by)
    console.print(table)
    killed = sum(found.is_killed for found in outcomes)
    console.print(f"{killed} of {len(outcomes)} protections are held by a test.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="run this mutant; may be given again")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    arguments = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not arguments.only or mutant.name in arguments.only]
    unknown = set(arguments.only or ()) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no mutant is called {', '.join(sorted(unknown))}")
    console = Console(stderr=arguments.json, width=None if sys.stdout.isatty() else 160)
    problem = check_unchanged(chosen)
    if problem is not None:
        console.print(problem, markup=False)
        return 1
    outcomes = run_all(chosen, console)
    if arguments.json:
        print(json.dumps([asdict(found) for found in outcomes], indent=2))
    else:
        show(outcomes, console)
    return 0 if all(found.is_killed for found in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
