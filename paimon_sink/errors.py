"""The errors users may catch, and :func:`cause_of` for those that came through Spark."""

from paimon_sink.core import errors as _errors
from paimon_sink.core.errors import *  # noqa: F403
from paimon_sink.spark.causes import cause_of

__all__ = [*_errors.__all__, "cause_of"]  # noqa: PLE0604
