"""No secret reaches a message, a file of the table, a log record, an error or a text form."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator

import pytest

from paimon_sink import PwcDataSource
from paimon_sink.core.errors import PwcError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import open_table, parse_options
from tests.support.batches import coordinator, opened, plan, sink_options
from tests.support.lake import ID_AND_DAY, Lake, rows
from tests.support.old_messages import as_version_1
from tests.support.s3 import S3Server

pytestmark = [pytest.mark.s3, pytest.mark.fault(40)]

MARKER = "s3cr3t-m4rk3r-0123456789abcdef"
TOKEN = "t0k3n-m4rk3r-0123456789abcdef"


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Every logger of every library, down to its last word."""
    with caplog.at_level(logging.DEBUG):
        yield


def texts(error: BaseException) -> str:
    """All that a log or a user could see of an error, causes included."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)


def assert_silent(secret: str, *seen: object) -> None:
    for thing in seen:
        assert secret not in (thing if isinstance(thing, str) else repr(thing))
        assert secret.encode() not in (thing if isinstance(thing, bytes) else b"")


def test_nothing_that_is_written_holds_a_secret(s3_lake: Lake, s3: S3Server, caplog: pytest.LogCaptureFixture) -> None:
    lake = s3_lake.with_options(partitionBy="day", snapshotProperty__team="sales", table__comment="orders")
    message = lake.append(0, rows(1, 2))
    lake.append(0, rows(1, 2))
    lake.commit(1, lake.write(rows(3)), overwrite=True)

    table = lake.open()
    files = [table.store.read(path) for path in table.store.walk_files(table.location)]
    assert len(files) > 8
    plain = [as_version_1(message.payload), *(file.entry for file in opened(message).files)]
    assert_silent(s3.secret_key, message.payload, pickle.dumps(message), *plain, *files)
    assert_silent(s3.secret_key, caplog.text, *(record.getMessage() for record in caplog.records))


def test_no_text_form_holds_a_secret(s3_lake: Lake, s3: S3Server) -> None:
    options = sink_options(s3_lake)
    s3_lake.write(rows(1))
    table = s3_lake.open()
    committer = coordinator(s3_lake, table)
    writer = s3_lake.stream_writer()

    for thing in (options, table, table.store, committer, writer, plan(s3_lake, 0, s3_lake.write(rows(1)))):
        assert_silent(s3.secret_key, repr(thing), str(thing))
    assert_silent(
        s3.secret_key,
        repr(table.commits.load_head(commit_user="test")),
        repr(options.table.storage),
        f"{options.table.storage}",
    )


def refused(lake: Lake) -> list[PwcError]:
    """The errors of a write, a commit, an abort, a read and an open that cannot work."""
    errors: list[PwcError] = []
    source = PwcDataSource(lake.all_options())
    for attempt in (
        lambda: source.streamWriter(schema=ID_AND_DAY, overwrite=False).write(iter([rows(1)])),
        lambda: source.writer(schema=ID_AND_DAY, overwrite=False).write(iter([rows(1)])),
        lambda: open_table(parse_options(lake.all_options(), purpose=Purpose.READ).table),
        source.schema,
    ):
        with pytest.raises(PwcError) as caught:
            attempt()
        errors.append(caught.value)
    return errors


def test_a_wrong_secret_is_not_in_the_error_that_says_so(s3_lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    errors = refused(s3_lake.with_options(**{"s3.secret-access-key": MARKER}))

    for error in errors:
        assert_silent(MARKER, texts(error))
    assert_silent(MARKER, caplog.text)


def test_a_bucket_that_does_not_exist_gives_no_secret_away(
    s3_lake: Lake, s3: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    lake = s3_lake.with_options(warehouse="s3://no-such-bucket-at-all/warehouse", createTable="false")

    for error in refused(lake):
        assert_silent(s3.secret_key, texts(error))
    assert_silent(s3.secret_key, caplog.text)


SECRET_OPTIONS = {
    "s3.access-key-id": "k3y-m4rk3r-0123456789abcdef",
    "s3.secret-access-key": MARKER,
    "s3.session-token": TOKEN,
}


@pytest.mark.parametrize("option", SECRET_OPTIONS)
def test_no_secret_option_is_in_the_error_of_a_refused_request(s3_lake: Lake, option: str) -> None:
    for error in refused(s3_lake.with_options(**SECRET_OPTIONS)):
        assert_silent(SECRET_OPTIONS[option], texts(error))


@pytest.mark.parametrize("option", SECRET_OPTIONS)
def test_no_secret_option_is_in_the_log_of_a_refused_request(
    s3_lake: Lake, caplog: pytest.LogCaptureFixture, option: str
) -> None:
    refused(s3_lake.with_options(**SECRET_OPTIONS))

    telling = {record.name for record in caplog.records if SECRET_OPTIONS[option] in record.getMessage()}
    assert telling == set()


def test_an_option_error_does_not_quote_secrets(s3_lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    bad = {
        **s3_lake.all_options(),
        "s3.secret-access-key": MARKER,
        "s3.secret-acces-key": MARKER,
        "catalog.token": MARKER,
        "targetFileSize": "huge",
        "warehouse": f"s3://key:{MARKER}@lake/warehouse",
    }

    with pytest.raises(PwcError) as caught:
        PwcDataSource(bad).streamWriter(schema=ID_AND_DAY, overwrite=False)

    assert_silent(MARKER, texts(caught.value))
    assert_silent(MARKER, caplog.text)


def test_an_aborted_write_logs_no_secret(s3_lake: Lake, s3: S3Server, caplog: pytest.LogCaptureFixture) -> None:
    message = s3_lake.write(rows(1))
    wrong = s3_lake.with_options(**{"s3.secret-access-key": MARKER})

    wrong.stream_writer().abort([message, None], 0)

    assert "behind" in caplog.text
    assert_silent(MARKER, caplog.text)
    assert_silent(s3.secret_key, caplog.text)
