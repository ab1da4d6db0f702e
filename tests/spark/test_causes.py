"""``cause_of``: our own error inside one of Spark's. First on texts as Spark words them, then on Spark itself."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import paimon_sink.errors
from paimon_sink.core import errors
from paimon_sink.errors import (
    CommitUserConflictError,
    OptionError,
    PwcError,
    SchemaMismatchError,
    StaleBatchError,
    TableChangedError,
    TableNotFoundError,
    cause_of,
)
from paimon_sink.spark.causes import RAISED_HERE
from tests.spark.faulty import DropsItsTable
from tests.spark.support import Checkpoint, Source, lake_options, save
from tests.support.lake import Lake

SENTENCES = "The options have 2 problems:\n  1. 'bogus' is not an option.\n  2. targetFileSize must be a size."
QUERY = "[id = 7d9eed47-5080-401f-a5d2-92e34f15efc6, runId = ccdb7373-807a-44e8-8ea1-d1fdc8e66335]"
JVM = (
    "\tat org.apache.spark.sql.errors.QueryCompilationErrors$.pythonDataSourceError(QueryCompilationErrors.scala:257)\n"
)
PLANNING = "[PYTHON_DATA_SOURCE_ERROR] Failed to initialize Python data source writer: {trace} SQLSTATE: 38000"
WORKER = "An exception was thrown from the Python worker"
WORDINGS = {
    "planning": PLANNING,
    "planning, with the trace of the JVM": f"{PLANNING}\n\nJVM stacktrace:\norg.apache.spark.X: {PLANNING}\n{JVM}",
    "a task": f"{WORKER}:\n{{trace}}",
    "a task, otherwise": f"\n  {WORKER}. Please see the stack trace below.\n{{trace}}",
    "a job": "Job aborted due to stage failure: Task 0 in stage 1.0 failed 2 times, most recent failure: Lost task 0.1 "
    f"in stage 1.0 (TID 2): org.apache.spark.api.python.PythonException: {{trace}}\n{JVM}\nDriver stacktrace:",
    "a stream": f"[STREAM_FAILED] Query {QUERY} terminated with exception: [PYTHON_EXCEPTION] {WORKER}: {{trace}} "
    f"SQLSTATE: 38000 SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: {QUERY}\n",
    "foreachBatch": "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback (most "
    'recent call last):\n  File "client.py", line 1, in call\n    raise converted from None\n'
    f"pyspark.errors.exceptions.captured.AnalysisException: {PLANNING}\n",
}


def trace_of(error: Exception) -> str:
    """As a worker hands it to Spark."""
    return "".join(traceback.format_exception(error))


def raised(error: Exception, *, because: Exception | None = None) -> Exception:
    """The error with a traceback, as whoever caught it has it."""
    try:
        raise error from because
    except type(error) as caught:
        return caught


def sparks(message: str) -> PySparkException:
    return PySparkException(message)


@pytest.mark.parametrize("wording", WORDINGS.values(), ids=WORDINGS.keys())
def test_class_and_sentence_are_told_whatever_spark_says_around_them(wording: str) -> None:
    trace = trace_of(raised(OptionError(SENTENCES)))

    ours = cause_of(sparks(wording.format(trace=trace)))

    assert type(ours) is OptionError
    assert str(ours) == SENTENCES


@pytest.mark.parametrize(
    "words",
    ["An exception was thrown from the Python worker: ", "Failed to commit or abort Python data source write: "],
)
def test_it_is_told_where_a_setting_of_spark_hides_tracebacks(words: str) -> None:
    ours = cause_of(
        sparks(f"[X] {words}paimon_sink.core.errors.StaleBatchError: Cannot commit batch 3.\n SQLSTATE: 38000")
    )

    assert type(ours) is StaleBatchError
    assert str(ours) == "Cannot commit batch 3."


@pytest.mark.parametrize("name", errors.__all__)
def test_every_class_is_told_by_its_name(name: str) -> None:
    kind = getattr(errors, name)

    ours = cause_of(sparks(f"[X] worker: {trace_of(raised(kind('What happened, and the cure.')))}"))

    assert type(ours) is kind
    assert str(ours) == "What happened, and the cure."


def test_a_class_of_another_version_of_this_package_is_the_base_of_all() -> None:
    trace = trace_of(raised(OptionError("Cannot do it."))).replace("OptionError", "ErrorOfTomorrow")

    ours = cause_of(sparks(trace))

    assert type(ours) is PwcError
    assert str(ours) == "Cannot do it."


@pytest.mark.parametrize(
    "said",
    [
        "got paimon_sink.core.errors.OptionError: a quotation",
        "a line\npaimon_sink.core.errors.OptionError: a quotation on a line of its own",
        "a line\n\npaimon_sink.core.errors.OptionError: a quotation after a blank line\n",
    ],
)
def test_a_users_message_that_quotes_one_of_ours_is_not_mistaken(said: str) -> None:
    assert cause_of(sparks(f"[X] worker: {trace_of(raised(ValueError(said)))} SQLSTATE: 38000")) is None


def test_what_is_not_ours_has_no_cause_and_neither_has_nothing() -> None:
    assert cause_of(sparks("[TABLE_OR_VIEW_NOT_FOUND] The table or view `t` cannot be found.")) is None
    assert cause_of(ValueError(trace_of(raised(OptionError("Only Spark carries errors as text."))))) is None
    assert cause_of(None) is None


def test_one_that_is_ours_is_its_own_cause() -> None:
    error = OptionError("Give a table.")

    assert cause_of(error) is error


def test_a_traceback_below_the_sentence_is_no_part_of_it() -> None:
    error = raised(OptionError(SENTENCES))
    error.add_note(f"{RAISED_HERE}\n{trace_of(error)}")
    words = "[X] Failed to create Python data source instance: "

    whole = f"{words}{''.join(traceback.format_exception_only(error))} SQLSTATE: 38000"
    cut_short = whole[: whole.index("Traceback")]

    assert [str(cause_of(sparks(text))) for text in (whole, cut_short)] == [SENTENCES, SENTENCES]


def test_the_outermost_of_ours_is_told() -> None:
    inner = raised(TableNotFoundError("There is no table."))
    outer = raised(TableChangedError("The table was dropped."), because=inner)

    ours = cause_of(sparks(f"[X] worker: {trace_of(outer)} SQLSTATE: 38000"))

    assert (type(ours), str(ours)) == (TableChangedError, "The table was dropped.")


def test_ours_is_told_though_another_error_came_of_it() -> None:
    masking = raised(KeyError("reader"), because=raised(SchemaMismatchError("Column day is missing.")))

    ours = cause_of(sparks(f"[X] worker: {trace_of(masking)} SQLSTATE: 38000"))

    assert (type(ours), str(ours)) == (SchemaMismatchError, "Column day is missing.")


def test_what_the_jvm_names_first_goes_before_its_causes() -> None:
    outer, inner = (trace_of(raised(OptionError(said))) for said in ("The outer one.", "The inner one."))

    ours = cause_of(sparks(f"{outer} SQLSTATE: 38000\n{JVM}Caused by: org.apache.spark.SparkException: {inner}\n{JVM}"))

    assert str(ours) == "The outer one."


def test_chains_of_exceptions_are_followed_unless_they_are_cut() -> None:
    from_spark = sparks(trace_of(raised(OptionError("Give a table."))))

    meant = raised(RuntimeError("the nightly load failed"), because=from_spark)
    by_the_way = RuntimeError("while the nightly load failed")
    by_the_way.__context__ = meant
    cut = raised(RuntimeError("something else"))
    cut.__context__, cut.__suppress_context__ = from_spark, True

    assert [str(cause_of(error)) for error in (meant, by_the_way)] == ["Give a table."] * 2
    assert cause_of(cut) is None


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__context__, second.__context__ = second, first

    assert cause_of(first) is None


class _GoneError(PySparkException):
    """As one whose JVM does not answer any more."""

    def __str__(self) -> str:
        raise ConnectionRefusedError("the gateway is closed")


_GoneError.__module__ = PySparkException.__module__


def test_an_error_that_cannot_be_asked_any_more_raises_no_other() -> None:
    assert cause_of(_GoneError("[X]")) is None


def test_the_front_door_has_all_errors_and_the_function() -> None:
    assert sorted(paimon_sink.errors.__all__) == sorted([*errors.__all__, "cause_of"])
    assert all(hasattr(paimon_sink.errors, name) for name in paimon_sink.errors.__all__)


# ---------------------------------------------------------------- Spark itself


def rows(spark: SparkSession, day: str = "'monday'") -> DataFrame:
    return spark.range(3).coalesce(1).selectExpr("id", f"{day} AS day")


def failure(frame: DataFrame, lake: Lake, *, sink: str = "pwc", **options: str) -> BaseException:
    writer = frame.write.format(sink).mode("append").options(**lake_options(lake, **options))
    with pytest.raises(Exception) as failed:  # noqa: PT011 - its class is Spark's to choose
        writer.save()
    assert not isinstance(failed.value, PwcError)
    return failed.value


@pytest.mark.spark
@pytest.mark.everywhere
@pytest.mark.smoke
def test_a_batch_job_tells_why_it_failed_in_planning_in_a_task_and_in_its_commit(
    spark: SparkSession, local_lake: Lake
) -> None:
    spark.dataSource.register(DropsItsTable)
    save(rows(spark), local_lake)

    planning = cause_of(failure(rows(spark), local_lake, bogus="1", targetFileSize="x"))
    task = cause_of(failure(rows(spark, "cast(null AS string)"), local_lake))
    commit = cause_of(failure(rows(spark), local_lake, sink=DropsItsTable.name()))

    assert type(planning) is OptionError
    assert str(planning).startswith("The options have 2 problems:\n  1. 'bogus' is not an option")
    assert str(planning).endswith("not 'x'.")
    assert type(task) is SchemaMismatchError
    assert str(task).startswith("Cannot write to sales.orders: column day has a null")
    assert str(task).endswith("Filter or fill it.")
    assert type(commit) is TableChangedError
    assert str(commit) == str(TableChangedError.dropped("sales.orders"))


def lines_above_our_sentence(failed: BaseException) -> int:
    """How many lines a person reads before it, in what Spark shows of the error."""
    shown, ours = str(failed), str(cause_of(failed))
    assert shown.count("Traceback") >= 1, "the traceback is there too, for whoever mends the package"
    return shown[: shown.index(ours)].strip().count("\n")


@pytest.mark.spark
@pytest.mark.everywhere
@pytest.mark.smoke
def test_our_sentence_comes_before_the_traceback_in_a_batch_job(spark: SparkSession, local_lake: Lake) -> None:
    spark.dataSource.register(DropsItsTable)
    save(rows(spark), local_lake)

    planning = failure(rows(spark), local_lake, bogus="1")
    task = failure(rows(spark, "cast(null AS string)"), local_lake)
    commit = failure(rows(spark), local_lake, sink=DropsItsTable.name())
    with pytest.raises(Exception) as read:  # noqa: PT011 - its class is Spark's to choose
        spark.read.format("pwc").options(**lake_options(local_lake, versionAsOf="99")).load().collect()

    # Spark has a line of its own above what came of a task.
    assert [lines_above_our_sentence(failed) for failed in (planning, commit, read.value)] == [0, 0, 0]
    assert lines_above_our_sentence(task) <= 1


@pytest.mark.spark
@pytest.mark.smoke
def test_our_sentence_comes_before_the_traceback_in_a_stream(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    source.add(range(5))
    checkpoint.run(source.stream(spark), lake_options(local_lake, commitUser="nightly"))
    planned = Checkpoint(tmp_path / "bogus").start(source.stream(spark), lake_options(local_lake, bogus="1"))
    taken = Checkpoint(tmp_path / "taken").start(source.stream(spark), lake_options(local_lake, commitUser="nightly"))
    too_far = spark.readStream.format("pwc").options(**lake_options(local_lake, startingVersion="99")).load()
    reading = too_far.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "noop")).start()

    above = []
    for query in (planned, taken, reading):
        with pytest.raises(StreamingQueryException) as ended:
            query.awaitTermination()
        above.append(lines_above_our_sentence(ended.value))

    assert above == [0, 0, 0]


@pytest.mark.spark
def test_a_users_function_that_fails_later_in_the_same_session_keeps_its_traceback(
    spark: SparkSession, local_lake: Lake
) -> None:
    def broken(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("of the user's own")

    save(rows(spark), local_lake)
    failure(rows(spark, "cast(null AS string)"), local_lake)
    with pytest.raises(Exception, match="of the user's own") as failed:
        rows(spark).mapInArrow(broken, "id long, day string").collect()

    assert "in broken" in str(failed.value)


@pytest.mark.spark
@pytest.mark.parametrize("setting", ["hideTraceback", "simplifiedTraceback"])
def test_it_is_told_however_spark_is_set_to_print_tracebacks(
    spark: SparkSession, local_lake: Lake, setting: str
) -> None:
    key = f"spark.sql.execution.pyspark.udf.{setting}.enabled"
    spark.conf.set(key, "true")
    try:
        planning = cause_of(failure(rows(spark), local_lake, bogus="1"))
        save(rows(spark), local_lake)
        task = cause_of(failure(rows(spark, "cast(null AS string)"), local_lake))
    finally:
        spark.conf.unset(key)

    assert str(planning) == "'bogus' is not an option; `pwc options` lists what there is."
    assert type(task) is SchemaMismatchError
    assert str(task).endswith("Filter or fill it.")


@pytest.mark.spark
@pytest.mark.smoke
def test_a_stream_tells_why_it_failed_to_whoever_waits_and_to_whoever_asks(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    source.add(range(5))
    options = lake_options(local_lake, commitUser="nightly")
    checkpoint.run(source.stream(spark), options)
    planned_badly = Checkpoint(tmp_path / "bogus").start(source.stream(spark), {**options, "bogus": "1"})
    under_a_taken_name = Checkpoint(tmp_path / "fresh").start(source.stream(spark), options)

    told = []
    for query in (planned_badly, under_a_taken_name):
        with pytest.raises(StreamingQueryException) as ended:
            query.awaitTermination()
        told.append((cause_of(ended.value), cause_of(query.exception())))

    assert [tuple(map(type, pair)) for pair in told] == [(OptionError,) * 2, (CommitUserConflictError,) * 2]
    assert [str(asked) for _, asked in told] == [str(waited) for waited, _ in told]
    assert str(told[0][0]) == "'bogus' is not an option; `pwc options` lists what there is."
    assert str(told[1][0]).startswith("Cannot commit batch 0 to sales.orders: ")
    assert "SQLSTATE" not in str(told[1][0])


@pytest.mark.spark
def test_a_failure_of_the_users_own_has_no_cause_of_ours(spark: SparkSession, local_lake: Lake) -> None:
    def quoting(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("a line\npaimon_sink.core.errors.OptionError: a quotation")

    failed = failure(rows(spark).mapInArrow(quoting, "id long, day string"), local_lake)

    assert "a quotation" in str(failed)
    assert cause_of(failed) is None


@pytest.mark.spark
def test_the_example_of_the_page_of_errors_tells_an_alarm_from_a_restart(
    spark: SparkSession, local_lake: Lake, source: Source, checkpoint: Checkpoint
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
    example = next(found for found in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "cause_of" in found)
    source.add(range(5))
    query = checkpoint.start(source.stream(spark), lake_options(local_lake, bogus="1"))
    heard: list[tuple[str, str]] = []
    restarts: list[bool] = []
    names = {
        "query": query,
        "restart_the_query": lambda: restarts.append(True),
        "call_somebody": lambda kind, sentence: heard.append((kind, sentence)),
    }

    exec(compile(example, "errors.md", "exec"), names)

    assert heard == [("OptionError", "'bogus' is not an option; `pwc options` lists what there is.")]
    assert restarts == []


@pytest.mark.parametrize("kind", ["vector.util.OversizedAllocationException", "memory.OutOfMemoryException"])
def test_rows_that_java_has_no_room_for_are_named_with_the_cure(kind: str) -> None:
    error = PySparkException(
        f"Job aborted due to stage failure: Task 0: org.apache.arrow.{kind}: Memory required\n{JVM}"
    )

    assert "maxRecordsPerBatch" in str(cause_of(error))
