"""Listings on S3, which the store sends itself: every page of them, and no request more."""

from __future__ import annotations

from typing import Any

import pytest

from paimon_sink.storage.remote import RemoteStore
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import Store


class TwoAPage:
    """As much of s3fs as a listing takes, on a server that gives two names a page."""

    def __init__(self, *keys: str) -> None:
        self._keys = sorted(keys)

    def split_path(self, path: str) -> tuple[str, str, None]:
        bucket, _, key = path.removeprefix("s3://").partition("/")
        return bucket, key, None

    def call_s3(self, method: str, **asked: Any) -> dict[str, Any]:
        assert (method, asked["Delimiter"]) == ("list_objects_v2", "/")
        start = int(asked.get("ContinuationToken", 0))
        below = [key for key in self._keys if key.startswith(asked["Prefix"])]
        page: dict[str, Any] = {"IsTruncated": start + 2 < len(below), "NextContinuationToken": str(start + 2)}
        for key in below[start : start + 2]:
            name, slash, _ = key.removeprefix(asked["Prefix"]).partition("/")
            kind, field = ("CommonPrefixes", "Prefix") if slash else ("Contents", "Key")
            page.setdefault(kind, []).append({field: asked["Prefix"] + name + slash})
        return page


def test_a_listing_is_of_all_pages() -> None:
    keys = ("t/", "t/a", "t/b", "t/sub/c", "t/sub/d", "t/z", "t2/other")
    store = RemoteStore("s3", "s3://lake/t", StorageSettings(), filesystem=TwoAPage(*keys))

    assert store.list("s3://lake/t") == ["a", "b", "sub", "z"]
    assert store.list("s3://lake/nothing") == []


@pytest.mark.s3
def test_a_listing_on_s3_goes_on_page_by_page(s3_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c", "d", "sub/e", "ü b", "z"):
        s3_store.write(s3_store.join(s3_store.root, "t", name), b"x")
    filesystem: Any = s3_store._fs  # type: ignore[attr-defined]
    send, pages = filesystem.call_s3, []

    def by_two(method: str, **arguments: Any) -> Any:
        pages.append(method)
        return send(method, MaxKeys=2, **arguments)

    monkeypatch.setattr(filesystem, "call_s3", by_two)

    assert s3_store.list(s3_store.join(s3_store.root, "t")) == ["a", "b", "c", "d", "sub", "z", "ü b"]
    assert len(pages) >= 4


@pytest.mark.s3
def test_a_listing_of_nothing_on_s3_is_one_request(s3_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem: Any = s3_store._fs  # type: ignore[attr-defined]
    send, asked = filesystem.call_s3, []

    def noting(method: str, **arguments: Any) -> Any:
        asked.append(method)
        return send(method, **arguments)

    monkeypatch.setattr(filesystem, "call_s3", noting)

    assert s3_store.list(s3_store.join(s3_store.root, "nothing")) == []
    assert asked == ["list_objects_v2"]
