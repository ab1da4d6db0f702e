"""MinIO, built from its Go module once and kept outside the repository.

python -m integration.minio         builds it if need be and prints the directory it is in, to be put on PATH
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from integration.cache import cache

__all__ = ["MinioError", "minio"]

_MODULE = "github.com/minio/minio"
# RELEASE.2025-09-07T16-13-09Z, the release that docker-compose.yml and tests/support/s3.py name. Its tags are none that
# Go reads as versions; this is Go's own name for the commit.
_VERSION = "v0.0.0-20250907161309-07c3a429bfed"
_VARIABLE = "PWC_MINIO"


class MinioError(RuntimeError):
    """There is no MinIO to be had here."""


def minio() -> Path:
    """Where the server's binary lies. Builds it when it is not there yet: some minutes, once."""
    named = os.environ.get(_VARIABLE)
    if named:
        if not os.access(named, os.X_OK) or Path(named).name != "minio":
            raise MinioError(f"{_VARIABLE} names {named}, which is not a program called minio.")
        return Path(named)
    binary = cache("bin") / f"minio-{_VERSION}" / "minio"
    if not binary.is_file():
        _build(binary)
    return binary


def _build(binary: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise MinioError(
            f"MinIO is not in {binary.parent} and there is no go to build it. Install Go 1.24 or newer, name a "
            f"binary in {_VARIABLE}, or start Docker."
        )
    binary.parent.mkdir(parents=True, exist_ok=True)
    print(f"Building MinIO into {binary.parent} (once, some minutes) …", file=sys.stderr, flush=True)
    # Built beside its place and moved there: a build that was stopped leaves no half program behind.
    with tempfile.TemporaryDirectory(dir=binary.parent, prefix=".build-") as directory:
        done = subprocess.run(
            [go, "install", "-ldflags=-s -w", f"{_MODULE}@{_VERSION}"],
            env={**os.environ, "GOBIN": directory},
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )
        built = Path(directory) / "minio"
        if done.returncode or not built.is_file():
            lines = [line for line in done.stderr.splitlines() if not line.startswith("go: downloading")]
            raise MinioError(
                f"Go cannot build {_MODULE}@{_VERSION}: {' '.join(lines[-3:]) or 'no program came'}. Name a binary in "
                f"{_VARIABLE}, or start Docker."
            )
        os.replace(built, binary)


if __name__ == "__main__":
    try:
        print(minio().parent)
    except MinioError as error:
        sys.exit(str(error))
