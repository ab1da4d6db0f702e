"""The data source ``format("pwc")`` of PySpark. It unwraps what Spark passes in and delegates; it decides nothing.

Start with ``source.py``: the class that Spark instantiates. ``writers.py`` and ``reader.py`` are its batch and stream
writers and its reader; ``schema.py`` converts types. ``session.py`` is what a user calls once a session, ``compact.py``
runs a compaction as a Spark job, ``progress.py`` joins a query's progress with what its batches became in the table,
and ``causes.py`` finds our error inside one of Spark's. ``context.py`` and ``reuse.py`` are about the Python workers
that all of this runs in.

May import every room except ``cli/``. Apart from two modules of ``cli/``, the only room that imports pyspark.
"""
