"""What may be shown of an option. Everything that prints a key or a value goes through here."""

from __future__ import annotations

import re

__all__ = ["HIDDEN", "Masked", "has_query", "holds_credentials", "is_secret", "names_a_secret", "quoted", "quoted_key"]

HIDDEN = "(hidden)"

_SECRET_WORDS = (
    "token",
    "secret",
    "passw",
    "passphrase",
    "credential",
    "key",
    "header.",
    "auth",
    "connection-string",
    "sas",
    "http.url",  # of a hook: its path is often the token
)
_LONGEST_QUOTE = 60


def names_a_secret(key: str) -> bool:
    """Whether the value under this key must never be shown."""
    lowered = key.lower()
    return any(word in lowered for word in _SECRET_WORDS)


def holds_credentials(uri: str) -> bool:
    """Whether a URI carries a login, as in ``s3://key:secret@bucket``.

    ``abfss://container@account`` is no login. An S3 secret may itself contain a slash, so for S3 a colon that does not
    start a port counts as well.
    """
    scheme_and_slashes = re.match(r"\s*([A-Za-z][A-Za-z0-9+.\-]*):(/*)", uri)
    if scheme_and_slashes is None:
        return False
    scheme, rest = scheme_and_slashes.group(1).lower(), uri[scheme_and_slashes.end() :]
    on_s3 = scheme in ("s3", "s3a", "s3n")
    if len(scheme_and_slashes.group(2)) != 2 and not on_s3:
        return False
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    login, at, _ = authority.rpartition("@")
    if at:
        return on_s3 or ":" in login
    _, colon, port = authority.rpartition(":")
    return bool(colon) and "@" in rest and not port.isdecimal()


def has_query(uri: str) -> bool:
    """Whether a URI goes on behind a question mark, where addresses carry tokens. A plain path may hold one."""
    return "?" in uri and re.match(r"\s*[A-Za-z][A-Za-z0-9+.\-]+:", uri) is not None


def quoted(text: str) -> str:
    """A value for an error sentence: short, printable, and hidden when it is a URI with a login or a query string."""
    if holds_credentials(text) or has_query(text):
        return HIDDEN
    if len(text) > _LONGEST_QUOTE:
        text = text[:_LONGEST_QUOTE] + "..."
    return repr(text)


def quoted_key(key: str) -> str:
    """A key nobody declared. It is cut where a value may have been glued to it, which may be a secret."""
    name = re.split(r"[=:\s]", key, maxsplit=1)[0]
    return quoted(name if name == key else name + "...")


def is_secret(key: str, value: str) -> bool:
    # An address may hold a password in ways nobody foresees: behind its question mark, or with a slash in it.
    is_full_address = key.lower().endswith(("uri", "url")) and bool(set("@?") & set(value))
    return names_a_secret(key) or holds_credentials(value) or has_query(value) or is_full_address


class Masked(dict[str, str]):
    """A dict whose text form hides secrets, however it gets into a log line."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{key!r}: {HIDDEN if is_secret(key, value) else repr(value)}" for key, value in self.items())
        return "{" + shown + "}"

    __str__ = __repr__
