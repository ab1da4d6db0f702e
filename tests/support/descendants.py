"""Processes that tests start: they die with us, and whether any is left can be seen."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["dying_with_us", "processes_that_name"]

# Asks the kernel to kill the process with us, however we die; ``exec`` keeps that.
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def dying_with_us(command: Sequence[str]) -> list[str]:
    """The command, in a process that does not outlive this one."""
    return [sys.executable, "-I", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]


def processes_that_name(directory: Path) -> list[str]:
    """Command lines of whatever still runs there; daemons, drivers, JVMs and workers all carry the directory."""
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(process.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [line for line in lines if str(directory) in line]
