"""What a listener of one's own needs: the event it is told, the protocol it keeps to, and what it is made from."""

from paimon_sink.core.events import CommitEvent, Listener, WrittenPartition
from paimon_sink.listen.loading import ListenerContext

__all__ = ["CommitEvent", "Listener", "ListenerContext", "WrittenPartition"]
