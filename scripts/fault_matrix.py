"""Writes docs/fault-matrix.md to stdout: which test covers which fault, in which place and at which tier.

It is read off the tests themselves. They are collected, none is run, so it needs neither Spark nor S3.
"""

from __future__ import annotations

import io
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.fault_marks import COVERING  # noqa: E402
from tests.support.places import PLACES, VARIABLE, Place, Tier, place_of, repeated, unmet_need  # noqa: E402

# ---------------------------------------------------------------- the faults

SECTIONS: dict[str, dict[int, str]] = {
    "Replays and restarts": {
        1: "A batch is in, and Spark's commit log entry for it is lost: append, complete mode, partitioned.",
        2: "The driver is killed by SIGKILL at each named step of a commit, and after it.",
        3: "A task is killed at each named step of a write.",
        4: "The query is stopped while a commit runs; the commit process dies; abort runs or does not.",
        5: "A replay with another number of partitions than the first try.",
        6: "Empty batches, a long run of them, batches without a task.",
        7: "Two deaths in a row at the same step; a hundred restarts at random steps.",
    },
    "Identity": {
        8: "A new checkpoint under the same commit user.",
        9: "Two live queries share a commit user; two queries with their own users write one table.",
        10: "A checkpoint restored from a backup: older batches come again.",
        11: "The last snapshot of this user was expired, by us or by another writer.",
        12: "A batch job is run again, with the same identifier or a smaller one.",
        13: "A batch write, a rollback or a compaction by another engine, under our user or its own.",
    },
    "Races": {
        14: "Many coordinators with their own users on one table.",
        15: "Two coordinators with the same user and batch, in any order.",
        16: "A zombie finishes its batch after its successor.",
        17: "Another append, overwrite or compaction lands between look and put.",
        18: "Two first commits on an empty table; two creations of the same table.",
        19: "Retries run out under contention.",
    },
    "Answers that lie": {
        20: "The put lands, and the answer is an error.",
        21: "The put lands, another snapshot lands on top, then we look.",
        22: "The put is reported failed and lands later.",
        23: "“Already exists”, caused by our own earlier try.",
        24: "Reading back fails too.",
        25: "A stale listing; a hint that is missing, stale or garbage.",
    },
    "Tasks": {
        26: "A task is retried or runs twice; both attempts finish.",
        27: "One task of many fails for good.",
        28: "An executor is killed in the middle of a batch, on a real cluster.",
        29: "Storage refuses for a while: errors, timeouts, throttling.",
        30: "The disk is full: on the executor, on the driver.",
    },
    "The table changes underneath": {
        31: "Dropped, or dropped and created again, between write and commit.",
        32: "The schema evolves between write and commit.",
        33: "The table is rolled back to before our last batch.",
        34: "Orphan cleaning and expiry while a batch is in flight.",
    },
    "Bad input": {
        35: "Every option: missing, empty, wrong, absurd, unknown, contradicting.",
        36: "Columns missing, extra, reordered, of another case or type, null where none may be.",
        37: "Names and partition values that are unusual or want to leave their directory.",
        38: "A corrupt snapshot, manifest list, manifest, ledger or schema.",
        39: "Commit messages of another version, or damaged.",
        40: "Secrets in logs, errors, plans, messages or snapshots.",
    },
    "Streams that follow a table": {
        41: "The first batch is logged, the driver dies, the table grows, the query restarts.",
        42: "The same where the stream begins with what comes.",
        43: "The driver is killed at each named step of a batch.",
        44: "A task is killed while it reads.",
        45: "A task runs twice at once.",
        46: "A batch is planned again for another parallelism or split size.",
        47: "A batch is planned again with other limits.",
        48: "The files of a logged batch were compacted before its replay.",
        49: "They were compacted and expired by us before the replay.",
        50: "They were expired by an engine that knows no hold.",
        51: "Expiry runs while a stream starts.",
        52: "The consumer is half written, missing, or someone else's.",
        53: "Two queries under one consumer.",
        54: "The consumer of a dead query, and of a silent one.",
        55: "The table is rolled back below, at or above the stream, and grows again with the same numbers.",
        56: "The table is dropped and made anew.",
        57: "An overwrite or a delete comes.",
        58: "A column is added in the middle of a backlog.",
        59: "A long backlog with compactions in it.",
        60: "One file larger than every limit.",
        61: "Very many files in one snapshot.",
        62: "An empty table, an empty first snapshot, empty appends.",
        63: "The newest snapshot vanishes after its batch was logged.",
        64: "Storage fails at reads of the driver.",
        65: "A long idle time; many restarts beside writer, compaction and expiry.",
    },
    "Columns that a write adds": {
        66: "Writers add the same column at once, other ones, and one of another type.",
        67: "The answer to a change of columns is lost, or comes late.",
        68: "A stream gains a column at a restart, and is killed at each named step of planning and commit.",
        69: "Columns are added or widened under a batch in flight; queries with the old columns go on.",
    },
    "Deletes and replacements": {
        70: "Files of a delete are replaced by a compaction or an overwrite while it runs.",
        71: "Rows come while a delete runs.",
        72: "A delete is run again, or runs twice at once.",
        73: "The driver of a delete is killed at each named step; the answer to its put never comes.",
        74: "Old snapshots expire while a delete runs.",
        75: "Others commit while rows are replaced; two jobs replace the same rows.",
        76: "New rows outside of the condition that they are to replace, or for which it is null.",
        77: "A replacement is run again.",
        78: "A tag or a reader keeps rows that are to go for good.",
        79: "Such rows are in a file that nothing names, old or young.",
    },
    "Tables that are set back": {
        80: "A table is rolled back beside a commit, at each step of it.",
        81: "A rollback is killed at each of its steps, and run again.",
        82: "Two rollbacks at once; a rollback beside an expiry.",
        83: "A branch is published beside a commit to the table.",
        84: "A tag is set while an expiry is about to take its snapshot.",
    },
    "Quarantine": {
        85: "A replay judges otherwise than the first try: changed checks, limits, no quarantine, another one.",
        86: "The driver dies at each step between the table's put and the quarantine's.",
        87: "A zombie, a successor that takes over, and another table on one quarantine.",
        88: "More bad rows than may be; a failed check without a quarantine.",
        89: "The file of bad rows that a ledger names is missing or damaged.",
        90: "Cleaning beside rows that are owed; a quarantine that is dropped.",
        91: "The table is rolled back, with its quarantine or without it.",
        92: "The quarantine cannot be written to for a while.",
        93: "Quarantined rows are written again: twice, by two at once, dying in between.",
    },
    "One stream into many tables": {
        94: "The driver dies at each step from the manifest to the last table; a job does, with an identifier or none.",
        95: "A replay routes or judges otherwise than the first try, or has another number of tasks.",
        96: "The answer of a put is lost, of the home or of a table; it comes late; a zombie goes on.",
        97: "Two streams on one home; the home cannot be written to; a new checkpoint; a long silence.",
        98: "The manifest, or a file that it names, is gone or damaged; a message lies.",
        99: "Cleaning and expiry while tables lack the batch.",
        100: "A table is dropped, or dropped and made anew, before the put or before its delivery.",
        101: "A table refuses the batch; a task dies, breaks off or never reports; too many bad rows.",
        102: "Routes that are no table, or too many, or may not be chosen.",
        103: "The home is rolled back, with its tables or without them; a table is.",
    },
    "Tables that fail for a while": {
        104: "One of many tables refuses, for one batch and for several; a query that is not regional any more.",
        105: "Bounds of what is carried: in a row, age, bytes, share. The home refuses.",
        106: "A driver dies, a zombie folds otherwise, a delivery outlives its deadline, while a table is carried.",
        107: "Expiry, cleaning, a long silence, a dropped table, a rollback, while a table is carried.",
    },
}

_NO_TABLE = "decided before a table is opened: the place makes no difference"
_SPARK = "Spark runs the same writer whatever the place; it is run where a run is quickest"
_IN_THE_CATALOG = "the catalog knows the newest snapshot; nothing is listed and no hint is read"
_NO_SECRET = "a local disk needs no secret"
_ONE_STEP = "a rollback is one commit: it is done or not"
_NO_BRANCHES = "there are no branches that share commits"

REASONS: dict[tuple[int, str], str] = {
    (25, "memory-process"): "the newest snapshot is an object; nothing is listed and no hint is read",
    (25, "paimon-rest"): _IN_THE_CATALOG,
    (25, "iceberg-sqlite"): _IN_THE_CATALOG,
    (25, "iceberg-postgres"): _IN_THE_CATALOG,
    (25, "iceberg-rest"): _IN_THE_CATALOG,
    (28, "memory-process"): "executors are other processes, and cannot see a table in memory",
    (28, "paimon-local"): "an executor needs a real cluster",
    (28, "paimon-s3"): _SPARK,
    (28, "paimon-rest"): _SPARK,
    (28, "iceberg-sqlite"): _SPARK,
    (28, "iceberg-postgres"): _SPARK,
    (28, "iceberg-rest"): _SPARK,
    (35, "*"): _NO_TABLE,
    (36, "*"): "columns are compared with those of the open table by the same code in every place",
    (39, "*"): "messages are read, and compared with what they describe, by the same code in every place",
    (40, "memory-process"): "memory needs no secret",
    (40, "paimon-local"): _NO_SECRET,
    (40, "iceberg-sqlite"): _NO_SECRET,
    (81, "memory-process"): _ONE_STEP,
    (81, "paimon-rest"): "the catalog removes what goes, by one request",
    (81, "iceberg-sqlite"): _ONE_STEP,
    (81, "iceberg-postgres"): _ONE_STEP,
    (81, "iceberg-rest"): _ONE_STEP,
    (83, "memory-process"): _NO_BRANCHES,
    (83, "paimon-local"): _NO_BRANCHES,
    (83, "paimon-s3"): _NO_BRANCHES,
    (83, "paimon-rest"): _NO_BRANCHES,
    (84, "memory-process"): "both are done under one lock",
    (84, "paimon-rest"): "tags and snapshots are files there too, and the same code",
    (84, "iceberg-postgres"): "the client compares by the same code as on SQLite",
    (84, "iceberg-rest"): "its requests cannot ask for it: a tag set in that moment goes with its snapshot",
}
"""Why a fault has no test in a place, beside what tests themselves say that they need. ``*``: in any."""

REMARKS: dict[int, str] = {
    2: "“While listeners run” joins when there are commit listeners.",
    11: "Expiry by us joins with `pwc expire`; until then only other engines expire.",
    32: "A Paimon table cannot change its partition columns.",
    34: "Expiry and cleaning are another engine's here; our own commands join with `pwc expire` and `pwc clean`.",
}
"""What is left out, and what will join."""

STORES = {
    "process": "one process",
    "local": "local disk",
    "s3": "S3",
    "rest": "REST",
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
}
_WHOLE_MODULE_FROM = 6
CONTRACT = "tests/formats/test_contract.py"
"""Each test of it is a clause, which every place has to keep."""

# ---------------------------------------------------------------- what was collected


@dataclass
class Collected:
    """A pytest plugin: one line for each test function and place, and what was left out with the reason."""

    tests: dict[int, dict[tuple[str, str], set[str]]] = field(default_factory=lambda: defaultdict(dict))
    """Fault, then (file, test): the ids of the places it runs in. Empty for tests without a table."""
    witnesses: dict[int, dict[tuple[str, str], set[str]]] = field(default_factory=lambda: defaultdict(dict))
    """Of these, the places in which ``make test`` runs it."""
    clauses: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Tests of the contract, and the places in which ``make test`` runs them, or which lack what they need."""
    lacking: dict[tuple[int, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    modules: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    spark: set[tuple[str, str]] = field(default_factory=set)

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        for item in items:
            place, reason = place_of(item), unmet_need(item)
            if place is not None and reason is not None:
                self._kept_as_clause(item, place)
                for fault in faults_of(item):
                    self.lacking[fault, place.id].add(reason)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        repeating = repeated(session.items)
        repeating |= {item for item in session.items if item.get_closest_marker("long") is not None}
        for item in session.items:
            file, test = _name_of(item)
            place = place_of(item)
            self.modules[file].add(test)
            if item.get_closest_marker("spark"):
                self.spark.add((file, test))
            for fault in faults_of(item):
                everywhere = self.tests[fault].setdefault((file, test), set())
                by_tier = self.witnesses[fault].setdefault((file, test), set())
                if place is not None:
                    everywhere.add(place.id)
                    by_tier |= set() if item in repeating else {place.id}
            if place is not None and item not in repeating:
                self._kept_as_clause(item, place)

    def _kept_as_clause(self, item: pytest.Item, place: Place) -> None:
        file, test = _name_of(item)
        if file == CONTRACT:
            self.clauses[test].add(place.id)

    def in_place(self, fault: int, place: Place) -> int:
        """How many tests cover the fault there."""
        return sum(place.id in ids for ids in self.tests[fault].values())

    def by_tier(self, fault: int, place: Place) -> int:
        """How many of them ``make test`` runs there."""
        return sum(place.id in ids for ids in self.witnesses[fault].values())

    def why_not(self, fault: int, place: Place) -> list[str]:
        given = [REASONS[key] for key in ((fault, place.id), (fault, "*")) if key in REASONS]
        return given[:1] or sorted(self.lacking[fault, place.id])


def _name_of(item: pytest.Item) -> tuple[str, str]:
    """Its file and its own name; the class that it is in, or inherited by, does not count."""
    file, *_, test = item.nodeid.split("[")[0].split("::")
    return file, test


def faults_of(item: pytest.Item) -> set[int]:
    return {number for mark in item.iter_markers("fault") for number in mark.args}


def collect() -> Collected:
    found = Collected()
    said = io.StringIO()
    os.environ[VARIABLE] = "all"
    with redirect_stdout(said):
        status = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", str(ROOT / "tests")], plugins=[found])
    if status != pytest.ExitCode.OK:
        sys.exit(said.getvalue())
    return found


def unexplained(found: Collected) -> Iterator[str]:
    """Faults, and places of faults, with neither a test nor a reason, or without a witness; marks that no fault has."""
    known = {fault for faults in SECTIONS.values() for fault in faults}
    yield from (f"There is no fault {fault}." for fault in sorted(set(found.tests) - known))
    names = {*found.modules, *(f"{file}::{test}" for file, tests in found.modules.items() for test in tests)}
    yield from (f"There is no test {name}, which is marked from outside." for name in sorted(COVERING.keys() - names))
    for fault in sorted(known):
        for place in PLACES:
            if not found.in_place(fault, place) and not found.why_not(fault, place):
                yield f"Fault {fault} has neither a test in {place.id} nor a reason."
            if found.in_place(fault, place) and not found.by_tier(fault, place):
                yield f"Fault {fault} has tests in {place.id} and no witness: mark one of them."
    for clause in sorted(found.modules[CONTRACT]):
        for place in PLACES:
            if place.id not in found.clauses[clause]:
                yield f"The clause {clause} has no witness in {place.id}: mark it."


# ---------------------------------------------------------------- the page


def page(found: Collected) -> str:
    blocks = [
        "# Faults and the tests that cover them",
        "Generated by `make docs` from the marks on the tests; a test keeps it true. A number says how many tests "
        "cover the fault in that place. Where there is none, the reason stands below the table: what a place cannot "
        "do. After each test in `tests/faults` its table is verified as `pwc verify` does it, unless the test damages "
        "it: every file that a snapshot names is there, and no batch is in twice.",
        f"Places have tiers. The reference places ({_named(_ids(Tier.REFERENCE))}) run their tests in `make test`. "
        f"Their siblings ({_named(_ids(Tier.SIBLING))}) have the same ledger and another put or another store; there "
        "`make test` runs the witnesses of each fault, marked below, in their first form, and `make test-matrix "
        "PLACE=…` runs everything. Memory runs, in seconds, whatever needs neither a store nor another process: what "
        "the coordinator, the ledger and the listeners decide. It takes nothing off the others. What repeats at length "
        "is left to `make test-long`. “2 of 17” says that `make test` runs two of the seventeen.",
    ]
    for section, faults in SECTIONS.items():
        blocks += [f"## {section}", table(found, faults), *gaps(found, faults)]
        for fault, title in faults.items():
            blocks.append(f"**{fault}. {title}**" + (f" {REMARKS[fault]}" if fault in REMARKS else ""))
            blocks.append("\n".join(lines(found, fault)))
    return "\n\n".join(blocks) + "\n"


def table(found: Collected, faults: Mapping[int, str]) -> str:
    header = ["#", "fault", *(f"{place.format.capitalize()}, {STORES[place.store]}" for place in PLACES)]
    body = [[str(fault), title, *(cell(found, fault, place) for place in PLACES)] for fault, title in faults.items()]
    return "\n".join([row(header), row(["--:", "---", *("--:" for _ in PLACES)]), *map(row, body)])


def cell(found: Collected, fault: int, place: Place) -> str:
    tests, witnesses = found.in_place(fault, place), found.by_tier(fault, place)
    if not tests:
        return "none"
    return str(tests) if witnesses == tests else f"{witnesses} of {tests}"


def gaps(found: Collected, faults: Iterable[int]) -> list[str]:
    """One line for each reason, with all that it explains."""
    by_reason: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for fault in faults:
        for place in PLACES:
            if not found.in_place(fault, place):
                reason = "; ".join(found.why_not(fault, place))
                by_reason[reason][fault].append(place.id)
    said = [f"- {_where(where)}: {reason}." for reason, where in by_reason.items()]
    return ["\n".join(said)] if said else []


def _where(where: dict[int, list[str]]) -> str:
    """Faults of the same places are named together."""
    together: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for fault, ids in where.items():
        together[tuple(ids)].append(fault)
    return "; ".join(f"{', '.join(map(str, faults))} ({_named(set(ids))})" for ids, faults in together.items())


def lines(found: Collected, fault: int) -> Iterator[str]:
    tests = found.tests[fault]
    by_file: dict[str, list[str]] = defaultdict(list)
    for file, test in sorted(tests):
        by_file[file].append(test)
    for file, names in by_file.items():
        with_spark = ", with Spark" if any((file, name) in found.spark for name in names) else ""
        if len(names) >= _WHOLE_MODULE_FROM and set(names) == found.modules[file]:
            where = {place for name in names for place in tests[file, name]}
            witnesses = sum(_is_witness(found, fault, (file, name)) for name in names)
            marked = f", {witnesses} of them {'a witness' if witnesses == 1 else 'witnesses'}" if witnesses else ""
            yield f"- `{file}`{with_spark}: all {len(names)} tests{marked}{_places(where)}"
            continue
        yield f"- `{file}`{with_spark}"
        for name in names:
            marked = ", witness" if _is_witness(found, fault, (file, name)) else ""
            yield f"  - `{name}`{marked}{_places(tests[file, name])}"


def _is_witness(found: Collected, fault: int, test: tuple[str, str]) -> bool:
    """Whether siblings run it beside a reference place."""
    ids = found.witnesses[fault][test]
    return len(ids) > 1 and bool(ids & _ids(Tier.SIBLING))


def _ids(tier: Tier) -> set[str]:
    return {place.id for place in PLACES if place.tier is tier}


def _places(ids: set[str]) -> str:
    return f" ({_named(ids)})" if ids else ""


def _named(ids: set[str]) -> str:
    if ids == {place.id for place in PLACES}:
        return "everywhere"
    if ids == {place.id for place in PLACES} - _ids(Tier.MEMORY):
        return "everywhere but in memory"
    by_format: dict[str, list[str]] = defaultdict(list)
    for place in PLACES:
        if place.id in ids:
            by_format[place.format.capitalize()].append(STORES[place.store])
    return "; ".join(
        "in memory" if format == "Memory" else f"{format} on {', '.join(stores)}"
        for format, stores in by_format.items()
    )


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    found = collect()
    complaints = list(unexplained(found))
    sys.stdout.write(page(found))
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
