"""What a listener of one's own needs: the event it is notified of, the protocol it keeps to, what it is made from."""

from paimon_sink.core.events import CommitEvent, CommitListener, WrittenPartition
from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.table import ListenerTable

__all__ = ["CommitEvent", "CommitListener", "Listener", "ListenerContext", "ListenerTable", "WrittenPartition"]

Listener = CommitListener
"""The protocol's name before. Both are the same."""
