"""Imported by every Python of the tests' local session or Connect server. In Spark's daemons, before they fork.

A worker whose call failed is not used again, and many tests are about calls that fail: each would import for two
seconds of processor time. How a worker imports is tested in processes of their own (``tests/cli/test_imports.py``).
"""

import sys

if "pyspark.daemon" in sys.orig_argv and "pyspark.sql.worker.lookup_data_sources" not in sys.orig_argv:
    import gc

    import pyspark.worker  # noqa: F401

    import paimon_sink.formats.iceberg.format
    import paimon_sink.formats.paimon.format
    import paimon_sink.spark.source  # noqa: F401

    gc.freeze()
