"""``pwc demo``: a streaming query whose driver is killed and restarted, and a count of every row at the end.

``driver`` is a process of its own; only ``query``, which it runs, imports pyspark.
"""
