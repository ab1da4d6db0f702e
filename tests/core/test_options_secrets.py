"""Secrets: in the value, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_sink.core.errors import OptionError
from paimon_sink.core.option_groups import TableOptions
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.registry import parse_options

SECRET_KEYS = [
    "s3.access-key-id",
    "s3.secret-access-key",
    "S3.Session-Token",
    "catalog.token",
    "catalog.jdbc.password",
    "catalog.dlf.access-key-secret",
    "Catalog.Credential",
    "catalog.s3.KEY",
]
MISSPELT_SECRET_KEYS = ["s3.secret-acces-key", "s3.secret", "password", "fs.s3a.secret.key", "catalogue.token"]

# A mark that no sentence of ours contains, with anything around it.
_SECRETS = st.tuples(st.text(max_size=20), st.text(max_size=20)).map("hush-9f3e".join)


def everything_said(options: dict[str, str]) -> str:
    try:
        parsed = parse_options(options, purpose=Purpose.BATCH_WRITE)
    except OptionError as refused:
        return f"{refused} {refused!r} {refused.__cause__!r} {refused.__context__!r}"
    return f"{parsed} {parsed!r} {parsed.table} {parsed.table.catalog} {parsed.table.storage!r} {parsed.table.label}"


@given(
    st.dictionaries(st.sampled_from(SECRET_KEYS + MISSPELT_SECRET_KEYS), _SECRETS, min_size=1),
    st.sampled_from([{}, {"path": "/lake"}, {"path": "/lake", "table": "a"}, {"path": "/lake", "createTable": "x"}]),
)
def test_a_secret_is_never_said(secrets: dict[str, str], others: dict[str, str]) -> None:
    assert "hush-9f3e" not in everything_said({**others, **secrets})


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_secret_still_reaches_the_code_that_needs_it(key: str) -> None:
    parsed = parse_options({"path": "/lake", key: "hush"}, purpose=Purpose.READ)

    assert "hush" in [*parsed.table.storage.values(), *parsed.table.catalog.values()]
    assert "(hidden)" in repr(parsed)


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_two_different_secrets_under_one_key_are_told_without_either(key: str) -> None:
    said = everything_said({"path": "/lake", key.lower(): "hush-1", key.upper(): "hush-2"})

    assert "different values" in said
    assert "hush" not in said


def test_options_built_by_hand_hide_secrets_too() -> None:
    by_hand = TableOptions(path="/lake", s3_secret_access_key="hush", catalog={"uri": "sql://u:hush@host"})

    assert "hush" not in f"{by_hand} {by_hand.storage} {by_hand.catalog} {Options(table=by_hand)}"
    assert by_hand.storage == {"s3.secret-access-key": "hush"}


def test_a_secret_glued_to_its_key_is_cut_off() -> None:
    assert "hush" not in everything_said({"path": "/lake", "s3.secret-access-key=hush": ""})


@pytest.mark.parametrize("key", ["warehouse", "path", "s3.endpoint"])
@pytest.mark.parametrize(
    "uri", ["s3://lake/x?token=hush", "abfss://c@a.dfs.core.windows.net/x?sv=1&sig=hush", "https://x?hush"]
)
def test_a_location_with_a_query_string_is_refused_without_showing_it(key: str, uri: str) -> None:
    others = {"warehouse": {"table": "a.b"}, "path": {}, "s3.endpoint": {"path": "/lake"}}[key]

    said = everything_said({**others, key: uri})

    assert f"{key} has a query string" in said
    assert "hush" not in said


def test_a_question_mark_in_a_plain_path_is_part_of_it() -> None:
    assert parse_options({"path": "/lake/what?"}, purpose=Purpose.READ).table.path == "/lake/what?"


@pytest.mark.parametrize("value", ["s3://lake/x?token=hush", "https://hook/x?hush"])
def test_an_address_with_a_query_string_is_hidden_wherever_it_was_put(value: str) -> None:
    options = {"path": "/lake", "catalog.proxy": value, "table.note": value, "createTable": value, "partitionBy": value}

    assert "hush" not in everything_said(options)
    assert "hush" not in everything_said({key: options[key] for key in ("path", "catalog.proxy", "table.note")})
