"""How to reach a store, as a frozen value that may cross processes. Handles are opened from it where they are used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paimon_sink.core.errors import OptionError

__all__ = ["StorageSettings"]

_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 60
_MAX_ATTEMPTS = 5
_HIDDEN = "***"
_USER_INFO = re.compile(r"(?<=//)[^/@\s]+@")


@dataclass(frozen=True, repr=False)
class StorageSettings:
    """The user's ``s3.*`` options. All may be absent: s3fs then asks the AWS environment (variables, profile, role)."""

    endpoint: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None
    session_token: str | None = None
    region: str | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> StorageSettings:
        """Take the ``s3.*`` options out of a mapping; blank counts as absent. ``OptionError`` names every problem."""

        def given(key: str) -> str | None:
            return options.get(key, "").strip() or None

        settings = cls(
            endpoint=given("s3.endpoint"),
            access_key_id=given("s3.access-key-id"),
            secret_access_key=given("s3.secret-access-key"),
            session_token=given("s3.session-token"),
            region=given("s3.region"),
        )
        problems = settings._problems()
        if problems:
            raise OptionError(" ".join(problems))
        return settings

    def _problems(self) -> list[str]:
        problems = []
        if self.endpoint is not None and not self.endpoint.startswith(("http://", "https://")):
            problems.append("s3.endpoint must begin with http:// or https://, for example http://127.0.0.1:9000.")
        if (self.access_key_id is None) != (self.secret_access_key is None):
            problems.append(
                "s3.access-key-id and s3.secret-access-key belong together: set both, or neither to use the AWS "
                "environment."
            )
        if self.session_token is not None and self.access_key_id is None:
            problems.append("s3.session-token needs s3.access-key-id and s3.secret-access-key.")
        return problems

    def s3fs_arguments(self) -> dict[str, Any]:
        """Arguments of ``s3fs.S3FileSystem``. Listings are never cached: a commit must see what others just wrote."""
        client: dict[str, Any] = {} if self.region is None else {"region_name": self.region}
        arguments: dict[str, Any] = {
            "use_listings_cache": False,
            "client_kwargs": client,
            "config_kwargs": {
                "connect_timeout": _CONNECT_TIMEOUT_S,
                "read_timeout": _READ_TIMEOUT_S,
                "retries": {"mode": "standard", "max_attempts": _MAX_ATTEMPTS},
            },
        }
        named = {
            "endpoint_url": self.endpoint,
            "key": self.access_key_id,
            "secret": self.secret_access_key,
            "token": self.session_token,
        }
        return arguments | {name: value for name, value in named.items() if value is not None}

    def scrub(self, text: str) -> str:
        """``text`` without any secret of these settings, for messages that quote a library's error."""
        for secret in (self.secret_access_key, self.session_token, self.access_key_id):
            if secret:
                text = text.replace(secret, _HIDDEN)
        return _USER_INFO.sub(f"{_HIDDEN}@", text)

    def __repr__(self) -> str:
        def hidden(value: str | None) -> str | None:
            return None if value is None else _HIDDEN

        endpoint = None if self.endpoint is None else self.scrub(self.endpoint)
        return (
            f"StorageSettings(endpoint={endpoint!r}, region={self.region!r}, "
            f"access_key_id={hidden(self.access_key_id)!r}, secret_access_key={hidden(self.secret_access_key)!r}, "
            f"session_token={hidden(self.session_token)!r})"
        )
