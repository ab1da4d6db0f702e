"""Keeps credentials out of the logs of the libraries below us, which at DEBUG print the requests they sign."""

from __future__ import annotations

import logging

from paimon_sink.storage.settings import StorageSettings

__all__ = ["keep_out_of_logs"]

_LOGGERS = ("botocore.auth", "botocore.endpoint", "botocore.hooks", "botocore.parsers", "botocore.retryhandler")


class _Scrubber(logging.Filter):
    """Rewrites records that hold a secret of any store this process opened."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: set[StorageSettings] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = clean = record.getMessage()
        for settings in self.settings:
            clean = settings.scrub(clean)
        if clean != text:
            record.msg, record.args = clean, ()
        return True


_scrubber = _Scrubber()


def keep_out_of_logs(settings: StorageSettings) -> None:
    """Scrub the secrets of ``settings`` from now on. A filter applies only to the logger it is set on."""
    _scrubber.settings.add(settings)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_scrubber)
