"""No secret of a catalog reaches a message, a file of the table or a log record. This file is about Iceberg only."""

from __future__ import annotations

import logging
import pickle

import pytest
from sqlalchemy import make_url

from tests.support.batches import opened
from tests.support.lake import Lake, rows
from tests.support.old_messages import as_version_1
from tests.support.s3 import S3Server

pytestmark = pytest.mark.fault(40)

PASSWORD = "p4ssw0rd-m4rk3r-0123456789abcdef"


def assert_kept(secret: str, lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    """Create, append, replay and overwrite, with every logger of every library at its last word."""
    with caplog.at_level(logging.DEBUG):
        message = lake.append(0, rows(1, 2))
        lake.append(0, rows(1, 2))
        lake.commit(1, lake.write(rows(3)), overwrite=True)
        table = lake.open()
        files = [table.store.read(path) for path in table.store.walk_files(table.location)]

    assert len(files) > 8
    assert lake.ids() == [3]
    plain = [as_version_1(message.payload), *(file.entry for file in opened(message).files)]
    assert not [seen for seen in (*plain, pickle.dumps(message), *files) if secret.encode() in seen]
    assert secret not in caplog.text


def test_the_password_of_a_database_is_in_nothing_that_is_written(
    iceberg_postgres_lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    uri = make_url(iceberg_postgres_lake.options["catalog.uri"])
    # A server that trusts everybody takes any.
    password = str(uri.password or PASSWORD)
    named = uri.set(password=password).render_as_string(hide_password=False)

    assert_kept(password, iceberg_postgres_lake.with_options(**{"catalog.uri": named}), caplog)


@pytest.mark.s3
def test_the_credential_of_a_rest_catalog_is_in_nothing_that_is_written(
    iceberg_rest_lake: Lake, iceberg_server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    assert iceberg_server.secret_key in iceberg_rest_lake.options["catalog.credential"]

    assert_kept(iceberg_server.secret_key, iceberg_rest_lake, caplog)
