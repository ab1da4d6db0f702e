"""Names: they come back as they were written, or are refused with a sentence."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_sink.core.errors import OptionError
from paimon_sink.core.names import check_name, nearest_name, parse_table_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("sales.orders", ("sales", "orders"), id="plain"),
        pytest.param("`sales`.`orders`", ("sales", "orders"), id="both back-quoted"),
        pytest.param("`my.db`.`my table`", ("my.db", "my table"), id="dot and blank"),
        pytest.param("my db.my table", ("my db", "my table"), id="blanks need no back-quotes"),
        pytest.param('sales.it\'s "new"', ("sales", 'it\'s "new"'), id="quotes"),
        pytest.param("verkäufe.注文", ("verkäufe", "注文"), id="unicode"),
        pytest.param("sales.`a``b`", ("sales", "a`b"), id="doubled back-quote"),
        pytest.param("sales.`a``.b`", ("sales", "a`.b"), id="doubled back-quote before a dot"),
        pytest.param("sales.a=b%2F", ("sales", "a=b%2F"), id="equals and percent"),
        pytest.param("a." + "x" * 200, ("a", "x" * 200), id="200 bytes"),
    ],
)
def test_a_table_name_is_read_as_written(text: str, expected: tuple[str, str]) -> None:
    assert parse_table_name(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "database.table", id="nothing"),
        pytest.param("orders", "database.table", id="one part"),
        pytest.param("a.b.c", "back-quote", id="three parts"),
        pytest.param("sales.", "table name is empty", id="empty table"),
        pytest.param(".orders", "database name is empty", id="empty database"),
        pytest.param("sales.``", "table name is empty", id="empty in back-quotes"),
        pytest.param("sales.`orders", "not closed", id="open back-quote"),
        pytest.param("sales.or`der`s", "inside a name", id="back-quotes inside"),
        pytest.param("sales.``a``", "inside a name", id="doubled back-quotes outside"),
        pytest.param("sales.`..`", "directory", id="dot dot"),
        pytest.param("`.`.orders", "directory", id="dot"),
        pytest.param("sales.`../../etc`", "leave its directory", id="path upward"),
        pytest.param("sales.a\\b", "leave its directory", id="backslash"),
        pytest.param("sales.a\x00b", "NUL", id="NUL"),
        pytest.param("sales.a\nb", "control character", id="line break"),
        pytest.param("sales.a\u2028b", "control character", id="unicode line break"),
        pytest.param("sales.a\ud800b", "control character", id="half of a pair"),
        pytest.param("sales.orders$files", "system tables", id="system table"),
        pytest.param("sales. orders", "blank", id="leading blank"),
        pytest.param("`sales `.orders", "blank", id="trailing blank"),
        pytest.param("sales." + "ü" * 101, "200 bytes", id="202 bytes in 101 characters"),
    ],
)
def test_a_bad_table_name_is_refused_with_a_sentence(text: str, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        parse_table_name(text)


def test_both_bad_halves_are_told_together() -> None:
    with pytest.raises(OptionError) as refused:
        parse_table_name("a/b.c$d")

    assert "database name 'a/b'" in str(refused.value)
    assert "table name 'c$d'" in str(refused.value)


@given(st.text(max_size=250), st.text(max_size=250))
def test_any_allowed_pair_of_names_survives_being_back_quoted(database: str, table: str) -> None:
    written = ".".join("`" + name.replace("`", "``") + "`" for name in (database, table))

    if check_name("database", database) or check_name("table", table):
        with pytest.raises(OptionError):
            parse_table_name(written)
    else:
        assert parse_table_name(written) == (database, table)


@given(st.text(st.sampled_from("./\\a$` \x00é"), max_size=8))
def test_no_allowed_name_leaves_its_directory(name: str) -> None:
    if check_name("table", name) is None:
        assert os.path.dirname(os.path.normpath(os.path.join("/root", name))) == "/root"


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        pytest.param("catlog", "Catalog", id="a typo, and the spelling of the list"),
        pytest.param("TABLE-NAMES", "table-name", id="in another case"),
        pytest.param("zzz", None, id="like nothing"),
        pytest.param("", None, id="nothing"),
        pytest.param("uri" + "x" * 100_000, None, id="very long"),
    ],
)
def test_the_nearest_of_the_known_names_is_found_as_it_is_spelt(written: str, nearest: str | None) -> None:
    assert nearest_name(written, ["uri", "Catalog", "table-name"]) == nearest


def test_how_near_is_near_enough_is_for_the_caller_to_say() -> None:
    assert nearest_name("scope", ["score"], cutoff=0.9) is None
    assert nearest_name("scope", iter(["score"]), cutoff=0.8) == "score"
