"""``paimon_sink.settle``: after a run that has ended, no table lacks anything."""

from __future__ import annotations

from paimon_sink.core.errors import TablesBehindError
from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import parse_options
from paimon_sink.route.settle import Settled, settle_home
from paimon_sink.sink import listeners_of

__all__ = ["settle"]


def settle(**options: str) -> Settled:
    """Deliver what a stream into many tables carries. Needs no session.

    Args:
        **options: Those that the stream ran with; or those that name its home, ``warehouse`` and ``table``.

    Returns:
        What was looked at: the home, its commit users, and the rows of what they owed.

    Raises:
        OptionError: An option is missing, unknown or wrong; all problems are named.
        TableNotFoundError: There is no such home.
        TablesBehindError: Something is left. It is kept, and the sentence says what and why.

    Example:
        ```python
        query.awaitTermination()
        paimon_sink.settle(**options)
        ```
    """
    settled = settle_home(parse_options(options, purpose=Purpose.STREAM_WRITE), load_listeners=listeners_of)
    if settled.left:
        told = "; ".join(f"{user}: {why}" for user, why in settled.left.items())
        raise TablesBehindError(f"Tables of {settled.home} still lack batches, which are kept. {told}")
    return settled
