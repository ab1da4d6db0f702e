"""The notice that cleaning up leaves while it runs: which files it is about to delete.

It makes cleaning and an old batch see each other. Cleaning puts up its notice and then looks for manifests; a commit of
old files writes its manifests and then looks for notices. Whichever comes second sees the other and lets go.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable

from paimon_sink.core.strict_json import is_text, read_json

__all__ = ["decode_deletion_intent", "encode_deletion_intent", "is_deletion_intent", "new_temp_name"]

_DOOMED = "doomed"
_NOTICE = re.compile(rf".*\b{_DOOMED}\.[0-9a-f]{{32}}\.[a-z]+")


def new_temp_name(subject: str = _DOOMED) -> str:
    """A name of its own. Formats give it the form of a temporary file: one left by a crash is cleaned up like any."""
    return f"{subject}.{uuid.uuid4().hex}"


def is_deletion_intent(file_name: str) -> bool:
    return _NOTICE.fullmatch(file_name) is not None


def encode_deletion_intent(paths: Iterable[str]) -> bytes:
    return json.dumps(sorted(paths)).encode("utf-8")


def decode_deletion_intent(raw: bytes) -> frozenset[str]:
    """Raises ``ValueError`` when it is none."""
    paths = read_json(raw)
    if not isinstance(paths, list) or not all(map(is_text, paths)):
        raise ValueError("a notice is a list of paths")
    return frozenset(paths)
