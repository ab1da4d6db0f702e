"""Options of every kind: understood, or refused in sentences that give no secret away; never anything else."""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paimon_sink import PwcDataSource
from paimon_sink.core.options import DECLARED, Options, Purpose
from paimon_sink.formats.registry import parse_options
from tests.fuzz.strategies import any_text, awkward_texts, junk
from tests.fuzz.support import SCRATCH, fuzz, refusal, watched
from tests.support.lake import ID_AND_DAY, rows

pytestmark = pytest.mark.fault(35, 40)

SECRET = "hunter2-5ecret"
SECRET_KEYS = ["s3.access-key-id", "s3.secret-access-key", "s3.session-token"]
known = sorted(DECLARED.options)
prefixes = sorted(DECLARED.families)
purposes = st.sampled_from(list(Purpose))
keys = st.one_of(
    st.sampled_from(known),
    st.sampled_from([option.key for option in DECLARED]),
    st.sampled_from(known).map(str.upper),
    st.sampled_from(known).map(lambda key: key[:-1]),
    st.tuples(st.sampled_from(prefixes), awkward_texts).map("".join),
    st.sampled_from(["path", "checkpointLocation", "queryName", "", ".", "..", "x" * 5000]),
    any_text,
)
good = st.sampled_from(
    ["true", "false", "paimon", "sales.orders", "/lake", "128mb", "30d", "zstd", "fail", "skip", "7"]
)
values = st.one_of(
    good, awkward_texts, st.sampled_from(["9" * 5000, "1e400", "-1", "0x10", "١٢", "128 MB ", "s3://a:b@c"])
)


def outcome(options: dict[str, str], purpose: Purpose) -> str:
    """All that is shown of the options: the refusal, or the text form of what was understood."""
    found: list[Options] = []
    return f"{refusal(lambda: found.append(parse_options(options, purpose=purpose)))} {found!r}"


def parsed(options: dict[Any, Any], purpose: Purpose) -> Options | None:
    found: list[Options] = []
    refusal(lambda: found.append(parse_options(options, purpose=purpose)))
    return found[0] if found else None


@fuzz(400)
@given(options=st.dictionaries(keys, values, max_size=6), purpose=purposes)
@example(options={"warehouse": "/lake", "table": "a.b", "path": "/x"}, purpose=Purpose.READ)
@example(options={"warehouse": "/lake", "table": "a.b", "snapshotProperty.x": "\ud800"}, purpose=Purpose.STREAM_WRITE)
def test_any_options_are_understood_or_refused_in_sentences(options: dict[str, str], purpose: Purpose) -> None:
    found = parsed(options, purpose)

    if found is not None:
        assert pickle.loads(pickle.dumps(found)) == found
        assert parsed(dict(reversed(options.items())), purpose) == found
        assert parsed(
            {key.swapcase() if key.lower() in DECLARED.options else key: options[key] for key in options}, purpose
        ) in (
            found,
            None,  # two spellings of one key may clash once their case is changed
        )


@fuzz(200)
@given(options=st.dictionaries(keys | st.integers() | st.none(), junk, max_size=5), purpose=purposes)
def test_keys_and_values_that_are_no_text_are_understood_or_refused(options: dict[Any, Any], purpose: Purpose) -> None:
    parsed(options, purpose)


@fuzz(200)
@given(
    key=st.sampled_from(SECRET_KEYS),
    around=st.sampled_from(["{}", " {}", "{} ", "{}\n", "\x00{}", "{}\ud800"]),
    others=st.dictionaries(keys, values, max_size=4),
    glue=st.sampled_from(["", "=", ":", " "]),
    purpose=purposes,
)
def test_no_sentence_repeats_a_secret(
    key: str, around: str, others: dict[str, str], glue: str, purpose: Purpose
) -> None:
    """Neither where the secret itself is wrong, nor where it was glued to its key, nor where another option is."""
    secret = around.format(SECRET)
    place = {"warehouse": "/lake", "table": "sales.orders"}
    cases: list[dict[str, str]] = [
        {**others, key: secret},
        {**place, key: secret},
        {**place, key.upper(): "x", key: secret},
    ]
    if glue:
        cases.append({**place, f"{key}{glue}{SECRET}": ""})
    for options in cases:
        assert SECRET not in outcome(options, purpose)


@fuzz(60)
@given(
    user=st.just("user") | st.text("ab+=", min_size=1, max_size=5),
    scheme=st.sampled_from(["s3", "s3a", "https", "ftp"]),
)
def test_no_sentence_repeats_a_login_written_into_an_address(user: str, scheme: str) -> None:
    for key in ("warehouse", "path", "s3.endpoint", "table", "partitionBy", "compression", "createTable"):
        assert SECRET not in outcome({key: f"{scheme}://{user}:{SECRET}@host/x"}, Purpose.READ)


# ---------------------------------------------------------------- the whole way

creation = st.sampled_from(
    [
        "bucket",
        "file.format",
        "file.compression",
        "file.compression.zstd-level",
        "manifest.format",
        "manifest.compression",
        "manifest.target-file-size",
        "partition.default-name",
        "partition.legacy-name",
        "target-file-size",
        "path",
        "branch",
        "type",
        "data-file.path-directory",
        "data-file.prefix",
        "metadata.stats-mode",
        "snapshot.num-retained.min",
        "fields.day.default-value",
    ]
)
table_properties = st.tuples(st.just("table."), creation | awkward_texts).map("".join)
writing = st.one_of(
    st.sampled_from(["targetFileSize", "compression", "partitionBy", "commitUser", "takeover", "ledger.retention"]),
    table_properties,
    st.tuples(st.just("snapshotProperty."), awkward_texts).map("".join),
)


@fuzz(60)
@given(options=st.dictionaries(writing, values, max_size=3))
@example(options={"table.manifest.target-file-size": "nonsense"})
@example(options={"table.file.compression": "nonsense"})
@example(options={"table.file.compression": "zstd", "table.file.compression.zstd-level": "99"})
@example(options={"table.manifest.compression": "nonsense"})
@example(options={"table.bucket": "nonsense"})
@example(options={"table.bucket": "9" * 5000})
@example(options={"partitionBy": "9" * 5000})
@example(options={"snapshotProperty.x": "\ud800"})
@example(options={"table.x": "\ud800"})
@example(options={"partitionBy": "day", "table.partition.default-name": "../../../x"})
@example(options={"partitionBy": "day", "table.partition.default-name": ""})
@example(options={"table.data-file.path-directory": "../x"})
@example(options={"table.path": "/etc"})
def test_a_write_with_any_options_reads_back_or_is_refused(options: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory, watched() as watch:
        warehouse = Path(directory) / "warehouse"
        given_ = {"commitUser": "u", **options, "warehouse": str(warehouse), "table": "sales.orders"}
        found: list[dict[str, Any]] = []

        def there_and_back() -> None:
            source = PwcDataSource(given_)
            message = source.streamWriter(ID_AND_DAY, False).write(iter([rows(1), rows(2, day=None)]))
            source.streamWriter(ID_AND_DAY, False).commit([message], 0)
            reader = source.reader(source.schema())
            found.extend(
                row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()
            )

        refused = refusal(there_and_back)

        assert watch.outside(warehouse) == []
        assert os.listdir(directory) in ([], ["warehouse"])
        if refused is None:
            assert sorted(row["id"] for row in found) == [1, 2]
            assert {row["id"]: row["day"] for row in found} == {1: "monday", 2: None}
