"""Reports to an HTTP server that a partition is done, with the request and the response of Paimon's engines.

The address may hold a token, so no error repeats it, nor does the cause of one.
"""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from paimon_sink.core.clock import Backoff, Clock, SystemClock
from paimon_sink.core.errors import PwcError
from paimon_sink.core.events import WrittenPartition
from paimon_sink.core.option_secrets import HIDDEN, quoted
from paimon_sink.core.option_values import BadValueError
from paimon_sink.core.strict_json import read_json
from paimon_sink.listen.done_actions import UnavailableError
from paimon_sink.listen.table import ListenerTable

__all__ = ["HttpReport", "http_url"]

_LONGEST_ANSWER = 64 << 10
_SUCCESS = "success"
_TRY_AGAIN = (408, 425, 429)
_FIRST_SERVER_ERROR = 500
_SHORTEST_TOKEN = 4


def http_url(text: str) -> str:
    try:
        parts = urlsplit(text.strip())
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        has_login = "@" in parts.netloc
    except ValueError:
        is_right = has_login = False
    if has_login:
        raise BadValueError("has a login in its address, which is not sent; let the path or the query hold a token.")
    if not is_right or not text.isascii() or any(letter.isspace() for letter in text.strip()):
        raise BadValueError("must be an address that begins with http:// or https://.")
    return text.strip()


class _NoAnswerError(Exception):
    """No response from the server. Its text does not repeat the address."""


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Redirects are not followed: they would turn the POST into a GET, at an address that nobody configured."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


@dataclass(frozen=True)
class HttpReport:
    """Posts ``{"table", "path", "partition", "params"}`` and wants ``{"result": "success"}``."""

    table: ListenerTable
    url: str = field(repr=False)
    timeout_ms: int
    retries: int
    params: str | None = None
    clock: Clock = field(default_factory=SystemClock)
    backoff: Backoff = field(default_factory=lambda: Backoff(first_seconds=0.2, most_seconds=5.0))

    def mark_done(self, partition: WrittenPartition) -> None:
        body = {
            "table": self.table.label,
            "path": self.table.location,
            # As Java writes a partition's path.
            "partition": f"{partition.path}/",
            "params": self.params,
        }
        status, answer = self._answered(json.dumps(body).encode("utf-8"))
        if not 200 <= status < 300:
            raise PwcError(f"The server at {self._where} answered {status} to the report of {partition.path}.")
        result = _result(answer)
        if result is None or result.lower() != _SUCCESS:
            raise PwcError(
                f"The server at {self._where} did not accept the report of {partition.path}: its answer must have a "
                f"result SUCCESS, and has {self._shown(result)}."
            )

    def _answered(self, body: bytes) -> tuple[int, bytes]:
        """Status and body of the response. Raises ``UnavailableError`` when every attempt failed."""
        for attempt in range(self.retries + 1):
            if attempt:
                self.backoff.wait(self.clock, attempt)
            try:
                status, answer = self._post(body)
            except _NoAnswerError as error:
                reason = str(error)
                continue
            if status not in _TRY_AGAIN and status < _FIRST_SERVER_ERROR:
                return status, answer
            reason = f"status {status}"
        raise UnavailableError(
            f"The server at {self._where} could not be notified that partitions of {self.table.label} are done, in "
            f"{self.retries + 1} attempts ({reason})."
        )

    def _post(self, body: bytes) -> tuple[int, bytes]:
        request = urllib.request.Request(
            self.url, data=body, headers={"Content-Type": "application/json", "Accept": "application/json"}
        )
        opener = urllib.request.build_opener(_StayHere)
        try:
            with opener.open(request, timeout=self.timeout_ms / 1000) as answer:
                return answer.status, answer.read(_LONGEST_ANSWER)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, b""
        except (OSError, http.client.HTTPException, ValueError) as error:
            # Not as the cause: it may repeat the address.
            raise _NoAnswerError(_reason(error)) from None

    def _shown(self, result: str | None) -> str:
        """The server's result, hidden if it repeats a part of the address that may be a token."""
        if result is None:
            return "none"
        parts = urlsplit(self.url)
        pieces = re.split(r"[/?&=;]", f"{parts.path}?{parts.query}")
        is_repeated = any(piece in result for piece in pieces if len(piece) >= _SHORTEST_TOKEN)
        return HIDDEN if is_repeated else quoted(result)

    @property
    def _where(self) -> str:
        """The host alone: a path or a query may hold a token."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return type(reason).__name__


def _result(answer: bytes) -> str | None:
    try:
        result = read_json(answer)["result"]
    except (ValueError, TypeError, KeyError):
        return None
    return result if isinstance(result, str) else None
