"""A deletion intent: the file in which ``pwc clean`` lists what it is about to delete.

It lets cleaning and a commit of old files detect each other. Cleaning writes its intent and then reads manifests; such
a commit writes its manifests and then reads intents. Whichever comes second sees the other and gives way.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable

from paimon_sink.core.strict_json import is_text, read_json

__all__ = ["decode_deletion_intent", "encode_deletion_intent", "is_deletion_intent", "new_temp_name"]

_DOOMED = "doomed"
_INTENT_NAME = re.compile(rf".*\b{_DOOMED}\.[0-9a-f]{{32}}\.[a-z]+")


def new_temp_name(subject: str = _DOOMED) -> str:
    """A unique name. Formats make it a temporary file's, so that one left by a crash is cleaned up as an orphan."""
    return f"{subject}.{uuid.uuid4().hex}"


def is_deletion_intent(file_name: str) -> bool:
    return _INTENT_NAME.fullmatch(file_name) is not None


def encode_deletion_intent(paths: Iterable[str]) -> bytes:
    return json.dumps(sorted(paths)).encode("utf-8")


def decode_deletion_intent(raw: bytes) -> frozenset[str]:
    """The paths in it. Raises ``ValueError`` when it is malformed."""
    paths = read_json(raw)
    if not isinstance(paths, list) or not all(map(is_text, paths)):
        raise ValueError("a deletion intent is a list of paths")
    return frozenset(paths)
