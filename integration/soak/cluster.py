"""A Spark standalone cluster and a driver on it, as processes. What is gone is started again, as a supervisor does."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pyspark

from integration.soak.place import Place
from integration.soak.processes import Daemon, Process, kill_sessions, processes
from tests.spark.jvm import QUICKLY_COMPILED

__all__ = ["HOST", "WORKERS", "WRITERS", "Cluster", "SoakError", "free_port"]

HOST = "127.0.0.1"
_ROOT = Path(__file__).parents[2]
WORKERS = 2
_READY_WITHIN_S = 60.0
_DRIVER_EXITS_IN_A_ROW = 5

_EXECUTOR = "CoarseGrainedExecutorBackend"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_PYTHON = "pyspark.daemon"
_COMMITS = ("python_streaming_sink_runner", "commit_data_source_write")
_SOURCES = ("python_streaming_source_runner",)
WRITERS = "integration.soak.driver"
"""The driver of streams and batch jobs that write."""


class SoakError(Exception):
    """The soak could not go on. The message says why."""


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


class Cluster:
    """One master, two workers with one executor each, and a driver. Leaving the ``with`` block ends all of them."""

    def __init__(
        self, place: Place, master_port: int, *, janitor: Sequence[str] | None = None, driver: str = WRITERS
    ) -> None:
        """``janitor``: what it is told beside the directory; None: there is none. ``driver``: the module that runs."""
        self._place = place
        self._driver_module = driver
        self._janitor_arguments = janitor
        self._janitor: Daemon | None = None
        self._master_url = f"spark://{HOST}:{master_port}"
        self._master_port = master_port
        self._sessions: list[int] = []
        self._env = self._environment()
        self._master: Daemon | None = None
        self._workers: list[Daemon] = []
        self._driver: Daemon | None = None
        self._exits_in_a_row = 0
        self.driver_starts = 0
        self.worker_starts = 0

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kill_sessions(self._sessions)

    def start(self) -> None:
        port = str(self._master_port)
        self._master = self._spark("org.apache.spark.deploy.master.Master", "--port", port, log="master.log")
        self._wait_for_master(self._master)
        self._workers = [self._start_worker(number) for number in range(WORKERS)]
        self._driver = self._start_driver()
        if self._janitor_arguments is not None:
            self._janitor = self._start_janitor()

    # ---------------------------------------------------------------- what comes back

    def tend(self) -> None:
        """Start again what is gone. A driver that leaves by itself again and again is an error."""
        for number, worker in enumerate(self._workers):
            if worker.exit_status() is not None:
                self._workers[number] = self._start_worker(number)
        if self._janitor is not None and (left := self._janitor.exit_status()) is not None:
            if left > 0:
                raise SoakError(f"The janitor left by itself: {self._janitor.log}")
            self._janitor = self._start_janitor()
        status = self._driver.exit_status() if self._driver is not None else None
        if self._driver is None or status is None or status == 0:
            return
        self._exits_in_a_row = self._exits_in_a_row + 1 if status > 0 else 0
        if self._exits_in_a_row >= _DRIVER_EXITS_IN_A_ROW:
            raise SoakError(f"The driver left by itself {self._exits_in_a_row} times in a row: {self._driver.log}")
        self._driver = self._start_driver()

    def driver_ended_well(self) -> bool:
        return self._driver is not None and self._driver.exit_status() == 0

    # ---------------------------------------------------------------- what there is to kill

    def kill_driver(self, *, with_workers: bool) -> bool:
        """The driver and its JVM; its Python workers, a commit among them, at the same time or when they notice."""
        if self._driver is None or self._driver.exit_status() is not None:
            return False
        self._driver.kill()
        if with_workers:
            self._driver.end()
        return True

    def kill_worker_daemon(self, number: int) -> bool:
        worker = self._workers[number]
        return any(process.kill() for process in processes([worker.session]) if _WORKER in process.command)

    def kill_janitor(self) -> bool:
        if self._janitor is None or self._janitor.exit_status() is not None:
            return False
        self._janitor.kill()
        return True

    def executors(self) -> list[Process]:
        return [process for process in self._on_workers() if _EXECUTOR in process.command]

    def python_workers(self) -> list[Process]:
        """The Python processes below the executors: the daemons and what they forked."""
        return [process for process in self._on_workers() if _PYTHON in process.command]

    def commit_processes(self) -> list[Process]:
        """The Python processes below the driver's JVM that run commits: daemons, and what they forked."""
        return self._below_the_driver(_COMMITS)

    def source_processes(self) -> list[Process]:
        """The Python process below the driver's JVM that says where a batch of a stream ends and what is in it."""
        return self._below_the_driver(_SOURCES)

    def _below_the_driver(self, names: Sequence[str]) -> list[Process]:
        if self._driver is None:
            return []
        found = [p for p in processes([self._driver.session]) if any(name in p.command for name in names)]
        return [process for process in found if process.parent in {other.pid for other in found}] or found

    def _on_workers(self) -> list[Process]:
        return processes([worker.session for worker in self._workers])

    # ---------------------------------------------------------------- starting

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self._place.temporary),
            "TMPDIR": str(self._place.temporary),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICKLY_COMPILED,
            # An application whose executors keep dying would be given up after ten.
            "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1 -Dspark.master.rest.enabled=false",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH")))),
        }

    def _start(self, command: list[str], log: str) -> Daemon:
        daemon = Daemon(command, env=self._env, log=self._place.logs / log)
        self._sessions.append(daemon.session)
        return daemon

    def _spark(self, name: str, *arguments: str, log: str) -> Daemon:
        spark_class = str(Path(self._env["SPARK_HOME"]) / "bin" / "spark-class")
        return self._start([spark_class, name, "--host", HOST, "--webui-port", "0", *arguments], log)

    def _start_worker(self, number: int) -> Daemon:
        self.worker_starts += 1
        work = str(self._place.temporary / f"worker-{number}")
        arguments = ["--cores", "1", "--memory", "768m", "--work-dir", work, self._master_url]
        return self._spark(_WORKER, *arguments, log=f"worker-{number}.log")

    def _start_janitor(self) -> Daemon:
        command = [sys.executable, "-m", "integration.soak.janitor", str(self._place.root)]
        return self._start([*command, *(self._janitor_arguments or ())], "janitor.log")

    def _start_driver(self) -> Daemon:
        self.driver_starts += 1
        return self._start([sys.executable, "-m", self._driver_module, str(self._place.root)], "driver.log")

    def _wait_for_master(self, master: Daemon) -> None:
        deadline = time.monotonic() + _READY_WITHIN_S
        while time.monotonic() < deadline and master.exit_status() is None:
            with suppress(OSError), socket.create_connection((HOST, self._master_port), timeout=1):
                return
            time.sleep(0.1)
        raise SoakError(f"The Spark master did not start: {master.log}")
