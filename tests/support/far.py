"""A proxy before the S3 server of the tests that is as far away as one says, and keeps a record of all requests.

How many requests something takes says little of how long it takes: those that do not wait for each other are one wait.
So the record has when each was there and when it was answered, and :func:`longest_chain` tells how many had to wait.
"""

from __future__ import annotations

import http.client
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

__all__ = ["Far", "Request", "far_away", "longest_chain"]

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass(frozen=True)
class Request:
    """One request: when the proxy had all of it, and when it began to answer."""

    method: str
    path: str
    began_s: float
    ended_s: float


def longest_chain(requests: Sequence[Request]) -> int:
    """How many requests waited for each other, in the longest line of them.

    A request may depend on each that was answered before it began. So this is never less than what really depends, and
    more where two that need not wait happened to come one after the other.
    """
    ends: list[float] = []
    """The least time at which a chain of so many requests, less one, had ended."""
    for request in sorted(requests, key=lambda one: one.began_s):
        # Only those that had ended count, and none of them is still to come: what begins later ends later.
        length = bisect_right(ends, request.began_s)
        if length == len(ends):
            ends.append(request.ended_s)
        else:
            ends[length] = min(ends[length], request.ended_s)
    return len(ends)


@dataclass
class Far:
    """The proxy. Each request waits ``delay_s`` before it is passed on."""

    server: str
    delay_s: float = 0.0
    endpoint: str = ""
    requests: list[Request] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[list[Request]]:
        """The requests inside the block."""
        first = len(self.requests)
        found: list[Request] = []
        try:
            yield found
        finally:
            found += self.requests[first:]


@contextmanager
def far_away(endpoint: str, *, delay_s: float = 0.0) -> Iterator[Far]:
    far = Far(urlsplit(endpoint).netloc, delay_s)
    server = _Server(("127.0.0.1", 0), _handler_for(far))
    far.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    serving.start()
    try:
        yield far
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is no news."""


def _handler_for(far: Far) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            # One a connection: what a client keeps open stays open behind it.
            self.upstream = http.client.HTTPConnection(far.server, timeout=60)

        def finish(self) -> None:
            self.upstream.close()
            super().finish()

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            began_s = time.monotonic()
            if far.delay_s:
                time.sleep(far.delay_s)
            status, headers, answer = self._passed_on(body)
            far.requests.append(Request(self.command, unquote(self.path), began_s, time.monotonic()))
            self._answer(status, headers, answer)

        def _passed_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            """The request byte for byte, its signed Host header included."""
            connection = self.upstream
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length")
            self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve  # noqa: N815 (http.server's names)

        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

    return Handler
