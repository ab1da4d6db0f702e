"""http-report against a real server on this machine: one that is slow, fails, refuses, or is not there."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from paimon_sink.core.errors import PwcError
from paimon_sink.core.events import WrittenPartition
from paimon_sink.listen.done_actions import UnavailableError
from paimon_sink.listen.http_report import HttpReport
from paimon_sink.listen.table import ListenerTable
from tests.support.clock import FakeClock
from tests.support.lake import Lake, rows
from tests.support.listeners import seat_of, with_listener

SECRET = "geheim"
PARTITION = WrittenPartition("day=2024-02-02", {"day": "2024-02-02"})
GOOD = (200, b'{"more": 1, "result": "Success"}')


@dataclass
class Server:
    """Gives its answers one after the other, the last one again and again. An answer of None never comes."""

    url: str = ""
    answers: list[tuple[int, bytes] | None] = field(default_factory=lambda: [GOOD])
    asked: list[dict[str, Any]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def next_answer(self) -> tuple[int, bytes] | None:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.asked.append({"path": self.path, "type": self.headers["Content-Type"], **json.loads(body)})
            answer = found.next_answer()
            if answer is None:
                found.released.wait(10)
                return
            self.send_response(answer[0])
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(answer[1])))
            self.end_headers()
            self.wfile.write(answer[1])

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test says what went wrong."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        found.url = f"http://127.0.0.1:{http.server_address[1]}/hook?token={SECRET}"
        yield found
        found.released.set()
        http.shutdown()
        thread.join()


@pytest.fixture
def made(local_lake: Lake) -> Lake:
    lake = local_lake.with_options(partitionBy="day")
    lake.append(0, rows(1, day="2024-02-02"))
    return lake


def report(lake: Lake, server: Server, *, retries: int = 2, timeout_ms: int = 5_000) -> FakeClock:
    """Make one report. The clock says how long was waited between tries."""
    clock = FakeClock(0)
    HttpReport(ListenerTable.of(lake.open()), server.url, timeout_ms, retries, "a=1", clock).mark_done(PARTITION)
    return clock


def test_it_says_what_paimon_says(made: Lake, server: Server) -> None:
    report(made, server)
    assert server.asked == [
        {
            "path": made.open().location,
            "type": "application/json",
            "table": "sales.orders",
            "partition": "day=2024-02-02/",
            "params": "a=1",
        }
    ]


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param((503, b""), id="fails"),
        pytest.param((429, b""), id="is busy"),
        pytest.param(None, id="is slow"),
    ],
)
def test_a_server_that_cannot_now_is_asked_again(made: Lake, server: Server, failing: tuple[int, bytes] | None) -> None:
    server.answers = [failing, failing, GOOD]
    clock = report(made, server, timeout_ms=50 if failing is None else 5_000)
    assert len(server.asked) == 3
    assert clock.now > 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param((400, GOOD[1]), "answered 400 to the report of day=2024-02-02", id="refuses"),
        pytest.param((302, b""), "answered 302", id="sends elsewhere"),
        pytest.param((200, b'{"result": "failed"}'), "must have a result SUCCESS, and has 'failed'", id="says no"),
        pytest.param((200, f'{{"result": "bad {SECRET}"}}'.encode()), r"and has \(hidden\)", id="repeats the secret"),
        pytest.param((200, b'{"unknown": 1}'), "and has none", id="says nothing of it"),
        pytest.param((200, b""), "and has none", id="says nothing"),
        pytest.param((200, b"<html>"), "and has none", id="says something else"),
    ],
)
def test_an_answer_that_is_no_success_is_a_failure_at_once(
    made: Lake, server: Server, answer: tuple[int, bytes], said: str
) -> None:
    server.answers = [answer]
    with pytest.raises(PwcError, match=said) as refused:
        report(made, server)
    assert not isinstance(refused.value, UnavailableError)
    assert len(server.asked) == 1
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [pytest.param((500, b""), "status 500", id="fails"), pytest.param(None, "no answer in time", id="is slow")],
)
def test_after_the_last_try_it_is_unavailable(
    made: Lake, server: Server, answer: tuple[int, bytes] | None, said: str
) -> None:
    server.answers = [answer]
    with pytest.raises(UnavailableError, match=said) as failed:
        report(made, server, timeout_ms=50 if answer is None else 5_000)
    assert len(server.asked) == 3
    assert SECRET not in str(failed.value)


def test_nobody_listens_there(made: Lake) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    nobody = Server(url=f"http://127.0.0.1:{port}/{SECRET}")
    with pytest.raises(UnavailableError, match=rf"at 127\.0\.0\.1:{port} could not be notified .* refused") as failed:
        report(made, nobody)
    assert SECRET not in str(failed.value)
    assert failed.value.__cause__ is None


def test_a_server_that_is_down_is_not_asked_for_every_partition_and_no_secret_is_said(
    local_lake: Lake, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        "time-interval": "1d",
        "idle-time": "0ms",
        "actions": "http-report,success-file",
        "http.url": server.url,
        "http.retries": "0",
    }
    told = with_listener(local_lake, "mark-done", settings, partitionBy="day")
    server.answers = [(503, b"")]
    told.append(0, *(rows(day, day=f"2024-02-0{day}") for day in range(1, 6)))
    with caplog.at_level(logging.DEBUG):
        told.append(1, rows(6, day="2024-02-06"))
    assert len(server.asked) == 1
    assert len(told.files("_SUCCESS")) == 5
    progress = seat_of(told, "mark-done")
    assert "could not be notified that partitions of sales.orders are done" in (progress.error or "")
    assert SECRET not in caplog.text
    assert SECRET not in (progress.error or "")

    server.answers = [GOOD]
    server.asked.clear()
    told.append(2, rows(7, day="2024-02-07"))
    assert [asked["partition"] for asked in server.asked] == [f"day=2024-02-0{day}/" for day in range(1, 7)]
