"""Processes as the kernel lists them, and sessions that can be ended whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Daemon", "Process", "kill_sessions", "processes"]

_LONGEST_DEATH_S = 30.0

# Asks the kernel to kill the process with us, however we die; ``exec`` keeps that.
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    session: int
    command: str

    def kill(self) -> bool:
        """SIGKILL. False when it was gone before."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True


def processes(sessions: Sequence[int]) -> list[Process]:
    """What lives in these sessions. The dead that wait to be collected do not count."""
    wanted = set(sessions)
    found = []
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        with suppress(OSError):
            # The name of the command stands in brackets and may hold anything; the rest follows the last one.
            state, parent, _, session = (directory / "stat").read_text().rpartition(") ")[2].split()[:4]
            if int(session) in wanted and state not in "ZX":
                command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(Process(int(directory.name), int(parent), int(session), command))
    return found


def kill_sessions(sessions: Sequence[int]) -> None:
    """SIGKILL to all that lives in these sessions, until nothing does."""
    deadline = time.monotonic() + _LONGEST_DEATH_S
    while living := processes(sessions):
        for process in living:
            process.kill()
        if time.monotonic() > deadline:
            raise TimeoutError(f"Processes do not die: {', '.join(str(process.pid) for process in living)}.")
        time.sleep(0.02)


class Daemon:
    """A process that we started as the leader of a session of its own. Its children stay in that session."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(env),
                start_new_session=True,
            )
        self.log = log

    @property
    def session(self) -> int:
        return self._process.pid

    def exit_status(self) -> int | None:
        """None while it runs, minus the signal when one killed it."""
        return self._process.poll()

    def kill(self) -> None:
        """SIGKILL to its process group: a driver's JVM is in it, its Python workers are not."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Nothing of the session is left."""
        kill_sessions([self.session])
        self._process.wait()
