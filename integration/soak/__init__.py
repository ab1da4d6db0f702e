"""Real processes under fire: S3, a Spark cluster, three writers on one table, and SIGKILLs. See ``__main__``."""
