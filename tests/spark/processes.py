"""Drivers and clusters as processes: each leads a session of its own, which can be killed whole or in part."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from tests.spark.jvm import SHORT_LIVED
from tests.support.descendants import dying_with_us

__all__ = ["EXECUTORS", "HOST", "ClusterDaemons", "ConnectServer", "Driver", "Job", "is_alive", "parent_of", "until"]

ROOT = Path(__file__).parent.parent.parent
HOST = "127.0.0.1"
_LONGEST_WAIT_S = 240.0
_CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
}
"""What fits on the workers of ``ClusterDaemons``."""


def until(holds: Callable[[], bool], what: str) -> None:
    """Look again and again. The bound is for what never comes: it says nothing about how long things take."""
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Never came: {what}.")
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """A dead process that waits to be collected is dead."""
    state = _stat(pid)
    return state is not None and state[0] not in "ZX"


def _stat(pid: int) -> tuple[str, int, int] | None:
    """The state, the parent and the session of a process."""
    try:
        # The name of the command stands in brackets and may hold anything; the rest follows the last one.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1]), int(fields[3])


def parent_of(pid: int) -> int:
    found = _stat(pid)
    assert found is not None, f"process {pid} is gone"
    return found[1]


class _Session:
    """A process, and whatever it starts. Leaving the ``with`` block ends all of it."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str]) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=env, start_new_session=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def exit_status(self) -> int | None:
        return self._process.poll()

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def kill(self, *, sparing: int | None = None) -> None:
        """SIGKILL to all that lives in the session, until nothing does but the one that is spared."""

        def all_dead() -> bool:
            living = [pid for pid in self._members() if pid != sparing]
            for pid in living:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not living and self._process.poll() is not None

        until(all_dead, f"the death of session {self._process.pid}")

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])

    def _members(self) -> list[int]:
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        stats = {pid: _stat(pid) for pid in pids}
        session = self._process.pid
        return [pid for pid, stat in stats.items() if stat is not None and stat[2] == session and stat[0] not in "ZX"]


# ---------------------------------------------------------------- a driver


@dataclass(frozen=True)
class Job:
    """A streaming query for a driver: all that is in the source now, through the directed sink."""

    source: str
    checkpoint: str
    options: Mapping[str, str]
    files_a_batch: int = 1
    master: str = "local[2]"
    conf: Mapping[str, str] = field(default_factory=dict)


class Driver(_Session):
    """Starts its Spark session at once and its query when it is told to: the next can warm up while one runs."""

    def __init__(self, job: Job, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        super().__init__(
            [sys.executable, "-m", "tests.spark.driver", json.dumps(asdict(job))],
            log=scratch / "driver.log",
            env=_environment(scratch),
        )

    def go(self) -> None:
        self.say("go")

    def end(self) -> int:
        """Wait for it; the exit status, which is minus the signal when one killed it."""
        until(lambda: self.exit_status() is not None, "the end of the driver")
        status = self.exit_status()
        assert status in (0, -signal.SIGKILL), self.tail()
        return int(status)


def _environment(scratch: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "TMPDIR": str(scratch),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
        "SPARK_SUBMIT_OPTS": f"{SHORT_LIVED} -Djava.io.tmpdir={scratch}",
    }


# ---------------------------------------------------------------- a cluster


class ClusterDaemons:
    """A standalone master and two workers of one core each, on hosts with different names."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._env = _environment(scratch)
        self._scratch = scratch
        self._daemons: list[_Session] = []
        self._port = _free_port()

    @property
    def master(self) -> str:
        return f"spark://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        try:
            self._start("master.Master", "--host", HOST, "--port", str(self._port))
            until(self._answers, "the Spark master")
            # Spark runs no second attempt of a task on the host of the first, and it knows hosts by their names.
            for host in (HOST, "localhost"):
                work = str(self._scratch / f"work-{host}")
                self._start(
                    "worker.Worker", "--host", host, "--cores", "1", "--memory", "1g", "--work-dir", work, self.master
                )
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.__exit__(None, None, None)

    def _start(self, name: str, *arguments: str) -> None:
        command = dying_with_us(
            [_in_spark_home("spark-class"), f"org.apache.spark.deploy.{name}", "--webui-port", "0", *arguments]
        )
        log = self._scratch / f"{len(self._daemons)}.log"
        self._daemons.append(_Session(command, log=log, env=self._env))

    def _answers(self) -> bool:
        assert self._daemons[0].exit_status() is None, self._daemons[0].tail()
        return _listens(self._port)


# ---------------------------------------------------------------- a Spark Connect server


class ConnectServer(_Session):
    """A Spark Connect server from the pip package. Being entered, it answers."""

    def __init__(self, master: str, conf: Mapping[str, str], scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._port = _free_port()
        settings = {
            **conf,
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self._port),
        }
        arguments = [argument for key, value in settings.items() for argument in ("--conf", f"{key}={value}")]
        command = [_in_spark_home("spark-submit"), "--master", master, "--class", _CONNECT_SERVER, *arguments]
        # Spark takes the server for a daemon, and would give it as little memory as those.
        env = {**_environment(scratch), "SPARK_DAEMON_MEMORY": "1g"}
        super().__init__(dying_with_us(command), log=scratch / "server.log", env=env)

    @property
    def address(self) -> str:
        return f"sc://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        try:
            until(self._answers, "the Spark Connect server")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _answers(self) -> bool:
        assert self.exit_status() is None, self.tail()
        return _listens(self._port)


def _in_spark_home(name: str) -> str:
    return str(Path(pyspark.__file__).parent / "bin" / name)


def _free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False
