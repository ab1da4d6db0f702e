"""What a user calls once a session."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from paimon_sink.core.options import Purpose
from paimon_sink.formats.registry import parse_options
from paimon_sink.spark.arrow_batches import settings_for
from paimon_sink.spark.context import DIRECTORY, PARALLELISM
from paimon_sink.spark.source import PwcDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "REDACTION",
    "SECRET_OPTIONS",
    "attach",
    "directory_for",
    "register",
    "use_this_python",
]

REDACTION = "spark.sql.redaction.options.regex"
_SPARKS_DEFAULT = "(?i)url"
SECRET_OPTIONS = (
    r"(?i)(s3|catalog|listener)[.].*(key|credential|passw|passphrase|to[k]en|se[c]ret|uri)|://.*[?]|://[^/]*:[^/]*@"
)
"""Spark matches names of options with it, and values: it prints a location that we refuse for the secret in it.

Spelt so that Spark does not take the pattern itself for a secret: a Connect server would refuse to tell it.
"""


def register(spark: SparkSession, *, tune: bool = True) -> None:
    """Make ``format("pwc")`` known to this session, classic or Spark Connect.

    Call it once a session, before the first read or write. It also has Spark hide options that may hold a secret, and
    in local mode run its workers with the Python that this program runs with.

    Args:
        spark: The session.
        tune: Whether Spark ends the Arrow batches that it sends to Python by rows and not by bytes, unless the session
            has a value of its own for that. ``False`` leaves the session's settings as they are.

    Raises:
        pyspark.errors.PySparkException: The session is stopped, or a Connect server does not answer.

    Example:
        ```python
        paimon_sink.register(spark)
        spark.range(3).write.format("pwc").mode("append").options(warehouse="/tmp/lake", table="demo.numbers").save()
        ```
    """
    use_this_python(spark)
    _hide_secrets(spark)
    if tune:
        _end_batches_by_rows(spark)
    directory = directory_for(spark)
    if directory is not None:
        # Travels with the data source, which is handed to Spark next, to all of its workers. For good: a program that
        # changes its directory later must not find its tables in another place.
        spark.sparkContext.environment[DIRECTORY] = directory
    if hasattr(spark, "_jsparkSession"):
        spark.sparkContext.environment[PARALLELISM] = str(spark.sparkContext.defaultParallelism)
    spark.dataSource.register(PwcDataSource)


def attach(spark: SparkSession, view: str, **options: str) -> None:
    """Make a table a temporary view to ``INSERT INTO`` and ``SELECT`` from. The table must exist.

    The view keeps the snapshot of its first read, because Spark plans it once: attach it again to see newer rows.

    Args:
        spark: The session. It need not be registered before.
        view: The name of the view. One of that name is replaced.
        **options: Those of ``format("pwc")``: ``warehouse`` and ``table``, or ``path``, and more.

    Raises:
        OptionError: An option is missing, unknown or wrong; all problems are named.
        pyspark.errors.AnalysisException: There is no such table. ``cause_of`` returns our ``TableNotFoundError``.

    Example:
        ```python
        paimon_sink.attach(spark, "numbers", warehouse="/tmp/lake", table="demo.numbers")
        spark.sql("INSERT INTO numbers SELECT 42L")
        ```
    """
    # Whether to tune is for whoever registers: it may have been refused.
    register(spark, tune=False)
    parse_options(options, purpose=Purpose.READ, directory=directory_for(spark))
    # Not by SQL text: Spark shows and logs that, with every secret in it.
    spark.read.format(PwcDataSource.name()).options(**options).load().createOrReplaceTempView(view)


def directory_for(spark: SparkSession) -> str | None:
    """What relative paths mean to this session: the driver's directory in local mode, and nothing anywhere else."""
    if not hasattr(spark, "_jsparkSession"):
        return None
    context = spark.sparkContext
    master = context.master or ""
    if master != "local" and not master.startswith("local["):
        return None
    try:
        return context.environment.get(DIRECTORY) or os.getcwd()
    except OSError:
        # It was removed under the program. Paths in full do as well as ever.
        return None


def _end_batches_by_rows(spark: SparkSession) -> None:
    threads = spark.sparkContext.defaultParallelism if hasattr(spark, "_jsparkSession") else None
    for key, value in settings_for(lambda key: spark.conf.get(key, None), local_threads=threads).items():
        spark.conf.set(key, value)


def _hide_secrets(spark: SparkSession) -> None:
    """Spark prints options in its plans and hides what it takes for a secret; an access key is not, by itself."""
    hidden = spark.conf.get(REDACTION, _SPARKS_DEFAULT) or ""
    if SECRET_OPTIONS not in hidden:
        spark.conf.set(REDACTION, "|".join(filter(None, (hidden, SECRET_OPTIONS))))


def use_this_python(spark: SparkSession) -> None:
    """In local mode the workers are ours to choose. Spark would take whatever ``python3`` is on PATH."""
    if "PYSPARK_PYTHON" in os.environ or not hasattr(spark, "_jsparkSession"):
        return
    context = spark.sparkContext
    if (context.master or "").startswith("local") and context.getConf().get("spark.pyspark.python") is None:
        context.pythonExec = sys.executable
