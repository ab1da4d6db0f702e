"""A gate in front of a server: open, it passes bytes on; told to refuse, it answers 503 to so many requests."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

__all__ = ["Gate"]

_BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Gate:
    """Both sides speak plain HTTP. A refused connection is closed, so that the client has to come again."""

    def __init__(self, endpoint: str) -> None:
        server = urlsplit(endpoint)
        self._server = (server.hostname or "", server.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._to_refuse = 0
        self.refused = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def refuse(self, requests: int) -> None:
        with self._lock:
            self._to_refuse = requests

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A shutdown wakes the thread that waits in accept; a close alone does not.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            still_open = list(self._connections)
        for connection in still_open:
            self._close(connection)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                with self._lock:
                    self._connections |= {client, server}
                threading.Thread(target=self._pass_requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pass_answers, args=(server, client), daemon=True).start()

    def _pass_requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if self._refuses():
                    client.sendall(_BUSY)
                    break
                server.sendall(data)
        self._close(client)
        self._close(server)

    def _pass_answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
        self._close(client)

    def _refuses(self) -> bool:
        with self._lock:
            if self._to_refuse == 0:
                return False
            self._to_refuse -= 1
            self.refused += 1
            return True

    def _close(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
