"""Emulators of Azure's and Google's object stores, built from their registries once and kept outside the repository.

Azurite is Microsoft's own, from npm; fake-gcs-server is what many test Google's client libraries with, from
its Go module. Both listen on this machine only and keep everything in memory.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.cache import cache

__all__ = ["EmulatorError", "azurite", "fake_gcs"]

_AZURITE = "3.35.0"
_FAKE_GCS = "v1.52.3"
_GCS_MODULE = "github.com/fsouza/fake-gcs-server"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's own account and key, which stand in its manual: they open nothing else."""


class EmulatorError(RuntimeError):
    """There is no such emulator to be had here."""


@contextmanager
def azurite() -> Iterator[str]:
    """A connection string, as AZURE_STORAGE_CONNECTION_STRING wants it."""
    program = _npm("azurite", _AZURITE) / "azurite-blob"
    with tempfile.TemporaryDirectory() as directory, _free_port() as port:
        # The clients are newer than the emulator, whose protocol they speak.
        switches = ["--skipApiVersionCheck", "--inMemoryPersistence", "--disableTelemetry", "--silent"]
        with _running([str(program), *switches, "--blobHost", "127.0.0.1", "--blobPort", str(port)], port, directory):
            yield (
                f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};"
                f"BlobEndpoint=http://127.0.0.1:{port}/{_ACCOUNT};"
            )


@contextmanager
def fake_gcs() -> Iterator[str]:
    """An address, as STORAGE_EMULATOR_HOST wants it."""
    program = _go("fake-gcs-server", _GCS_MODULE, _FAKE_GCS)
    with tempfile.TemporaryDirectory() as directory, _free_port() as port:
        address = f"http://127.0.0.1:{port}"
        switches = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", str(port)]
        with _running([str(program), *switches, "-external-url", address, "-log-level", "error"], port, directory):
            yield address


@contextmanager
def _running(command: list[str], port: int, directory: str) -> Iterator[None]:
    log = Path(directory) / "log"
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=directory)
        try:
            until = time.monotonic() + 60
            while not _answers(port):
                if process.poll() is not None or time.monotonic() > until:
                    raise EmulatorError(f"{command[0]} does not answer: {log.read_text()[-1000:]}")
                time.sleep(0.1)
            yield
        finally:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    yield port


def _npm(package: str, version: str) -> Path:
    """The directory of its programs."""
    directory = cache("npm") / f"{package}-{version}"
    if not directory.is_dir():
        npm = _tool("npm", package)
        with _beside(directory) as new:
            _build(
                [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(new), f"{package}@{version}"]
            )
            os.replace(new, directory)
    return directory / "node_modules" / ".bin"


def _go(program: str, module: str, version: str) -> Path:
    binary = cache("bin") / f"{program}-{version}" / program
    if not binary.is_file():
        go = _tool("go", program)
        with _beside(binary.parent) as new:
            _build([go, "install", "-ldflags=-s -w", f"{module}@{version}"], GOBIN=str(new))
            shutil.rmtree(binary.parent, ignore_errors=True)
            os.replace(new, binary.parent)
    return binary


def _tool(name: str, wanted: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise EmulatorError(f"There is no {name} to fetch {wanted} with. Install it, and try again.")
    return found


@contextmanager
def _beside(directory: Path) -> Iterator[Path]:
    """Built beside its place and moved there: a build that was stopped leaves no half program behind."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    print(f"Building {directory.name} into {directory.parent} (once, a minute or two) …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".build-") as parent:
        new = Path(parent) / "new"
        new.mkdir()
        yield new


def _build(command: list[str], **environment: str) -> None:
    done = subprocess.run(
        command, env={**os.environ, **environment}, cwd=Path.home(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise EmulatorError(f"{' '.join(command[:2])} failed: {(done.stdout + done.stderr)[-500:]}")
