"""The driver of the demo as processes: a session of its own that can be killed whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from paimon_sink.cli.demo.place import Place

__all__ = ["Driver"]

_LONGEST_DEATH_S = 30.0


class Driver:
    """A running driver with its JVM and Python workers. Leaving the ``with`` block ends all of them."""

    def __init__(self, place: Place) -> None:
        self._gone = False
        place.started.unlink(missing_ok=True)
        here = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "TMPDIR": str(place.temporary),
            "SPARK_LOCAL_DIRS": str(place.temporary),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with place.driver_log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "paimon_sink.cli.demo.driver", str(place.root), place.table_format],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=here,
                start_new_session=True,
            )

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_status(self) -> int | None:
        """None while the driver runs, minus the signal when one killed it."""
        return self._process.poll()

    def kill(self) -> None:
        """SIGKILL to whatever of the session still lives, until nothing does. Returns when the system says so."""
        if self._gone:
            return
        deadline = time.monotonic() + _LONGEST_DEATH_S
        while True:
            living = _living(self.pid)
            if not living and self._process.poll() is not None:
                break
            for pid in living:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise TimeoutError(f"Processes of the demo's driver do not die: {', '.join(map(str, living))}.")
            time.sleep(0.02)
        self._gone = True
        if self._process.stdin is not None:
            self._process.stdin.close()


def _living(session: int) -> list[int]:
    """The processes of a session. Dead ones that wait to be collected do not count: nothing of them runs."""
    return [pid for pid, state in _processes() if state not in "ZX" and _session_of(pid) == session]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _processes() -> list[tuple[int, str]]:
    """Every process with the letter of its state."""
    proc = Path("/proc")
    if not (proc / "self/stat").exists():
        listed = subprocess.run(["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=True).stdout
        return [(int(pid), state[0]) for pid, state in (line.split(maxsplit=1) for line in listed.splitlines())]
    processes: list[tuple[int, str]] = []
    for directory in proc.iterdir():
        if directory.name.isdigit():
            with suppress(OSError):
                # The name of the command stands in brackets and may hold anything; the state follows the last one.
                processes.append((int(directory.name), (directory / "stat").read_text().rpartition(") ")[2][0]))
    return processes
