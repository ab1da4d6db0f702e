"""Engines that look whether a name is free, and then rename a file to it: that replaces what came in between."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from pypaimon.common.options import Options
from pypaimon.filesystem.local_file_io import LocalFileIO

from paimon_sink.core.errors import PutReplacedError
from paimon_sink.storage.open import open_store
from paimon_sink.storage.settings import StorageSettings
from paimon_sink.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path), StorageSettings())


def test_a_rename_that_was_decided_before_our_put_cannot_replace_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "snapshot-1"
    renames = Path.rename
    puts: list[bool] = []

    def rename_after_our_put(source: Path, target: Any) -> Path:
        puts.append(store.put_if_absent(str(path), b"ours"))
        return renames(source, target)

    monkeypatch.setattr(Path, "rename", rename_after_our_put)
    theirs = LocalFileIO(str(tmp_path), Options({})).try_to_write_atomic(str(path), "theirs")

    assert (puts, theirs) == ([True], False)
    assert path.read_bytes() == b"ours"
    assert os.listdir(tmp_path) == ["snapshot-1"]


def test_a_put_that_was_replaced_at_once_says_so(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "snapshot-1"
    theirs = tmp_path / f".snapshot-1.{uuid.uuid4()}.tmp"
    theirs.write_bytes(b"theirs")
    link = os.link

    def link_and_be_replaced(source: str, target: str) -> None:
        link(source, target)
        theirs.rename(path)

    monkeypatch.setattr(os, "link", link_and_be_replaced)
    with pytest.raises(PutReplacedError, match="another engine renamed its own file over it"):
        store.put_if_absent(str(path), b"ours")

    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["snapshot-1"]


def test_temporary_files_of_other_names_and_of_ours_are_left_alone(store: Store, tmp_path: Path) -> None:
    others = [f".snapshot-12.{uuid.uuid4()}.tmp", f".LATEST.{uuid.uuid4()}.tmp", f".snapshot-1.{uuid.uuid4().hex}.tmp"]
    for name in others:
        (tmp_path / name).touch()

    assert store.put_if_absent(str(tmp_path / "snapshot-1"), b"ours")

    assert sorted(os.listdir(tmp_path)) == sorted([*others, "snapshot-1"])
