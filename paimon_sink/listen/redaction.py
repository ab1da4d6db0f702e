"""Keeps secrets out of a listener's errors, which are logged and stored in the table."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, unquote_plus, urlsplit

from paimon_sink.core.errors import PwcError
from paimon_sink.core.events import CommitEvent, CommitListener
from paimon_sink.core.option_secrets import HIDDEN, is_secret

__all__ = ["RedactingListener", "redact", "secrets_in"]

log = logging.getLogger(__name__)

_SHORTEST = 6
"""Shorter pieces of an address are no secrets, and occur in ordinary words."""


def secrets_in(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets in some settings: values by the names of their keys, and any part of an address that may be one."""
    secrets = {value for key, value in settings.items() if is_secret(key, value)}
    for value in settings.values():
        secrets.update(_login_of(value))
    return tuple(sorted((secret for secret in secrets if len(secret) >= _SHORTEST), key=len, reverse=True))


def _login_of(value: str) -> Iterable[str]:
    try:
        address = urlsplit(value)
        login = (address.username, address.password)
    except ValueError:
        return
    if not address.scheme or not address.netloc:
        return
    # Paths may hold tokens too, as those of web hooks do.
    pieces = [*filter(None, login), *address.path.split("/"), address.query, *re.split("[&;=]", address.query)]
    for piece in pieces:
        yield from (piece, unquote(piece), quote(unquote(piece), safe=""), unquote_plus(piece))


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without secrets, and without unpaired surrogates, which file names may hold and UTF-8 cannot."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def describe_error(error: BaseException, secrets: Iterable[str]) -> str:
    """An error in one line."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the listener's own __str__ may fail
        text = "it has no readable text"
    return redact(text if isinstance(error, PwcError) else f"{type(error).__name__}: {text}", secrets)


@dataclass(frozen=True)
class RedactingListener:
    """A listener whose errors hold no secrets."""

    listener: CommitListener
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        try:
            return self.listener.on_commit(event, state)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a listener may raise anything
            log.debug("A listener failed: %s", redact("".join(traceback.format_exception(error)), self.secrets))
            # Without a cause: its unredacted text would be shown too.
            raise PwcError(describe_error(error, self.secrets)) from None
