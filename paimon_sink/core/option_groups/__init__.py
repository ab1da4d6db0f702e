"""Every option, declared once as the field that holds it. Parsing, the options page and ``pwc options`` come from here.

A group is what one room needs to know. A new option is a field in one of them; ``core/option_fields.py`` says what
there is to declare.
"""

from __future__ import annotations

from paimon_sink.core.option_groups.commit import CommitOptions
from paimon_sink.core.option_groups.follow import FollowOptions
from paimon_sink.core.option_groups.listeners import ListenerOptions
from paimon_sink.core.option_groups.quarantine import QuarantineOptions
from paimon_sink.core.option_groups.read import ReadOptions
from paimon_sink.core.option_groups.route import RouteOptions
from paimon_sink.core.option_groups.table import TableOptions
from paimon_sink.core.option_groups.upkeep import UpkeepOptions
from paimon_sink.core.option_groups.write import WriteOptions

__all__ = [
    "CommitOptions",
    "FollowOptions",
    "ListenerOptions",
    "QuarantineOptions",
    "ReadOptions",
    "RouteOptions",
    "TableOptions",
    "UpkeepOptions",
    "WriteOptions",
]
