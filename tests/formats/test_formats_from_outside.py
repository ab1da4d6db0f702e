"""A format that another package registers: its entry point is all it takes, and its capabilities decide."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_sink.core.capabilities import NO, Capabilities, Feature, feature_table
from paimon_sink.core.errors import OptionError, TableNotFoundError
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.registry import BUILT_IN, FORMATS, GROUP, open_table, open_to_write, parse_options

ROOT = Path(__file__).parents[2]

CAPABILITIES = """
from paimon_sink.core.capabilities import YES, Capabilities
from paimon_sink.formats.registration import RegisteredFormat

FORMAT = RegisteredFormat(
    capabilities=Capabilities(
        title="Fakelake",
        branches=YES,
        highest_identifier_marks="what a Fakelake forgets",
        reserved_snapshot_properties={"shore": "every Fakelake has"},
    ),
    implementation="fakelake_format:FakelakeFormat",
    install="fakelake[writer]",
)
NEEDY = RegisteredFormat(
    capabilities=Capabilities(title="Needy"), implementation="needy_format:NeedyFormat", install="needy[all]"
)
NOTHING = "a text"
"""
FORMAT = """
from paimon_sink.formats.contract import Format


class FakelakeFormat(Format):
    name = "fakelake"

    def open(self, options, *, compression=None):
        return None

    def create(self, options, schema, partition_by, *, compression=None):
        raise RuntimeError(f"created {options.label} on {options.branch} with {compression}")

    def check_writable(self, table):
        pass
"""
ENTRY_POINTS = f"""
[{GROUP}]
fakelake = fakelake_capabilities:FORMAT
needy = fakelake_capabilities:NEEDY
wrong = fakelake_capabilities:NOTHING
broken = no_such_module:FORMAT
iceberg = fakelake_capabilities:FORMAT
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that was installed: its modules, and its metadata beside them."""
    (tmp_path / "fakelake_capabilities.py").write_text(CAPABILITIES)
    (tmp_path / "fakelake_format.py").write_text(FORMAT)
    (tmp_path / "needy_format.py").write_text("import a_library_that_nobody_has\n")
    metadata = tmp_path / "fakelake-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fakelake\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for module in ("fakelake_capabilities", "fakelake_format", "needy_format"):
        sys.modules.pop(module, None)


def parse(table_format: str, **options: str) -> Options:
    given = {"warehouse": "/lake", "table": "sales.orders", "tableFormat": table_format, "commitUser": "u", **options}
    return parse_options(given, purpose=Purpose.BATCH_WRITE)


def refusal(table_format: str, **options: str) -> str:
    with pytest.raises(OptionError) as refused:
        parse(table_format, **options)
    return str(refused.value)


def test_its_options_are_checked_by_its_capabilities(installed: None) -> None:
    assert parse("Fakelake", branch="audit").table.branch == "audit"
    assert "Fakelake partitions by column values; add" in refusal("fakelake", partitionBy="days(ts)")
    assert "must not be 9223372036854775807, what a Fakelake forgets." in refusal(
        "fakelake", commitIdentifier=str(2**63 - 1)
    )
    assert (
        refusal("fakelake", **{"snapshotProperty.Shore": "x"})
        == "snapshotProperty.shore is a name that every Fakelake has; choose another."
    )


def test_it_is_named_to_those_who_ask_for_what_only_it_and_others_have(installed: None) -> None:
    assert (
        refusal("paimon", branch="audit")
        == "branch is not available for Paimon; leave it out, or use tableFormat=iceberg or tableFormat=fakelake."
    )
    assert "transforms are for tableFormat=iceberg. If" in refusal("fakelake", partitionBy="days(ts)")


def test_it_is_listed_beside_the_built_in_ones_which_nobody_can_replace(installed: None) -> None:
    assert list(FORMATS) == ["paimon", "iceberg", "fakelake", "needy", "wrong", "broken"]
    assert len(FORMATS) == 6
    assert FORMATS["iceberg"].title == "Iceberg"
    assert refusal("fakelak") == (
        "tableFormat must be paimon, iceberg, fakelake, needy, wrong or broken, not 'fakelak'; did you mean fakelake?"
    )


def test_its_tables_are_opened_and_created_by_its_own_class(installed: None) -> None:
    options = parse("fakelake", branch="audit").table

    with pytest.raises(TableNotFoundError, match=r"There is no table sales\.orders"):
        open_table(options)
    with pytest.raises(RuntimeError, match=r"created sales\.orders on audit with gzip"):
        open_to_write(options, pa.schema([("id", pa.int64())]), compression="gzip")


def test_a_library_that_it_misses_is_a_sentence_with_what_to_install(installed: None) -> None:
    options = parse("needy").table

    with pytest.raises(OptionError, match=r"not installed \(a_library_that_nobody_has\).*pip install 'needy\[all\]'"):
        open_table(options)


def test_a_registration_that_is_no_good_is_a_sentence(installed: None) -> None:
    assert "tableFormat=broken is registered by a package that cannot be loaded" in refusal("broken")
    assert "tableFormat=wrong is registered as a str, not as a RegisteredFormat" in refusal("wrong")


def test_options_of_a_format_that_is_not_installed_where_they_arrive_are_a_sentence(
    installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = parse("fakelake").table
    monkeypatch.undo()

    with pytest.raises(OptionError, match="tableFormat=fakelake is not known here"):
        open_table(options)


# ---------------------------------------------------------------- those of this package


def test_the_built_in_formats_are_entry_points_too() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["entry-points"][GROUP] == BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_page_of_capabilities_is_what_the_formats_say(name: str) -> None:
    page = (ROOT / "docs" / "capabilities.md").read_text(encoding="utf-8")

    assert feature_table({name: FORMATS[name] for name in BUILT_IN}) in page
    assert FORMATS[name].title.lower() == name


def test_the_format_for_tests_is_taken_and_offered_to_nobody() -> None:
    assert parse("memory").table.table_format == "memory"
    assert "memory" not in list(FORMATS)
    assert refusal("memry").endswith("must be paimon or iceberg, not 'memry'.")
    assert "Memory partitions by column values" in refusal("memory", partitionBy="days(ts)")


def test_what_a_format_does_not_name_it_does_not_have() -> None:
    nothing = Capabilities(title="Nothing")
    features = {name: value for name, value in vars(nothing).items() if isinstance(value, Feature)}

    assert set(features.values()) == {NO}
    assert not any(features.values())
    assert len(features) == 37


# ---------------------------------------------------------------- what they say is what they do


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_table_by_its_path_alone_is_refused_exactly_where_the_capabilities_say_so(name: str, tmp_path: Path) -> None:
    options = parse_options({"path": str(tmp_path / "orders"), "tableFormat": name}, purpose=Purpose.READ).table

    refused = OptionError if not FORMATS[name].tables_by_path else TableNotFoundError
    with pytest.raises(refused):
        open_table(options)


@pytest.mark.parametrize("name", BUILT_IN)
def test_branches_and_transforms_are_refused_exactly_where_the_capabilities_say_so(name: str, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64())])
    for feature, key, value in (
        ("partition_transforms", "partitionBy", "bucket(4, id)"),
        ("branches", "branch", "audit"),
    ):
        given = {"warehouse": str(tmp_path / feature), **{key: value}}
        if getattr(FORMATS[name], feature):
            table = open_to_write(parse(name, **given).table, schema, compression=None)
            assert table.label == "sales.orders"
        else:
            assert FORMATS[name].title in refusal(name, **given)
