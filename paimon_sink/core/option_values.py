"""Parsers of option values: text in, value out, or :class:`BadValueError`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from paimon_sink.core.names import has_control_characters, parse_table_name, split_outside_quotes, unquote
from paimon_sink.core.option_secrets import has_query, holds_credentials, quoted
from paimon_sink.core.units import parse_duration_ms, parse_size_bytes

__all__ = [
    "HIGHEST_IDENTIFIER",
    "NEVER_MS",
    "STARTS",
    "BadValueError",
    "TransformText",
    "batch_identifier",
    "boolean",
    "branch",
    "choice",
    "codec",
    "column",
    "column_names",
    "columns",
    "commit_user",
    "condition",
    "consumer_name",
    "count",
    "duration_ms",
    "duration_ms_or_never",
    "listeners",
    "location",
    "moment_ms",
    "plain_text",
    "quarantine",
    "share",
    "size_bytes",
    "snapshot_id",
    "starting_version",
    "transforms_in",
    "word",
    "words",
]

L = TypeVar("L", bound=str)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_MS = 15

HIGHEST_IDENTIFIER = 2**63 - 1
"""Ledgers keep numbers of 64 bits, and the highest is a mark in more than one of them. So it is refused, by what the
format says that it means."""

LONGEST_COMMIT_USER = 200
LONGEST_BRANCH = 200
_LISTENER = re.compile(r"[A-Za-z0-9_-]{1,60}|[A-Za-z_][A-Za-z0-9_.]{0,200}:[A-Za-z_][A-Za-z0-9_.]{0,200}", re.ASCII)
CODECS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")


class BadValueError(ValueError):
    """Holds the rest of a sentence that begins with the option's key. It never repeats a secret."""


class TransformText(str):
    """An element of partitionBy that is a transform, as it was written: a column may be named ``days(ts)`` too."""

    __slots__ = ()


def boolean(text: str) -> bool:
    value = {"true": True, "false": False}.get(text.strip().lower())
    if value is None:
        raise BadValueError(f"must be true or false, not {quoted(text)}.")
    return value


def choice(*allowed: L) -> Callable[[str], L]:
    """One of a few words, in any case."""

    def parse(text: str) -> L:
        for each in allowed:
            if each == text.strip().lower():
                return each
        raise BadValueError(
            f"must be {' or '.join(filter(None, [', '.join(allowed[:-1]), allowed[-1]]))}, not {quoted(text)}."
        )

    return parse


def word(text: str) -> str:
    """Any word, in small letters."""
    return plain_text(text.strip()).lower()


def words(*allowed: L) -> Callable[[str], tuple[L, ...]]:
    """Some of a few words, separated by commas."""

    def parse(text: str) -> tuple[L, ...]:
        given = [part.strip().lower() for part in text.split(",")]
        for each in given:
            if each not in allowed:
                raise BadValueError(f"takes {', '.join(allowed)}, separated by commas, not {quoted(each)}.")
            if given.count(each) > 1:
                raise BadValueError(f"names {each} twice.")
        return tuple(known for each in given for known in allowed if known == each)

    return parse


def codec(text: str) -> str:
    if text.strip().lower() == "uncompressed":
        return "none"
    return choice(*CODECS)(text)


def size_bytes(*, at_least: str, at_most: str) -> Callable[[str], int]:
    return _figure(parse_size_bytes, at_least, at_most, "a size such as 128mb, 512kb, 1gb or a number of bytes")


def duration_ms(*, at_least: str, at_most: str) -> Callable[[str], int]:
    return _figure(
        parse_duration_ms, at_least, at_most, "a duration with its unit, such as 30d, 12h, 15m, 90s or 500ms"
    )


NEVER_MS = 2**63 - 1


def duration_ms_or_never(*, at_least: str, at_most: str) -> Callable[[str], int]:
    """Never is longer than all others."""
    parse_duration = duration_ms(at_least=at_least, at_most=at_most)
    return lambda text: NEVER_MS if text.strip().lower() == "never" else parse_duration(text)


def _figure(read: Callable[[str], int | None], at_least: str, at_most: str, form: str) -> Callable[[str], int]:
    lowest, highest = read(at_least), read(at_most)
    assert lowest is not None, f"{at_least} is not {form}"
    assert highest is not None, f"{at_most} is not {form}"

    def parse(text: str) -> int:
        figure = read(text)
        if figure is None:
            raise BadValueError(f"must be {form}, not {quoted(text)}.")
        if not lowest <= figure <= highest:
            raise BadValueError(f"must be from {at_least} to {at_most}, not {quoted(text)}.")
        return figure

    return parse


def count(*, at_least: int, at_most: int) -> Callable[[str], int]:
    """A plain number of things."""

    def parse(text: str) -> int:
        digits = text.strip()
        if not re.fullmatch(r"[0-9]{1,18}", digits, re.ASCII) or not at_least <= int(digits) <= at_most:
            raise BadValueError(f"must be a whole number from {at_least} to {at_most}, not {quoted(text)}.")
        return int(digits)

    return parse


def share(text: str) -> float:
    """A part of all."""
    digits = text.strip()
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,15})?|\.[0-9]{1,15}", digits, re.ASCII) or not 0 <= float(digits) <= 1:
        raise BadValueError(f"must be a share from 0 to 1, such as 0.1, not {quoted(text)}.")
    return float(digits)


def quarantine(text: str) -> str:
    """A table by its name or by its location."""
    given = text.strip()
    if "/" in given:
        return location(given)
    parse_table_name(given)
    return given


def region_kind(text: str) -> str:
    """What may be carried by itself."""
    if text.strip().lower() == "partition":
        raise BadValueError("must be table: partitions of a table are not carried yet. Leave it out.")
    return choice("table", "partition")(text)


def plain_text(text: str) -> str:
    """A value handed on as it is. It may be secret, so no sentence here repeats it."""
    if has_control_characters(text):
        raise BadValueError("contains a control character, such as a line break; remove it.")
    if text != text.strip():
        raise BadValueError("begins or ends with a blank; remove it.")
    return text


def condition(text: str) -> str:
    """As people write SQL, over several lines if they like. Only the table can tell what it means."""
    return text.strip()


def location(text: str) -> str:
    """A path or URI. It is never repeated in a sentence, since it may carry a login."""
    if holds_credentials(text):
        raise BadValueError(
            "has credentials written into its address; take them out and set s3.access-key-id and "
            "s3.secret-access-key, or use the AWS environment."
        )
    if has_query(text):
        raise BadValueError(
            "has a query string, which means nothing here and often holds a secret; take out the question mark and "
            "what follows it. In a directory's name, write the path without a scheme."
        )
    return plain_text(text)


def batch_identifier(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text.strip(), re.ASCII):
        raise BadValueError(f"must be a whole number from 0 to {HIGHEST_IDENTIFIER - 1}, not {quoted(text)}.")
    number = int(text)
    if number > HIGHEST_IDENTIFIER:
        raise BadValueError(f"must be a whole number from 0 to {HIGHEST_IDENTIFIER - 1}, not {number}.")
    return number


def commit_user(text: str) -> str:
    if has_control_characters(text):
        raise BadValueError("contains a control character, such as a line break; remove it.")
    if len(text) > LONGEST_COMMIT_USER:
        raise BadValueError(f"has {len(text)} characters; at most {LONGEST_COMMIT_USER} are allowed.")
    return text


def columns(text: str) -> tuple[str, ...]:
    """Column names, or transforms as they were written. Which of the two a format takes is decided later."""
    parts = split_outside_quotes(text, ",", parentheses=True)
    if parts is None:
        raise BadValueError(f"has a back-quote that is not closed: {quoted(text)}.")
    names: list[str] = []
    for part in parts:
        name = TransformText(part.strip()) if is_transform(part) else unquote(part.strip())
        if name is None:
            raise BadValueError(
                f"has back-quotes inside a name: {quoted(part.strip())}. Put them around the whole name."
            )
        if not name.strip():
            raise BadValueError(f"has an empty column name: {quoted(text)}. Write for example dt, region.")
        if has_control_characters(name):
            raise BadValueError(f"names a column with a control character: {quoted(name)}.")
        if name.lower() in (earlier.lower() for earlier in names):
            raise BadValueError(f"names column {quoted(name)} twice.")
        names.append(name)
    return tuple(names)


def column(text: str) -> str:
    """One column by its name."""
    names = columns(text)
    if len(names) > 1 or isinstance(names[0], TransformText):
        raise BadValueError(f"must be one column, not {quoted(text)}. Back-quote a name with commas or parentheses.")
    return names[0]


def column_names(text: str) -> tuple[str, ...]:
    """Columns by their names, separated by commas."""
    names = columns(text)
    for name in names:
        if isinstance(name, TransformText):
            raise BadValueError(f"must be columns, not {quoted(name)}. Back-quote a name with parentheses.")
    return names


def snapshot_id(text: str) -> int:
    number = text.strip()
    if not re.fullmatch(r"[0-9]{1,19}", number, re.ASCII) or int(number) > HIGHEST_IDENTIFIER:
        raise BadValueError(f"must be the id of a snapshot, a whole number, not {quoted(text)}.")
    return int(number)


STARTS = ("full", "latest", "earliest")
"""Where a stream can begin, beside the id of a snapshot."""


def starting_version(text: str) -> int | str:
    """The id of a snapshot, or one of the words that a stream can begin at."""
    word = text.strip().lower()
    if word in STARTS:
        return word
    if not word.isdigit():
        raise BadValueError(f"must be the id of a snapshot, or {', '.join(STARTS)} in a stream, not {quoted(text)}.")
    return snapshot_id(text)


def consumer_name(text: str) -> str:
    """What a file and a tag can be called."""
    name = text.strip()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name, re.ASCII):
        raise BadValueError(
            f"must be up to 100 letters, digits, dots, hyphens and underscores, a letter or digit first, not "
            f"{quoted(text)}."
        )
    # Words are the same in any case; a name called NONE would be taken for one of them by people.
    return name.lower() if name.lower() == "none" else name


def moment_ms(text: str) -> int:
    """A time as milliseconds since 1970: given so, or as ISO 8601 with its offset."""
    given = text.strip()
    if given.isascii() and given.isdigit() and len(given) <= _LONGEST_MS:
        return int(given)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise BadValueError(
            f"must be a time such as 2026-11-16T05:00:00Z, or milliseconds since 1970, not {quoted(text)}."
        ) from None
    if moment.tzinfo is None:
        raise BadValueError(
            f"is another time in every time zone: {quoted(text)}. Add its offset: {moment.isoformat()}Z, or "
            f"{moment.isoformat()}+01:00."
        )
    return (moment - _EPOCH) // _MILLISECOND


def is_transform(part: str) -> bool:
    """Whether an element has parentheses outside back-quotes, as in ``days(ts)``."""
    return not part.strip().startswith("`") and ("(" in part or ")" in part)


def transforms_in(text: str) -> list[str]:
    """Those elements of a partitionBy value that are transforms, such as ``days(ts)``."""
    parts = split_outside_quotes(text, ",", parentheses=True) or []
    return [part.strip() for part in parts if is_transform(part)]


def branch(text: str) -> str:
    name = plain_text(text)
    if len(name) > LONGEST_BRANCH:
        raise BadValueError(f"has {len(name)} characters; at most {LONGEST_BRANCH} are allowed.")
    return name


def listeners(text: str) -> tuple[str, ...]:
    """Names of entry points, or classes by their path."""
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if not _LISTENER.fullmatch(name):
            raise BadValueError(
                f"must be names such as mark-done or package.module:Class, separated by commas, not {quoted(text)}."
            )
        if names.count(name) > 1:
            raise BadValueError(f"names {name} twice.")
    return names
