"""A Paimon REST catalog that runs inside a test: real HTTP, real compare-and-swap, tables on a local disk.

It speaks the part of the protocol that pypaimon's ``RESTCatalog`` needs to create, write and read append tables. As
with a real server, the catalog and not the file system decides which snapshot is the newest; what it accepts it also
leaves in the table's directory, as ``snapshot/snapshot-N`` with its hints and ``schema/schema-N``.
"""

from __future__ import annotations

import json
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from tests.support.serving import ServingInside

__all__ = ["RestCatalogServer"]

Json = dict[str, Any]

_PREFIX = "paimon"


class _RefusalError(Exception):
    """An answer that is not 200, in the shape the protocol gives it."""

    def __init__(self, status: int, message: str, *, kind: str | None = None, name: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: Json = {"resourceType": kind, "resourceName": name, "message": message, "code": status}


@dataclass
class _Table:
    id: str
    name: str
    path: Path
    schema_id: int
    schema: Json
    latest: Json | None = None
    partitions: list[Json] = field(default_factory=list)
    """Those that a client added by name."""

    def publish(self, snapshot: Json) -> None:
        directory = self.path / "snapshot"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"snapshot-{snapshot['id']}").write_text(json.dumps(snapshot))
        if self.latest is None:
            (directory / "EARLIEST").write_text(str(snapshot["id"]))
        (directory / "LATEST").write_text(str(snapshot["id"]))
        self.latest = snapshot


@dataclass
class _Database:
    id: str
    name: str
    options: dict[str, str]
    tables: dict[str, _Table] = field(default_factory=dict)


@dataclass(frozen=True)
class _Fault:
    status: int
    after_apply: bool


class RestCatalogServer(ServingInside):
    """Serves one warehouse on a free port of the loopback interface, for the length of a ``with`` block."""

    token = "a-token-for-tests"

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = str(warehouse)
        self.commits_accepted = 0
        self.commits_rejected = 0
        self._root = warehouse
        self._lock = threading.Lock()
        self._databases: dict[str, _Database] = {}
        self._faults: list[_Fault] = []
        super().__init__(_handler_for(self))

    @property
    def catalog_options(self) -> dict[str, str]:
        """What ``pypaimon.CatalogFactory.create`` needs to reach this server."""
        return {
            "metastore": "rest",
            "uri": self.uri,
            "warehouse": self.warehouse,
            "token.provider": "bear",
            "token": self.token,
        }

    def partitions(self, database: str, table: str) -> list[Json]:
        """The partitions that were added to a table by name."""
        with self._lock:
            return list(self._databases[database].tables[table].partitions)

    def fail_next_commit(self, *, after_apply: bool, status: int = 503) -> None:
        """Answer the next commit with ``status``, although it was applied or before it is. Calls queue up."""
        with self._lock:
            self._faults.append(_Fault(status, after_apply))

    # ---------------------------------------------------------------- what clients may ask

    def answer(self, method: str, path: list[str], body: Json) -> Json:
        """One request at a time: that is what makes the compare-and-swap one step."""
        with self._lock:
            return self._route(method, path)(body)

    def _route(self, method: str, path: list[str]) -> Callable[[Json], Json]:
        match method, path:
            case "GET", ["v1", "config"]:
                return lambda _: {"defaults": {}, "overrides": {"prefix": _PREFIX}}
            case "GET", ["v1", prefix, "databases"] if prefix == _PREFIX:
                return lambda _: {"databases": sorted(self._databases), "nextPageToken": None}
            case "POST", ["v1", prefix, "databases"] if prefix == _PREFIX:
                return self._create_database
            case _, ["v1", prefix, "databases", database, *rest] if prefix == _PREFIX:
                return self._route_in_database(method, self._database(database), rest)
        raise _unsupported(method, path)

    def _route_in_database(self, method: str, database: _Database, path: list[str]) -> Callable[[Json], Json]:
        match method, path:
            case "GET", []:
                return lambda _: self._describe_database(database)
            case "DELETE", []:
                return lambda _: self._drop_database(database)
            case "GET", ["tables"]:
                return lambda _: {"tables": sorted(database.tables), "nextPageToken": None}
            case "POST", ["tables"]:
                return lambda body: self._create_table(database, body)
            case _, ["tables", name, *rest]:
                return self._route_in_table(method, database, name, rest)
        raise _unsupported(method, path)

    def _route_in_table(self, method: str, database: _Database, name: str, path: list[str]) -> Callable[[Json], Json]:
        table = database.tables.get(name)
        if table is None:
            raise _RefusalError(404, f"Table {database.name}.{name} does not exist.", kind="TABLE", name=name)
        match method, path:
            case "GET", []:
                return lambda _: _describe_table(table)
            case "DELETE", []:
                return lambda _: self._drop_table(database, table)
            case "GET", ["snapshot"]:
                return lambda _: _describe_snapshot(table)
            case "POST", ["commit"]:
                return lambda body: self._commit(table, body)
            case "POST", ["partitions"]:
                return lambda body: _add_partitions(table, body)
        raise _unsupported(method, path)

    # ---------------------------------------------------------------- databases

    def _database(self, name: str) -> _Database:
        if name not in self._databases:
            raise _RefusalError(404, f"Database {name} does not exist.", kind="DATABASE", name=name)
        return self._databases[name]

    def _database_path(self, database: _Database) -> Path:
        return self._root / f"{database.name}.db"

    def _create_database(self, body: Json) -> Json:
        name = body["name"]
        if name in self._databases:
            raise _RefusalError(409, f"Database {name} already exists.", kind="DATABASE", name=name)
        database = _Database(str(uuid.uuid4()), name, body.get("options") or {})
        self._database_path(database).mkdir(parents=True, exist_ok=True)
        self._databases[name] = database
        return {}

    def _describe_database(self, database: _Database) -> Json:
        return {
            "id": database.id,
            "name": database.name,
            "location": str(self._database_path(database)),
            "options": dict(database.options),
        }

    def _drop_database(self, database: _Database) -> Json:
        del self._databases[database.name]
        shutil.rmtree(self._database_path(database))
        return {}

    # ---------------------------------------------------------------- tables

    def _create_table(self, database: _Database, body: Json) -> Json:
        name = body["identifier"]["object"]
        if name in database.tables:
            raise _RefusalError(409, f"Table {database.name}.{name} already exists.", kind="TABLE", name=name)
        # Not at the top: the tests of other formats run where Paimon is not installed.
        from pypaimon.common.file_io import FileIO
        from pypaimon.common.json_util import JSON
        from pypaimon.common.options import Options
        from pypaimon.schema.schema import Schema
        from pypaimon.schema.schema_manager import SchemaManager

        path = self._database_path(database) / name
        schemas = SchemaManager(FileIO.get(str(path), Options({})), str(path))
        created = schemas.create_table(JSON.from_json(json.dumps(body["schema"]), Schema))
        stored = json.loads((path / "schema" / f"schema-{created.id}").read_text())
        schema = {key: stored[key] for key in ("fields", "partitionKeys", "primaryKeys", "options", "comment")}
        database.tables[name] = _Table(str(uuid.uuid4()), name, path, created.id, schema)
        return {}

    def _drop_table(self, database: _Database, table: _Table) -> Json:
        del database.tables[table.name]
        shutil.rmtree(table.path)
        return {}

    # ---------------------------------------------------------------- snapshots

    def _commit(self, table: _Table, body: Json) -> Json:
        fault = self._faults.pop(0) if self._faults else None
        if fault and not fault.after_apply:
            raise _RefusalError(fault.status, "This commit was asked to fail before it is applied.")
        success = _fits(table, body)
        if success:
            table.publish(body["snapshot"])
            self.commits_accepted += 1
        else:
            self.commits_rejected += 1
        if fault:
            raise _RefusalError(fault.status, "This commit was asked to fail after it was applied.")
        return {"success": success}


def _add_partitions(table: _Table, body: Json) -> Json:
    existed = [spec for spec in body["partitionSpecs"] if spec in table.partitions]
    if existed and not body["ignoreIfExists"]:
        raise _RefusalError(409, "Some of these partitions exist.", kind="PARTITION", name=table.name)
    created = [spec for spec in body["partitionSpecs"] if spec not in table.partitions]
    table.partitions += created
    return {"created": created, "existed": existed}


def _fits(table: _Table, commit: Json) -> bool:
    """Whether the commit names this table and was built on its newest snapshot."""
    if commit["tableId"] != table.id:
        return False
    latest_id = table.latest["id"] if table.latest else 0
    if commit["snapshot"]["id"] != latest_id + 1:
        return False
    base = commit.get("baseSnapshotUuid")
    return base is None or (table.latest is not None and base == table.latest.get("uuid"))


def _describe_table(table: _Table) -> Json:
    return {
        "id": table.id,
        "name": table.name,
        "path": str(table.path),
        "isExternal": False,
        "schemaId": table.schema_id,
        "schema": table.schema,
    }


def _describe_snapshot(table: _Table) -> Json:
    if table.latest is None:
        raise _RefusalError(404, f"Table {table.name} has no snapshot.", kind="SNAPSHOT", name=table.name)
    # The figures beside the snapshot are statistics for people; no client of ours reads them.
    figures = {"fileSizeInBytes": 0, "fileCount": 0, "lastFileCreationTime": table.latest["timeMillis"]}
    return {"snapshot": {"snapshot": table.latest, "recordCount": table.latest["totalRecordCount"], **figures}}


def _unsupported(method: str, path: list[str]) -> _RefusalError:
    return _RefusalError(501, f"The catalog server of the tests does not know {method} {'/'.join(path)}.")


def _handler_for(server: RestCatalogServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # The answer goes out in two writes; with Nagle's algorithm the second would wait for the client.
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                if self.headers.get("Authorization") != f"Bearer {server.token}":
                    raise _RefusalError(401, "The token is missing or wrong.")
                status, answer = 200, server.answer(self.command, list(_segments(self.path)), _parse(body))
            except _RefusalError as refusal:
                status, answer = refusal.status, refusal.body
            payload = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815 (http.server's names)

        def log_message(self, format: str, *args: object) -> None:
            """Silence: a failing test should show the client's side only."""

    return Handler


def _segments(target: str) -> Iterator[str]:
    return (unquote_plus(part) for part in urlsplit(target).path.strip("/").split("/"))


def _parse(body: bytes) -> Json:
    parsed: Json = json.loads(body) if body else {}
    return parsed
