"""Real processes for tests, at a small price: a server imports everything once and forks each of them.

A forked process has no memory of the test: it gets plain values and opens its own table, as another driver would.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

__all__ = ["CONTEXT"]

CONTEXT: ForkServerContext = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "pytest",
        "s3fs",
        "pyarrow.parquet",
        # Half a second of processor time each, in every process that is started without them.
        "psycopg2",
        "pyiceberg.catalog.rest",
        "pyiceberg.catalog.sql",
        "sqlalchemy.dialects.postgresql",
        "sqlalchemy.dialects.sqlite",
        "paimon_sink.formats.iceberg.format",
        "paimon_sink.formats.paimon.format",
        "paimon_sink.spark.source",
        "paimon_sink.storage.local",
        "paimon_sink.storage.remote",
        "tests.support.foreign",
        "tests.support.iceberg_engine",
        "tests.support.racer",
        "tests.support.victims",
    ]
)
