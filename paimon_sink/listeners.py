"""What a listener of one's own needs: the event it is notified of, the protocol it keeps to, what it is made from.

Its settings are declared as fields of a subclass of ``Settings``, each by ``setting`` with one of the parsers here.
"""

from paimon_sink.core.events import CommitEvent, CommitListener, WrittenPartition
from paimon_sink.core.option_values import (
    BadValueError,
    boolean,
    choice,
    count,
    duration_ms,
    plain_text,
    size_bytes,
    words,
)
from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.settings import Settings, setting, setting_family
from paimon_sink.listen.table import ListenerTable

__all__ = [
    "BadValueError",
    "CommitEvent",
    "CommitListener",
    "Listener",
    "ListenerContext",
    "ListenerTable",
    "Settings",
    "WrittenPartition",
    "boolean",
    "choice",
    "count",
    "duration_ms",
    "plain_text",
    "setting",
    "setting_family",
    "size_bytes",
    "words",
]

Listener = CommitListener
"""The protocol's name before. Both are the same."""
