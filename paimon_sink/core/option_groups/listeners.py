"""Options that say who is notified of each batch."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_sink.core import option_values as values
from paimon_sink.core.option_fields import WRITES, OptionGroup, Section, option, option_family

__all__ = ["ListenerOptions"]


class ListenerOptions(OptionGroup):
    """Who is notified of each batch."""

    SECTION = Section.LISTENERS

    names: tuple[str, ...] = option(
        "listeners",
        parse=values.listeners,
        doc=(
            "Who is told of each batch once it is in, separated by commas: names of entry points in the group "
            "`paimon_sink.listeners`, or `package.module:Class`. A batch write needs `commitUser` and "
            "`commitIdentifier` then."
        ),
        example="mark-done, metrics",
        purposes=WRITES,
        unset=(),
    )
    settings: Mapping[str, str] = option_family(
        "listener.",
        doc="Settings of a listener, after its name.",
        example="listener.metrics.file=/var/log/pwc.jsonl",
        purposes=WRITES,
    )
