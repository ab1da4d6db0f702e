"""An Iceberg REST catalog that runs inside a test: real HTTP, tables on a local disk, pyiceberg's SQL catalog behind.

It speaks the part of the protocol that pyiceberg's ``RestCatalog`` needs to create, load and commit tables, and keeps
to ``snapshots=refs`` unless it is told not to know it.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadata

from tests.support.serving import ServingInside

__all__ = ["IcebergRestServer"]

Json = dict[str, Any]


class _FailureError(Exception):
    """The server's own."""


class IcebergRestServer(ServingInside):
    """Serves one warehouse on a free port of the loopback interface, for the length of a ``with`` block."""

    def __init__(
        self, root: Path, *, knows_refs: bool = True, fails_at_refs: bool = False, indent: int | None = None
    ) -> None:
        self.asked: list[tuple[str, str]] = []
        """Each request for a table: its method, and which snapshots it asks for."""
        self._knows_refs = knows_refs
        self._fails_at_refs = fails_at_refs
        self._indent = indent
        self._lock = threading.Lock()
        self._catalog = SqlCatalog(
            "behind",
            uri=f"sqlite:///{root}/behind.db?check_same_thread=false",
            warehouse=f"file://{root}",
        )
        super().__init__(_handler_for(self))

    @property
    def answers_to(self) -> str:
        """What it is asked for by who knows it."""
        return "all" if self._fails_at_refs else "refs"

    @property
    def options(self) -> dict[str, str]:
        return {"warehouse": "behind", "tableFormat": "iceberg", "catalog.type": "rest", "catalog.uri": self.uri}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._catalog.close()

    def answer(self, method: str, path: list[str], query: str, body: bytes) -> tuple[int, bytes]:
        with self._lock:
            try:
                found = self._route(method, path, query, body)
            except (NoSuchTableError, NoSuchNamespaceError) as error:
                return 404, _refusal(404, error)
            except CommitFailedException as error:
                return 409, _refusal(409, error)
            except _FailureError as error:
                return 500, _refusal(500, error)
            separators = (",", ":") if self._indent is None else None
            return 200, json.dumps(found, indent=self._indent, separators=separators).encode()

    def _route(self, method: str, path: list[str], query: str, body: bytes) -> Json:
        match method, path:
            case "GET", ["v1", "config"]:
                return {"defaults": {}, "overrides": {}}
            case "POST", ["v1", "namespaces"]:
                self._catalog.create_namespace(tuple(json.loads(body)["namespace"]))
                return {"namespace": json.loads(body)["namespace"], "properties": {}}
            case "GET", ["v1", "namespaces", name]:
                return {"namespace": [name], "properties": dict(self._catalog.load_namespace_properties(name))}
            case "POST", ["v1", "namespaces", name, "tables"]:
                request = CreateTableRequest.model_validate({"location": None, "write-order": None, **json.loads(body)})
                table = self._catalog.create_table(
                    (name, request.name),
                    request.table_schema,
                    partition_spec=request.partition_spec or UNPARTITIONED_PARTITION_SPEC,
                    properties=request.properties,
                )
                return _response(table.metadata_location, table.metadata)
            case "GET", ["v1", "namespaces", name, "tables", table_name]:
                mode = parse_qs(query).get("snapshots", ["all"])[0]
                self.asked.append(("GET", mode))
                if mode == "refs" and self._fails_at_refs:
                    raise _FailureError("Failed to build table metadata")
                table = self._catalog.load_table((name, table_name))
                named_only = mode == "refs" and self._knows_refs
                return _response(table.metadata_location, table.metadata, named_only=named_only)
            case "POST", ["v1", "namespaces", name, "tables", table_name]:
                self.asked.append(("POST", "all"))
                commit = CommitTableRequest.model_validate_json(body)
                table = self._catalog.load_table((name, table_name))
                done = self._catalog.commit_table(table, commit.requirements, commit.updates)
                return _response(done.metadata_location, done.metadata)
        raise AssertionError(f"{method} {'/'.join(path)} is not part of what this server speaks")


def _response(location: str, metadata: TableMetadata, *, named_only: bool = False) -> Json:
    found = json.loads(metadata.model_dump_json())
    if named_only:
        named = {ref["snapshot-id"] for ref in found.get("refs", {}).values()}
        # As SeaweedFS does: what is left out is left out of the log, too.
        for key in ("snapshots", "snapshot-log"):
            found[key] = [each for each in found[key] if each["snapshot-id"] in named]
    return {"metadata-location": location, "metadata": found, "config": {}}


def _refusal(code: int, error: Exception) -> bytes:
    return json.dumps({"error": {"message": str(error), "type": type(error).__name__, "code": code}}).encode()


def _handler_for(server: IcebergRestServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # The answer goes out in two writes; with Nagle's algorithm the second would wait for the client.
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, data = server.answer(self.command, parts.path.strip("/").split("/"), parts.query, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _serve  # noqa: N815 - the names are http.server's

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
