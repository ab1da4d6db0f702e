"""A proxy before the S3 server of the tests that refuses for a while, as a busy store does."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

__all__ = ["Throttle", "throttled"]

_SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Throttle:
    """Answers the next ``refusals`` requests that write with 503, and passes on all others as they are."""

    def __init__(self, endpoint: str) -> None:
        self.refusals = 0
        self.refused = 0
        self._server = urlsplit(endpoint).netloc
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._http.daemon_threads = True

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def refuses(self, method: str) -> bool:
        with self._lock:
            if method not in ("PUT", "POST") or self.refusals == 0:
                return False
            self.refusals -= 1
            self.refused += 1
            return True

    def pass_on(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """The request byte for byte, its signed Host header included."""
        connection = http.client.HTTPConnection(self._server, timeout=60)
        try:
            connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            _answer(handler, answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()


@contextmanager
def throttled(endpoint: str) -> Iterator[Throttle]:
    throttle = Throttle(endpoint)
    serving = threading.Thread(target=throttle._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    serving.start()
    try:
        yield throttle
    finally:
        throttle._http.shutdown()
        throttle._http.server_close()
        serving.join()


def _answer(handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    handler.send_response_only(status)
    for name, value in headers:
        if name.lower() not in _HOP_BY_HOP:
            handler.send_header(name, value)
    length = {name.lower(): value for name, value in headers}.get("content-length")
    handler.send_header("Content-Length", length if handler.command == "HEAD" and length else str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _handler_for(throttle: Throttle) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if throttle.refuses(self.command):
                _answer(self, 503, [("Content-Type", "application/xml")], _SLOW_DOWN)
            else:
                throttle.pass_on(self, body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve  # noqa: N815 (http.server's names)

        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

    return Handler
