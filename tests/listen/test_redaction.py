"""What a listener was trusted with does not come back in its errors, which are kept in the table."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from paimon_sink.errors import OptionError
from paimon_sink.listen.loading import check_listeners
from paimon_sink.listeners import CommitEvent, ListenerContext
from tests.support.batches import sink_options
from tests.support.lake import Lake, rows

CARELESS, STILLBORN = f"{__name__}:Careless", f"{__name__}:Stillborn"
NOTIFIED = {
    "hook": "https://someone:pa55word@hooks.example/in?token=abc%2Fdef&kind=done",
    "api-key": "k3y-of-mine",
    "page": "https://hooks.example",
    "webhook": "https://hooks.example/services/T0KEN99",
}
SECRETS = ("pa55word", "abc/def", "abc%2Fdef", "k3y-of-mine", "T0KEN99", "of-the-store", "of-the-catalog")


class Careless:
    """Says all it knows when it fails."""

    def __init__(self, context: ListenerContext) -> None:
        self._settings = dict(context.settings)

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        raise ConnectionError(f"cannot reach {self._settings}, not even abc/def or of-the-store or of-the-catalog")


class Stillborn(Careless):
    def __init__(self, context: ListenerContext) -> None:
        raise ValueError(str(dict(context.settings)))


@pytest.fixture
def lake(iceberg_sqlite_lake: Lake) -> Lake:
    """One with secrets of its catalog, too."""
    Path(iceberg_sqlite_lake.options["warehouse"]).mkdir()
    return told(iceberg_sqlite_lake, CARELESS)


def told(lake: Lake, listener: str) -> Lake:
    settings = {f"listener.{listener}.{key}": value for key, value in NOTIFIED.items()}
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "of-the-store"}
    if lake.format == "iceberg":
        keys |= {
            "catalog.type": "sql",
            "catalog.uri": f"sqlite:///{lake.options['warehouse']}/catalog.db",
            "catalog.s3.secret-access-key": "of-the-catalog",
        }
    return Lake(lake.options, lake.table, {**lake.extra, "listeners": listener, **settings, **keys})


def test_neither_the_table_nor_the_log_shows_a_secret(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    lake.append(0, rows(1))

    table = lake.open()
    kept = b"".join(table.store.read(path) for path in table.store.walk_files(table.location)).decode(
        "utf-8", "replace"
    )
    for shown in (kept, caplog.text):
        assert "cannot reach" in shown
        assert "hooks.example" in shown
        assert not [secret for secret in SECRETS if secret in shown]


def test_one_that_cannot_be_made_says_why_without_them(local_lake: Lake) -> None:
    options = sink_options(told(local_lake, STILLBORN))
    with pytest.raises(OptionError, match="cannot be made") as refused:
        check_listeners(options.listeners, options.table)
    assert not [secret for secret in SECRETS if secret in str(refused.value)]
    assert refused.value.__cause__ is None
