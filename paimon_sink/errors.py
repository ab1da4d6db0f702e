"""The errors users may catch. They are defined in :mod:`paimon_sink.core.errors`."""

from paimon_sink.core.errors import *  # noqa: F403
from paimon_sink.core.errors import __all__  # noqa: F401
