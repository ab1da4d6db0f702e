"""Locations and settings: what is accepted, what is refused before the first row, and what is never shown."""

from __future__ import annotations

import pickle
from typing import Any

import fsspec
import pytest

from paimon_sink.core.errors import OptionError, StorageError
from paimon_sink.storage.open import open_store
from paimon_sink.storage.settings import StorageSettings

SECRETS = {
    "s3.access-key-id": "AKIAEXAMPLE",
    "s3.secret-access-key": "very-secret-value",
    "s3.session-token": "token-value",
}


@pytest.mark.parametrize("scheme", ["ftp", "http", "https", "hdfs", "sftp", "smb", "webhdfs", "dbfs", "github"])
def test_a_store_without_exclusive_create_is_refused_by_name(scheme: str) -> None:
    with pytest.raises(StorageError, match=rf"Cannot write to {scheme}: it offers no exclusive create") as refusal:
        open_store(f"{scheme}://user:hunter2@host/lake", StorageSettings())

    assert "hunter2" not in str(refusal.value)
    assert "Use local disk, S3" in str(refusal.value)


@pytest.mark.parametrize("location", ["s4://bucket/lake", "nosuch:/lake", "c3://x"])
def test_an_unknown_scheme_is_refused(location: str) -> None:
    with pytest.raises(StorageError, match="this kind of store is unknown"):
        open_store(location, StorageSettings())


def test_the_short_form_of_a_scheme_is_not_taken_for_a_directory() -> None:
    with pytest.raises(StorageError, match="no exclusive create"):
        open_store("dbfs:/lake", StorageSettings())
    with pytest.raises(StorageError, match="needs the form s3://bucket/path"):
        open_store("s3:/bucket/lake", StorageSettings())


@pytest.mark.parametrize("location", ["", "  ", "s3://", "s3:///key", "memory://", "file://", "/a\0b", "file:///a%00b"])
def test_a_location_without_a_place_is_refused(location: str) -> None:
    with pytest.raises(StorageError):
        open_store(location, StorageSettings())


@pytest.mark.parametrize("location", ["s3://b/a%20b", "s3a://b/a%20b/", "s3n://b/a%20b", "S3A://b/a%20b"])
def test_all_names_of_s3_are_one_and_keys_stay_as_they_are(location: str) -> None:
    assert open_store(location, StorageSettings()).root == "s3://b/a%20b"


@pytest.mark.parametrize(
    ("scheme", "package", "extra"),
    [("s3", "s3fs", "s3"), ("s3a", "s3fs", "s3"), ("gs", "gcsfs", "gcs"), ("gcs", "gcsfs", "gcs")]
    + [(scheme, "adlfs", "azure") for scheme in ("abfs", "abfss", "az", "adl")],
)
def test_a_missing_package_comes_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, scheme: str, package: str, extra: str
) -> None:
    def not_installed(protocol: str) -> Any:
        raise ImportError(f"Install {package}")

    monkeypatch.setattr(fsspec, "get_filesystem_class", not_installed)

    with pytest.raises(StorageError, match=rf"needs the package {package}, .*pip install 'paimon-sink\[{extra}\]'"):
        open_store(f"{scheme}://container@account.dfs.core.windows.net/lake", StorageSettings())


def test_settings_survive_pickling_and_compare_by_value() -> None:
    settings = StorageSettings.from_options({**SECRETS, "s3.endpoint": "http://127.0.0.1:9000", "s3.region": "eu-1"})

    assert pickle.loads(pickle.dumps(settings)) == settings


def test_settings_never_show_their_secrets() -> None:
    settings = StorageSettings.from_options({**SECRETS, "s3.endpoint": "http://me:hunter2@127.0.0.1:9000"})

    for text in (repr(settings), str(settings), f"{settings}", repr(open_store("s3://bucket/x", settings))):
        assert not any(secret in text for secret in [*SECRETS.values(), "hunter2"])
    assert "secret_access_key='***'" in repr(settings)
    assert "session_token=None" in repr(StorageSettings())


def test_errors_never_show_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("s3://bucket/lake", StorageSettings.from_options(SECRETS))
    fs: Any = store._fs  # type: ignore[attr-defined]

    def talkative(path: str) -> bytes:
        raise OSError(f"signed with {SECRETS['s3.secret-access-key']} for {SECRETS['s3.access-key-id']}")

    monkeypatch.setattr(fs, "cat_file", talkative)

    with pytest.raises(StorageError) as failure:
        store.read("s3://bucket/lake/file")
    assert "signed with *** for ***" in str(failure.value)


def test_s3fs_gets_every_setting_and_no_listing_cache() -> None:
    options = {**SECRETS, "s3.endpoint": "http://127.0.0.1:9000", "s3.region": "eu-1", "path": "ignored"}

    arguments = StorageSettings.from_options(options).s3fs_arguments()

    assert arguments["key"] == "AKIAEXAMPLE"
    assert arguments["secret"] == "very-secret-value"
    assert arguments["token"] == "token-value"
    assert arguments["endpoint_url"] == "http://127.0.0.1:9000"
    assert arguments["client_kwargs"] == {"region_name": "eu-1"}
    assert arguments["use_listings_cache"] is False


def test_without_keys_s3fs_is_left_to_the_aws_environment() -> None:
    assert not {"key", "secret", "token", "endpoint_url"} & StorageSettings.from_options({}).s3fs_arguments().keys()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"s3.endpoint": "127.0.0.1:9000"}, "must begin with http"),
        ({"s3.access-key-id": "a"}, "belong together"),
        ({"s3.secret-access-key": "hidden-value"}, "belong together"),
        ({"s3.session-token": "hidden-value"}, "s3.session-token needs"),
    ],
    ids=["endpoint", "key alone", "secret alone", "token alone"],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem) as refusal:
        StorageSettings.from_options(options)

    assert "hidden-value" not in str(refusal.value)
