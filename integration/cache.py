"""Where programs and JARs of others are kept: outside the repository, and once for all of its copies."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache"]


def cache(kind: str) -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paimon-sink" / kind
