"""Settings of the listener ``mark-done``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from paimon_sink.core.option_values import count, duration_ms, plain_text, words
from paimon_sink.listen.http_report import http_url
from paimon_sink.listen.local_time import ClockSettings
from paimon_sink.listen.partition_time import Formatter, formatter
from paimon_sink.listen.settings import setting, setting_family

__all__ = ["CUSTOM", "DONE_PARTITION", "HTTP_REPORT", "SUCCESS_FILE", "MarkDoneSettings"]

SUCCESS_FILE, DONE_PARTITION, HTTP_REPORT, CUSTOM = "success-file", "done-partition", "http-report", "custom"


class MarkDoneSettings(ClockSettings):
    time_interval_ms: int = setting(
        "time-interval",
        parse=duration_ms(at_least="0ms", at_most="36500d"),
        required="how long the time of a partition lasts, such as 1d",
        doc="how long the time of a partition lasts: `1d`, `1h`",
        example="1d",
    )
    idle_time_ms: int = setting(
        "idle-time",
        parse=duration_ms(at_least="0ms", at_most="36500d"),
        required="how long after its end a partition is waited for, such as 15m",
        doc="how long to wait after that",
        example="15m",
    )
    timestamp_pattern: str | None = setting(
        "timestamp-pattern",
        parse=plain_text,
        default_note="the first partition value",
        doc="how the values form a time: `$dt $hour:00:00`, `$year-$month-$day`",
        example="$dt $hour:00:00",
    )
    timestamp_formatter: Formatter | None = setting(
        "timestamp-formatter",
        parse=formatter,
        default_note="`yyyy-MM-dd HH:mm:ss` or `yyyy-MM-dd`",
        doc="how to parse it, as in Java: `yyyyMMdd`, `yyyyMMddHH`, `yyyy-MM-dd'T'HH`",
        example="yyyyMMdd",
    )
    actions: tuple[str, ...] = setting(
        "actions",
        parse=words(SUCCESS_FILE, DONE_PARTITION, HTTP_REPORT, CUSTOM),
        default=SUCCESS_FILE,
        doc="some of `success-file`, `done-partition`, `http-report`, `custom`",
        example="success-file, http-report",
    )
    http_url: str | None = setting(
        "http.url",
        parse=http_url,
        doc="for `http-report`: where to post. It may hold a token; no log and no error repeats it",
        example="https://hooks.example/done",
        secret=True,
    )
    http_timeout_ms: int = setting(
        "http.timeout",
        parse=duration_ms(at_least="1ms", at_most="10m"),
        default="10s",
        doc="of one request",
        example="30s",
    )
    http_retries: int = setting(
        "http.retries",
        parse=count(at_least=0, at_most=20),
        default="2",
        doc="further requests, when there is no response or one of 408, 425, 429, 5xx",
        example="5",
    )
    http_params: str | None = setting("http.params", parse=plain_text, doc="sent as `params`", example="team=sales")
    custom_class: str | None = setting(
        "custom.class", parse=str.strip, doc="for `custom`: `package.module:Class`", example="my_package.done:Bell"
    )
    custom: Mapping[str, str] = setting_family("custom.", doc="settings of that class", example="custom.volume=11")

    def problems(self, given: Collection[str]) -> Iterator[tuple[str, str]]:
        for action, key, prefix in ((HTTP_REPORT, "http.url", "http."), (CUSTOM, "custom.class", "custom.")):
            if action in self.actions and key not in given:
                yield key, f"is missing; the action {action} needs it."
            if action not in self.actions:
                for unused in (name for name in sorted(given) if name.startswith(prefix)):
                    yield unused, f"is for the action {action}, which is not among the actions."
