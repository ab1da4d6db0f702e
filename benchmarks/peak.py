"""How much memory this process took at its peak. It imports nothing that would count."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

__all__ = ["peak_bytes"]


def peak_bytes() -> int:
    """Of this process alone. What getrusage says may be the peak of the parent, from before this program was loaded."""
    for line in _status():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _status() -> list[str]:
    try:
        return Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return []
