"""``catalog.*``: heeded or refused by name. An ignored one would have rows written into another place."""

from __future__ import annotations

from pathlib import Path

import pytest
from pypaimon.common.options.config import CatalogOptions
from pypaimon.common.options.config_option import ConfigOption

from paimon_sink.core.errors import OptionError, StorageError
from paimon_sink.formats.paimon import catalog_options as paimon
from tests.rest_server import RestCatalogServer
from tests.support.lake import Lake, rows

NOBODY = "http://127.0.0.1:9"
REST = {"catalog.type": "rest", "catalog.uri": NOBODY, "catalog.token.provider": "bear", "catalog.token": "t"}


def refusal(lake: Lake, **options: str) -> str:
    """What a write says, which must leave nothing behind."""
    before = sorted(Path(lake.options["warehouse"]).rglob("*"))
    with pytest.raises(OptionError) as refused:
        lake.with_options(**options).write(rows(1))
    assert sorted(Path(lake.options["warehouse"]).rglob("*")) == before
    return str(refused.value)


# ---------------------------------------------------------------- Paimon


def test_metastore_is_the_same_as_type(rest_lake: Lake, rest_server: RestCatalogServer) -> None:
    options = {key: value for key, value in rest_lake.options.items() if key != "catalog.type"}

    Lake({**options, "catalog.metastore": "REST"}).append(0, rows(1))

    assert rest_lake.ids() == [1]
    assert rest_server.commits_accepted == 1


def test_a_catalog_where_nobody_listens_is_a_sentence_and_nothing_is_written(local_lake: Lake) -> None:
    options = {**REST, "catalog.metastore": REST["catalog.type"]}
    del options["catalog.type"]

    with pytest.raises(StorageError) as failed:
        local_lake.with_options(**options).write(rows(1))

    assert f"the REST catalog at {NOBODY} gives no good answer" in str(failed.value)
    assert "Nothing was written. Check catalog.uri" in str(failed.value)
    assert not Path(local_lake.options["warehouse"]).exists()


def test_type_and_metastore_may_not_contradict_each_other(local_lake: Lake) -> None:
    said = refusal(local_lake, **{**REST, "catalog.metastore": "filesystem"})

    assert "catalog.type='rest' and catalog.metastore='filesystem' contradict each other" in said


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tpye", "type"),
        ("metastor", "metastore"),
        ("url", "uri"),
        ("token-provider", "token.provider"),
        ("tokn", "token"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(local_lake: Lake, name: str, meant: str) -> None:
    said = refusal(local_lake, **{f"catalog.{name}": "rest"})

    assert f"'catalog.{name}' is not an option of a Paimon catalog; did you mean catalog.{meant}?" in said


def test_a_name_that_resembles_nothing_is_refused_with_all_there_are(local_lake: Lake) -> None:
    assert "it has catalog.type, catalog.metastore, catalog.uri" in refusal(local_lake, **{"catalog.xyzzy": "1"})


@pytest.mark.parametrize("name", ["uri", "token", "dlf.region", "header.X-Team", "prefix"])
def test_a_name_of_a_rest_catalog_is_refused_without_one(local_lake: Lake, name: str) -> None:
    said = refusal(local_lake, **{f"catalog.{name}": "http://catalog"})

    assert f"catalog.{name} is for a REST catalog; set catalog.type=rest beside it" in said


@pytest.mark.parametrize("name", ["warehouse", "data-token.enabled", "fs.oss.endpoint", "s3.endpoint", "cache-enabled"])
@pytest.mark.parametrize("others", [{}, REST], ids=["filesystem", "rest"])
def test_a_name_of_paimons_that_means_nothing_here_is_refused(
    local_lake: Lake, name: str, others: dict[str, str]
) -> None:
    assert f"catalog.{name} is not heeded, since " in refusal(local_lake, **{**others, f"catalog.{name}": "x"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"catalog.uri": NOBODY}, "needs credentials: catalog.token.provider=bear with catalog.token"),
        ({"catalog.token.provider": "bear", "catalog.token": "t"}, "needs catalog.uri"),
        ({"catalog.uri": NOBODY, "catalog.token.provider": "bear"}, "bear needs catalog.token"),
        ({"catalog.uri": NOBODY, "catalog.token.provider": "basic"}, "must be bear or dlf, not 'basic'"),
        ({"catalog.uri": NOBODY, "catalog.token.provider": "dlf"}, "dlf.region"),
        ({"catalog.uri": "catalog:8080"}, "catalog.uri must begin with http"),
        ({"catalog.uri": f"{NOBODY}?token=hush"}, "catalog.uri holds a login or a query string"),
    ],
    ids=["no credentials", "no address", "no token", "no such provider", "no region", "no scheme", "query"],
)
def test_a_rest_catalog_that_cannot_be_reached_like_this_is_a_sentence(
    local_lake: Lake, given: dict[str, str], said: str
) -> None:
    heard = refusal(local_lake, **{"catalog.type": "rest", **given})

    assert said in heard
    assert "hush" not in heard


def test_all_problems_of_a_catalog_are_told_together(local_lake: Lake) -> None:
    said = refusal(local_lake, **{"catalog.type": "rest", "catalog.tokn": "t", "catalog.lock.enabled": "true"})

    assert "'catalog.tokn' is not" in said
    assert "catalog.lock.enabled is not heeded" in said
    assert "needs catalog.uri" in said
    assert "needs credentials" in said


def test_names_of_a_catalog_are_taken_in_any_case(rest_lake: Lake) -> None:
    upper = {f"catalog.{key[8:].upper()}" if key.startswith("catalog.") else key: value
             for key, value in rest_lake.options.items()}  # fmt: skip

    Lake(upper).append(0, rows(1))

    assert rest_lake.ids() == [1]


def test_every_catalog_option_of_pypaimon_is_heeded_or_refused_on_purpose() -> None:
    names = {option.key() for option in vars(CatalogOptions).values() if isinstance(option, ConfigOption)}

    known = {*paimon._OF_REST, *paimon._NOT_HEEDED, paimon._METASTORE}

    assert {name for name in names if name not in known and not name.startswith(paimon._HEADER)} == set()


# ---------------------------------------------------------------- Iceberg


@pytest.mark.parametrize(
    ("name", "meant"),
    [("tpye", "type"), ("url", "uri"), ("credentials", "credential"), ("io-impl", "py-io-impl"), ("tokens", "token")],
)
@pytest.mark.parametrize("elsewhere", [{}, {"catalog.type": "rest", "catalog.uri": NOBODY}], ids=["embedded", "rest"])
def test_a_misspelt_name_of_an_iceberg_catalog_is_refused_with_the_nearest(
    iceberg_sqlite_lake: Lake, name: str, meant: str, elsewhere: dict[str, str]
) -> None:
    said = refusal(iceberg_sqlite_lake, **{**elsewhere, f"catalog.{name}": "rest"})

    assert f"'catalog.{name}' is not an option of an Iceberg catalog; did you mean catalog.{meant}?" in said


@pytest.mark.parametrize("name", ["credential", "token", "glue.region", "rest.sigv4-enabled", "header.X-Team"])
def test_a_name_of_a_server_is_refused_where_the_catalog_would_be_a_file(iceberg_sqlite_lake: Lake, name: str) -> None:
    said = refusal(iceberg_sqlite_lake, **{f"catalog.{name}": "x"})

    assert f"'catalog.{name}' is for a catalog elsewhere, and none is named" in said


def test_paimons_name_for_the_kind_of_catalog_is_refused_for_iceberg(iceberg_sqlite_lake: Lake) -> None:
    assert "catalog.metastore is a name of Paimon's" in refusal(iceberg_sqlite_lake, **{"catalog.metastore": "rest"})


@pytest.mark.parametrize(
    ("kind", "said"),
    [("rset", "did you mean rest?"), ("in-memory", "forgets the table"), ("hunter2", "must be one of rest, hive")],
)
def test_a_kind_of_iceberg_catalog_that_would_keep_no_rows_is_refused(
    iceberg_sqlite_lake: Lake, kind: str, said: str
) -> None:
    heard = refusal(iceberg_sqlite_lake, **{"catalog.type": kind})

    assert said in heard
    assert "hunter2" not in heard


@pytest.mark.parametrize("extra", ["header.X-Team", "rest.sigv4-enabled", "s3.connect-timeout", "oauth2-server-uri",
                                   "warehouse-x", "py-io-impl", "ssl.client.cert", "something-of-my-own"])  # fmt: skip
def test_what_an_iceberg_catalog_may_know_is_handed_on(iceberg_sqlite_lake: Lake, extra: str) -> None:
    options = {"catalog.type": "rest", "catalog.uri": NOBODY, f"catalog.{extra}": "http://127.0.0.1:9"}

    # It gets as far as the server, which is not there.
    with pytest.raises(StorageError, match=r"The catalog of sales\.orders failed"):
        iceberg_sqlite_lake.with_options(**options).write(rows(1))


def test_an_embedded_catalog_takes_its_own_names_in_any_case(iceberg_sqlite_lake: Lake) -> None:
    lake = iceberg_sqlite_lake.with_options(
        **{"catalog.Type": "sql", "catalog.NAME": "mine", "catalog.echo": "false", "catalog.s3.connect-timeout": "3"}
    )

    lake.append(0, rows(1))

    assert lake.ids() == [1]


@pytest.mark.parametrize("database", ["a..b", ".a", "a.", "a. .b"])
def test_an_iceberg_database_with_an_empty_level_is_refused_by_name(iceberg_sqlite_lake: Lake, database: str) -> None:
    lake = Lake(iceberg_sqlite_lake.options, table=f"`{database}`.orders")

    assert f"the database name {database!r} has an empty part" in refusal(lake)
    assert not Path(lake.options["warehouse"]).exists()
