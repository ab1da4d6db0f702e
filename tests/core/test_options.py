"""Options: every one missing, empty, of a wrong type, absurd, unknown or contradicting; all problems in one message."""

from __future__ import annotations

import contextlib
import pickle
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_sink.core.errors import OptionError
from paimon_sink.core.option_docs import OptionDoc, describe_options
from paimon_sink.core.option_groups import CommitOptions, TableOptions, UpkeepOptions, WriteOptions
from paimon_sink.core.options import Options, Purpose
from paimon_sink.formats.registry import parse_options

HERE = {"path": "/lake/orders"}
STREAM, BATCH, READ = Purpose.STREAM_WRITE, Purpose.BATCH_WRITE, Purpose.READ
STREAM_READ = Purpose.STREAM_READ
ONE_BY_ONE = [option.key for option in describe_options() if not option.is_prefix]


def parse(options: dict[str, str], purpose: Purpose = BATCH) -> Options:
    return parse_options(options, purpose=purpose)


def refusal(options: dict[str, str], purpose: Purpose = BATCH) -> str:
    with pytest.raises(OptionError) as refused:
        parse(options, purpose)
    return str(refused.value)


# ---------------------------------------------------------------- good values


def test_defaults_are_those_of_the_documentation() -> None:
    assert parse(HERE) == Options(
        table=TableOptions(path="/lake/orders", table_format="paimon", branch="main", create_table=True),
        write=WriteOptions(
            target_file_size_bytes=128 * 1024 * 1024,
            compression=None,
            watermark_column=None,
            watermark_delay_ms=0,
            watermark_max_ahead_ms=24 * 3600 * 1000,
            merge_schema=False,
        ),
        commit=CommitOptions(
            commit_user=None,
            commit_identifier=None,
            on_rewind="fail",
            on_ledger_lost="fail",
            takeover=False,
            ledger_retention_ms=30 * 24 * 3600 * 1000,
            partition_overwrite_mode=None,
            watermark_idle_ms=None,
        ),
        upkeep=UpkeepOptions(
            expire_older_than_ms=None,
            expire_keep_last=10,
            expire_limit=20,
            compact_min_files=None,
            compact_max_bytes=64 * 1024 * 1024,
        ),
    )


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        ("createTable", "FALSE", "table.create_table", False),
        ("takeover", " true ", "commit.takeover", True),
        ("tableFormat", "Paimon", "table.table_format", "paimon"),
        ("tableFormat", "ICEBERG", "table.table_format", "iceberg"),
        ("branch", "main", "table.branch", "main"),
        ("partitionBy", "dt", "table.partition_by", ("dt",)),
        ("partitionBy", "dt, region", "table.partition_by", ("dt", "region")),
        ("partitionBy", "`a,b`, `c.d`,` e `,`f(g)`", "table.partition_by", ("a,b", "c.d", " e ", "f(g)")),
        ("partitionBy", "order day", "table.partition_by", ("order day",)),
        ("commitUser", "nightly orders", "commit.commit_user", "nightly orders"),
        ("onLedgerLost", "commit", "commit.on_ledger_lost", "commit"),
        ("onLedgerLost", "skip", "commit.on_ledger_lost", "skip"),
        ("targetFileSize", "64kb", "write.target_file_size_bytes", 65536),
        ("targetFileSize", "1 GB", "write.target_file_size_bytes", 2**30),
        ("targetFileSize", "1024", "write.target_file_size_bytes", 1024),
        ("targetFileSize", "16gb", "write.target_file_size_bytes", 2**34),
        ("ledger.retention", "12h", "commit.ledger_retention_ms", 43_200_000),
        ("ledger.retention", "90m", "commit.ledger_retention_ms", 5_400_000),
        ("ledger.retention", "7200s", "commit.ledger_retention_ms", 7_200_000),
        ("ledger.retention", "3600000ms", "commit.ledger_retention_ms", 3_600_000),
        ("compression", "zstd", "write.compression", "zstd"),
        ("compression", "GZIP", "write.compression", "gzip"),
        ("compression", "uncompressed", "write.compression", "none"),
        ("partitionOverwriteMode", "dynamic", "commit.partition_overwrite_mode", "dynamic"),
        ("s3.region", "eu-central-1", "table.storage", {"s3.region": "eu-central-1"}),
        ("S3.Endpoint", "http://h:1", "table.storage", {"s3.endpoint": "http://h:1"}),
        ("catalog.Uri", "thrift://h", "table.catalog", {"Uri": "thrift://h"}),
        ("TABLE.bucket", "-1", "table.table_properties", {"bucket": "-1"}),
        ("snapshotproperty.team", "", "commit.snapshot_properties", {"team": ""}),
        ("mergeSchema", "false", "write.merge_schema", False),
    ],
)
def test_a_good_value_is_understood(key: str, text: str, field: str, value: Any) -> None:
    assert attrgetter(field)(parse({**HERE, key: text})) == value


@pytest.mark.parametrize("spell", [str.lower, str.upper, str.swapcase], ids=["lower", "upper", "swapped"])
def test_keys_are_case_insensitive(spell: Any) -> None:
    options = {spell(key): value for key, value in {"warehouse": "/w", "table": "a.b", "partitionBy": "dt"}.items()}

    parsed = parse(options)

    assert parsed == Options(table=TableOptions(warehouse="/w", name=("a", "b"), partition_by=("dt",)))
    assert (parsed.table.database, parsed.table.table) == ("a", "b")


def test_the_label_is_the_table_or_its_path() -> None:
    assert parse({"warehouse": "/w", "table": "`my.db`.orders"}).table.label == "my.db.orders"
    assert parse(HERE).table.label == "/lake/orders"


@pytest.mark.parametrize("key", ["checkpointLocation", "queryname", "OUTPUTMODE", "spark.sql.anything"])
def test_sparks_own_options_pass(key: str) -> None:
    assert parse({**HERE, key: "x"}, STREAM) == parse(HERE, STREAM)


@pytest.mark.parametrize("purpose", Purpose)
def test_one_set_of_options_serves_writing_and_reading(purpose: Purpose) -> None:
    lake = {"warehouse": "/w", "table": "a.b", "partitionBy": "dt", "commitUser": "u", "takeover": "true"}

    assert parse(lake, purpose).commit.commit_user == "u"


EVERY_OPTION = {
    "warehouse": "/w",
    "table": "a.b",
    **{option.key: option.example for option in describe_options() if not option.is_prefix},
    **dict(option.example.split("=", 1) for option in describe_options() if option.is_prefix),
}


OTHER_READS = (
    "timestampAsOf",
    "startingVersion",
    "startingTimestamp",
    "endingVersion",
    "endingTimestamp",
    "skipChangeCommits",
)
"""A read is of one snapshot, or of a range."""


def test_a_read_passes_over_every_option_of_a_write() -> None:
    of_streams = tuple(option.key for option in describe_options() if option.used_by == ("stream read",))
    left_out = ("path", "branch", "table", *OTHER_READS, *of_streams)
    given = {key: value for key, value in EVERY_OPTION.items() if key not in left_out}

    assert parse({**given, "table": "a.b", "listeners": "metrics"}, READ).read.where is not None


@pytest.mark.parametrize("option", describe_options(), ids=lambda option: option.key)
def test_each_kind_of_read_refuses_what_is_for_the_other_alone(option: OptionDoc) -> None:
    for purpose, other in ((READ, STREAM_READ), (STREAM_READ, READ)):
        is_for_the_other = other.value in option.used_by and purpose.value not in option.used_by
        if is_for_the_other:
            assert f"{option.key} is for {other.in_words}, not for {purpose.in_words}" in refusal(
                {**HERE, option.key: option.example}, purpose
            )


def test_a_stream_begins_at_a_word_or_an_id_and_a_batch_read_at_an_id() -> None:
    assert parse({**HERE, "startingVersion": "Latest"}, STREAM_READ).read.starting_version == "latest"
    assert parse({**HERE, "startingVersion": "42"}, STREAM_READ).read.starting_version == 42
    assert "is for streams: spark.readStream" in refusal({**HERE, "startingVersion": "latest"}, READ)
    assert "or full, latest, earliest" in refusal({**HERE, "startingVersion": "oldest"}, STREAM_READ)
    both = {"startingVersion": "1", "startingTimestamp": "0"}
    assert "contradict each other" in refusal({**HERE, **both}, STREAM_READ)
    parse({**HERE, "skipChangeCommits": "true"}, STREAM_READ)


@pytest.mark.parametrize(("theirs", "ours"), [("scan.mode", "startingVersion"), ("ignoreChanges", "skipChangeCommits")])
def test_what_streams_of_others_call_an_option_is_answered_with_our_name(theirs: str, ours: str) -> None:
    assert f"is not an option; did you mean {ours}?" in refusal({**HERE, theirs: "x"}, STREAM_READ)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "-a", "x" * 101, "a b"])
def test_a_consumer_has_a_name_that_a_file_can_have(name: str) -> None:
    assert "consumerId" in refusal({**HERE, "consumerId": name}, STREAM_READ)


@pytest.mark.parametrize(("text", "name"), [("orders-ETL", "orders-ETL"), ("none", "none"), ("NONE", "none")])
def test_a_consumer_keeps_its_name_and_no_consumer_is_a_word(text: str, name: str) -> None:
    assert parse_options({**HERE, "consumerId": text}, purpose=STREAM_READ).follow.consumer_id == name


@pytest.mark.parametrize("purpose", [STREAM, BATCH])
@pytest.mark.parametrize("option", describe_options(), ids=lambda option: option.key)
def test_a_write_refuses_exactly_what_it_cannot_heed(option: OptionDoc, purpose: Purpose) -> None:
    key, value = option.example.split("=", 1) if option.is_prefix else (option.key, option.example)

    try:
        parse({**HERE, key: value}, purpose)
        said = ""
    except OptionError as error:
        said = str(error)

    is_refused = f"{option.key} is for " in said
    assert is_refused is (purpose.value not in option.used_by)


def test_sparks_setting_of_overwrites_is_no_option_and_is_not_passed_over() -> None:
    setting = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}

    assert "the option is partitionOverwriteMode" in refusal({**HERE, **setting}, BATCH)
    parse({**HERE, **setting}, READ)


def test_a_stream_may_be_told_to_skip_a_rewind_and_a_batch_job_may_not() -> None:
    assert parse({**HERE, "onRewind": "Skip"}, STREAM).commit.on_rewind == "skip"
    assert "may come in any order" in refusal({**HERE, "onRewind": "skip"}, BATCH)


@pytest.mark.parametrize("key", ["where", "partition.day"])
@pytest.mark.parametrize("purpose", [STREAM, BATCH])
def test_what_chooses_rows_to_read_is_refused_by_a_write_which_would_replace_others(key: str, purpose: Purpose) -> None:
    message = refusal({**HERE, key: "2026-11-16"}, purpose)

    assert "does not choose what an overwrite replaces" in message
    assert "partitionOverwriteMode=dynamic" in message


@pytest.mark.parametrize(
    ("bound", "switch"),
    [
        ({"expire.keepLast": "5"}, {"expire.olderThan": "1d"}),
        ({"expire.limit": "5"}, {"expire.olderThan": "1d"}),
        ({"compact.maxBytes": "1mb"}, {"compact.minFiles": "5"}),
    ],
    ids=["keepLast", "limit", "maxBytes"],
)
def test_a_bound_of_something_that_is_not_switched_on_is_refused(bound: dict[str, str], switch: dict[str, str]) -> None:
    assert f"without {next(iter(switch))}" in refusal({**HERE, **bound}, STREAM)
    parse({**HERE, **bound, **switch}, STREAM)
    parse({**HERE, **bound}, READ)


def test_a_commit_identifier_goes_with_a_commit_user() -> None:
    options = {**HERE, "commitUser": "u", "commitIdentifier": str(2**63 - 2)}

    assert parse(options, BATCH).commit.commit_identifier == 2**63 - 2
    assert parse({**HERE, "commitIdentifier": "0"}, READ).commit.commit_identifier == 0


def test_options_survive_pickling() -> None:
    before = parse({**HERE, "catalog.token": "t", "s3.secret-access-key": "s", "partitionBy": "a,b"})

    after = pickle.loads(pickle.dumps(before))

    assert after == before
    assert after.table.storage == {"s3.secret-access-key": "s"}


# ---------------------------------------------------------------- bad values


@pytest.mark.parametrize("blank", ["", "   "], ids=["empty", "blank"])
@pytest.mark.parametrize("key", ONE_BY_ONE)
def test_an_empty_value_is_refused_by_name(key: str, blank: str) -> None:
    assert any(
        line.strip(" 0123456789.").startswith((f"{key} is empty", f"{key} is not available yet"))
        for line in refusal({key: blank}).splitlines()
    )


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        ("createTable", "yes", "must be true or false, not 'yes'"),
        ("takeover", "1", "must be true or false"),
        ("tableFormat", "delta", "must be paimon or iceberg, not 'delta'."),
        ("tableFormat", "Icberg", "must be paimon or iceberg, not 'Icberg'; did you mean iceberg?"),
        ("branch", "audit", "branch is not available for Paimon"),
        ("partitionBy", "a,,b", "empty column name"),
        ("partitionBy", "a,", "empty column name"),
        ("partitionBy", "dt, DT", "twice"),
        ("partitionBy", "`dt", "not closed"),
        ("partitionBy", "d`t`", "inside a name"),
        ("partitionBy", "a\nb", "control character"),
        ("partitionBy", "days(ts)", "Paimon partitions by column values"),
        ("partitionBy", "bucket(16, id), dt", "transforms are for tableFormat=iceberg"),
        ("partitionBy", "days(ts", "transforms"),
        ("commitUser", "a\tb", "control character"),
        ("commitUser", "x" * 201, "at most 200"),
        ("commitIdentifier", "one", "whole number"),
        ("commitIdentifier", "-1", "whole number"),
        ("commitIdentifier", "1.0", "whole number"),
        ("commitIdentifier", "٣", "whole number"),
        ("commitIdentifier", "9" * 19, "whole number"),
        ("commitIdentifier", "9" * 5000, "whole number"),
        ("commitIdentifier", str(2**63 - 1), "Paimon's own mark"),
        ("onLedgerLost", "ignore", "must be fail, commit or skip"),
        ("targetFileSize", "big", "must be a size"),
        ("targetFileSize", "1.5gb", "must be a size"),
        ("targetFileSize", "-1", "must be a size"),
        ("targetFileSize", "9" * 5000, "must be a size"),
        ("targetFileSize", "0", "from 1kb to 16gb"),
        ("targetFileSize", "17gb", "from 1kb to 16gb"),
        ("targetFileSize", "1000000tb", "from 1kb to 16gb"),
        ("ledger.retention", "30", "duration with its unit"),
        ("ledger.retention", "30 parsecs", "duration with its unit"),
        ("ledger.retention", "59m", "from 1h"),
        ("ledger.retention", "99999999d", "from 1h"),
        ("compression", "zip", "must be zstd"),
        ("partitionOverwriteMode", "both", "must be static or dynamic"),
        ("mergeSchema", "maybe", "must be true or false"),
        ("watermarkColumn", "ts, at", "must be one column"),
        ("watermarkColumn", "days(ts)", "must be one column"),
        ("listeners", "mark done", "must be names such as"),
        ("listeners", "a, a", "names a twice"),
        ("s3.endpoint", "http://a\nb", "control character"),
        ("s3.region", " eu", "blank"),
        ("s3.session-token", "abc\n", "control character"),
        ("snapshotProperty.", "x", "needs a name after the dot"),
        ("snapshotProperty.PWC.rows", "x", "kept for"),
        ("table.", "x", "needs a name"),
        ("catalog. ", "x", "needs a name"),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence(key: str, text: str, why: str) -> None:
    message = refusal({**HERE, "commitUser": "u", key: text})

    assert why in message
    assert message.lower().startswith(key.strip(" *.").lower()[:16])
    assert len(message) < 400
    assert "\n" not in message


@pytest.mark.parametrize(
    "address",
    [
        "s3://AKIAKEY:hushhush@lake/w",
        "s3a://AKIAKEY:hush/hushhush@lake/w",
        "s3://hushhush@lake",
        "s3:/AKIAKEY:hushhush@lake",
        " s3://AKIAKEY:hushhush@lake",
        "https://user:hushhush@host/w",
    ],
)
@pytest.mark.parametrize("key", ["path", "warehouse", "s3.endpoint", "table"])
def test_credentials_in_an_address_are_refused_and_not_repeated(key: str, address: str) -> None:
    message = refusal({"table": "a.b", key: address})

    assert "hush" not in message
    assert "AKIAKEY" not in message
    assert key == "table" or f"{key} has credentials" in message


@pytest.mark.parametrize(
    "address",
    [
        "abfss://container@account.dfs.core.windows.net/w",
        "hdfs://nn:8020/a@b",
        "/a:b@c",
        "file:///x:y@z",
        "s3://lake/a@b:c",
    ],
)
def test_an_address_without_a_login_is_accepted(address: str) -> None:
    assert parse({"path": address}).table.path == address


# ---------------------------------------------------------------- contradictions


@pytest.mark.parametrize(
    ("options", "purpose", "why"),
    [
        ({"path": "/p", "warehouse": "/w", "table": "a.b"}, BATCH, "path and warehouse and table contradict"),
        ({"path": "/p", "table": "a.b"}, READ, "path and table contradict"),
        ({"warehouse": "/w"}, BATCH, "table is missing"),
        ({"table": "a.b"}, STREAM, "warehouse is missing"),
        ({**HERE, "onRewind": "commit"}, STREAM, "onRewind must be fail or skip"),
        ({**HERE, "watermarkIdle": "10m"}, STREAM, "watermarkIdle needs watermarkColumn"),
        ({**HERE, "commitIdentifier": "1"}, BATCH, "needs commitUser"),
        ({**HERE, "commitIdentifier": "1", "commitUser": "u"}, STREAM, "for batch writes"),
        ({**HERE, "commitUser": "u", "COMMITUSER": "v"}, BATCH, "same option with different values"),
        ({**HERE, "table.a": "1", "table.A": "2"}, BATCH, "same option with different values"),
    ],
)
def test_a_contradiction_is_refused(options: dict[str, str], purpose: Purpose, why: str) -> None:
    assert why in refusal(options, purpose)


def test_the_same_option_twice_with_one_value_is_no_contradiction() -> None:
    assert parse({**HERE, "PATH": "/lake/orders"}) == parse(HERE)


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("options", [{}, {"spark.x": "y"}, {"commitUser": "u"}], ids=["none", "Spark's", "no location"])
def test_no_options_at_all_says_why_and_shows_both_ways(options: dict[str, str], purpose: Purpose) -> None:
    message = refusal(options, purpose)

    assert "Spark does not hand a catalog table's options to a Python data source" in message
    assert "CREATE TEMPORARY VIEW t USING pwc OPTIONS (warehouse '…', table '…')" in message
    assert "INSERT INTO t WITH (warehouse='…', table='…') SELECT …" in message
    assert "\n" not in message


# ---------------------------------------------------------------- unknown options


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("paritionBy", "partitionBy"),
        ("TARGETFILESIZ", "targetFileSize"),
        ("merge_schema", "mergeSchema"),
        ("on-rewind", "onRewind"),
        ("s3.endpont", "s3.endpoint"),
        ("s3.secret.access.key", "s3.secret-access-key"),
        ("checkpointLocaton", "checkpointLocation"),
        ("ledgerRetention", "ledger.retention"),
        ("catalogue.uri", "catalog.*"),
        ("snapshotProperties.team", "snapshotProperty.*"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(key: str, nearest: str) -> None:
    assert refusal({**HERE, key: "x"}) == f"'{key}' is not an option; did you mean {nearest}?"


def test_an_option_like_nothing_we_know_points_to_the_list() -> None:
    assert refusal({**HERE, "zzz": "x"}) == "'zzz' is not an option; `pwc options` lists what there is."


def test_all_problems_are_told_together_and_numbered() -> None:
    message = refusal({"warehous": "/w", "table": "orders", "createTable": "yes", "targetFileSize": "0"})

    assert message.splitlines()[0] == "The options have 5 problems:"
    assert [line.split()[0] for line in message.splitlines()[1:]] == ["1.", "2.", "3.", "4.", "5."]
    for expected in (
        "did you mean warehouse?",
        "database.table",
        "createTable",
        "targetFileSize",
        "warehouse is missing",
    ):
        assert expected in message


# ---------------------------------------------------------------- anything at all

_KEYS = st.one_of(
    st.sampled_from([option.key.replace("*", "x") for option in describe_options()]),
    st.text(max_size=30),
    st.sampled_from(["catalog.", "table.", "s3.", "snapshotProperty.pwc.", "spark.", "checkpointLocation"]).flatmap(
        lambda prefix: st.text(max_size=10).map(lambda rest: prefix + rest)
    ),
)
_VALUES = st.one_of(
    st.text(max_size=40),
    st.text(st.characters(), max_size=10),
    st.sampled_from(
        ["true", "a.b", "`a", "days(ts)", "1", "128mb", "s3://a:b@c", "/lake", "30d", "\ud800", "9" * 6000]
    ),
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=8), st.sampled_from(Purpose))
def test_any_options_are_understood_or_refused_and_nothing_else(options: dict[str, str], purpose: Purpose) -> None:
    try:
        parsed = parse(options, purpose)
    except OptionError:
        return

    assert parsed.table.label
    assert pickle.loads(pickle.dumps(parsed)) == parsed


@given(st.dictionaries(st.sampled_from(ONE_BY_ONE), st.one_of(st.none(), st.booleans(), st.integers(), st.floats())))
def test_values_that_are_not_text_are_understood_or_refused(options: dict[str, Any]) -> None:
    with contextlib.suppress(OptionError):
        parse(options, BATCH)


def test_a_python_boolean_counts_as_its_word() -> None:
    options: dict[str, Any] = {**HERE, "createTable": False}

    assert parse(options).table.create_table is False


@pytest.mark.parametrize("names", [{}, {"listeners": "mark-done", "commitUser": "u", "commitIdentifier": "1"}])
def test_settings_of_nobody_are_refused(names: dict[str, str]) -> None:
    message = refusal({**HERE, **names, "listener.metrics.file": "x"})
    assert message.startswith("listener.* has 'metrics.file', which is for a listener that is not ")
