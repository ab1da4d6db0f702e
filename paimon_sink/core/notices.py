"""The notice that cleaning up leaves while it runs: which files it is about to delete.

It makes cleaning and an old batch see each other. Cleaning puts up its notice and then looks for manifests; a commit of
old files writes its manifests and then looks for notices. Whichever comes second sees the other and lets go.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable

from paimon_sink.core.strict_json import is_text, read_json

__all__ = ["NOTICE_DIRECTORY", "decode_notice", "encode_notice", "is_notice", "new_notice_name"]

NOTICE_DIRECTORY = "pwc/clean"
"""Relative to the table."""
_PREFIX, _SUFFIX = ".doomed.", ".tmp"


def new_notice_name() -> str:
    """A temporary file by its form, so that one left by a crash is cleaned up like any other."""
    return f"{_PREFIX}{uuid.uuid4().hex}{_SUFFIX}"


def is_notice(name: str) -> bool:
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def encode_notice(paths: Iterable[str]) -> bytes:
    return json.dumps(sorted(paths)).encode("utf-8")


def decode_notice(raw: bytes) -> frozenset[str]:
    """Raises ``ValueError`` when it is none."""
    paths = read_json(raw)
    if not isinstance(paths, list) or not all(map(is_text, paths)):
        raise ValueError("a notice is a list of paths")
    return frozenset(paths)
