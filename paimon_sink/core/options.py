"""Options: text from users in, one frozen, checked value out.

All problems are found before anything is touched and told together. What the options are stands in ``option_groups``;
here stands which of them contradict each other, or a table format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from paimon_sink.core.capabilities import Capabilities
from paimon_sink.core.condition_literals import LiteralError
from paimon_sink.core.condition_text import NotUnderstoodError
from paimon_sink.core.condition_text import parse as parse_condition
from paimon_sink.core.errors import OptionError
from paimon_sink.core.names import nearest_name, parse_table_name
from paimon_sink.core.option_fields import READS, Declaration, Purpose
from paimon_sink.core.option_groups import (
    CommitOptions,
    FollowOptions,
    ListenerOptions,
    QuarantineOptions,
    ReadOptions,
    RouteOptions,
    TableOptions,
    UpkeepOptions,
    WriteOptions,
)
from paimon_sink.core.option_groups.table import MAIN_BRANCH
from paimon_sink.core.option_reading import Declared, Given, all_together
from paimon_sink.core.option_secrets import quoted, quoted_key
from paimon_sink.core.option_values import HIGHEST_IDENTIFIER, BadValueError, transforms_in
from paimon_sink.core.places import is_rest, settled, settled_database
from paimon_sink.core.route_options import home_place, parsed_per_table, route_problems

__all__ = ["DECLARED", "FIRST", "LAST", "ONE_SNAPSHOT", "SPARK_KEYS", "SPARK_PREFIXES", "Options", "Purpose"]

SPARK_KEYS = ("checkpointLocation", "queryName", "outputMode")
"""Spark's own options. They reach us together with ours and are none of our business."""
SPARK_PREFIXES = ("spark.",)
OVERWRITE_SETTING = "spark.sql.sources.partitionOverwriteMode"
"""Spark's own. The one of its settings that is mistaken for an option, and would make an overwrite wider than meant."""

DECLARED = Declared(
    (
        TableOptions,
        WriteOptions,
        CommitOptions,
        ReadOptions,
        FollowOptions,
        UpkeepOptions,
        ListenerOptions,
        QuarantineOptions,
        RouteOptions,
    )
)

NO_TABLE = (
    "No table is named: Spark does not hand a catalog table's options to a Python data source, so a statement on a "
    "table created USING pwc, or by saveAsTable, arrives without any; either run CREATE TEMPORARY VIEW t USING pwc "
    "OPTIONS (warehouse '…', table '…') and use that view, or give the options with each statement: INSERT INTO t WITH "
    "(warehouse='…', table='…') SELECT …, or SELECT … FROM t WITH (warehouse='…', table='…'), or set warehouse and "
    "table, or path, on the DataFrame reader or writer itself."
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one reader or writer. It crosses processes, and its text form shows no secret."""

    table: TableOptions = field(default_factory=TableOptions)
    write: WriteOptions = field(default_factory=WriteOptions)
    commit: CommitOptions = field(default_factory=CommitOptions)
    read: ReadOptions = field(default_factory=ReadOptions)
    follow: FollowOptions = field(default_factory=FollowOptions)
    upkeep: UpkeepOptions = field(default_factory=UpkeepOptions)
    listeners: ListenerOptions = field(default_factory=ListenerOptions)
    quarantine: QuarantineOptions = field(default_factory=QuarantineOptions)
    route: RouteOptions = field(default_factory=RouteOptions)
    per_table: Mapping[str, Options] = field(default_factory=dict)
    """What holds for single tables that rows choose, by the table as ``route.<table>.<option>`` names it."""

    @property
    def is_routed(self) -> bool:
        """Whether rows choose their tables. ``table`` is then the home."""
        return self.route.column is not None

    @classmethod
    def parse(
        cls,
        options: Mapping[str, Any],
        *,
        purpose: Purpose,
        formats: Mapping[str, Capabilities],
        directory: str | None = ".",
    ) -> Options:
        """Read and check all options, or raise one :class:`OptionError` that tells every problem.

        ``formats`` are those that ``tableFormat`` may name. Relative paths are taken from ``directory``, and refused
        when it is None.
        """
        ours = {key: value for key, value in options.items() if not _is_sparks_own(str(key))}
        given = Given(ours, DECLARED, unknown=_unknown, parsers={"tableFormat": _table_format(formats)})
        parsed = cls(
            table=given.read(TableOptions),
            write=given.read(WriteOptions),
            commit=given.read(CommitOptions),
            read=given.read(ReadOptions),
            follow=given.read(FollowOptions),
            upkeep=given.read(UpkeepOptions),
            listeners=given.read(ListenerOptions),
            quarantine=given.read(QuarantineOptions),
            route=given.read(RouteOptions),
        )
        parsed = replace(parsed, table=home_place(parsed.route, parsed.table, given))
        parsed = replace(parsed, table=_placed(parsed.table, directory, given))
        parsed = replace(parsed, quarantine=_quarantine_placed(parsed.quarantine, directory, given))
        problems = [
            *given.unknown,
            *given.problems,
            *_purpose_problems(given, purpose, options),
            *_location_problems(given),
            *_format_problems(given, parsed, formats),
            *_commit_problems(given, purpose),
            *_replacement_problems(given, purpose),
            *_switch_problems(given, purpose),
            *_merge_problems(given, parsed.write, purpose),
            *_watermark_problems(given),
            *_version_problems(given, purpose, parsed.read),
            *_listener_problems(given, purpose, parsed.listeners),
            *_quarantine_problems(given, purpose, parsed),
            *(() if purpose in READS else route_problems(given, parsed.route)),
        ]
        if problems:
            raise all_together(problems, whose="The options")
        if not parsed.is_routed or purpose in READS:
            return parsed

        def one_table(texts: Mapping[str, str]) -> Options:
            return cls.parse(texts, purpose=purpose, formats=formats, directory=directory)

        return replace(parsed, per_table=parsed_per_table(given, parsed.route, parsed.table, one_table))


# ---------------------------------------------------------------- rules over several options


ONE_SNAPSHOT = ("versionAsOf", "timestampAsOf")
"""The options that name the snapshot of a batch read."""
FIRST, LAST = ("startingVersion", "startingTimestamp"), ("endingVersion", "endingTimestamp")
"""Those that say where a range begins, or a stream, and where a range ends."""


def _version_problems(given: Given, purpose: Purpose, read: ReadOptions) -> list[str]:
    """A read is of one snapshot, or of one range, and each is named in one way. A stream has a begin alone."""
    if purpose is Purpose.STREAM_READ:
        both = all(map(given.has, FIRST))
        return [f"{' and '.join(FIRST)} contradict each other; give one of them."] if both else []
    problems = [
        f"{' and '.join(pair)} contradict each other; give one of them."
        for pair in (ONE_SNAPSHOT, FIRST, LAST)
        if all(map(given.has, pair))
    ]
    snapshot, first, last = ([key for key in keys if given.has(key)] for keys in (ONE_SNAPSHOT, FIRST, LAST))
    if snapshot and (first or last):
        problems.append(
            f"{snapshot[0]} and {(first or last)[0]} contradict each other; a read is of one snapshot, or of a range."
        )
    if isinstance(read.starting_version, str):
        problems.append(
            f"startingVersion={read.starting_version} is for streams: spark.readStream. A batch read begins at the id "
            "of a snapshot."
        )
    for key in (*last, *(["skipChangeCommits"] if given.has("skipChangeCommits") else [])):
        if not first:
            problems.append(f"{key} does nothing without startingVersion or startingTimestamp; give one of them.")
    return problems


def _location_problems(given: Given) -> list[str]:
    warehouse, table, path = (given.has(key) for key in ("warehouse", "table", "path"))
    if given.has("routeColumn") and not table and not path:
        return [] if warehouse else ["warehouse is missing; give it beside routeColumn."]
    if path and (warehouse or table):
        other = " and ".join(key for key, there in (("warehouse", warehouse), ("table", table)) if there)
        return [f"path and {other} contradict each other; give either path, or warehouse and table."]
    if warehouse and not table:
        return ["table is missing; give it as database.table beside warehouse, or give path alone."]
    if table and not warehouse:
        return ["warehouse is missing; give it beside table, or give path alone."]
    if not (warehouse or table or path):
        # Next to a misspelt option, the story of catalog tables would only lead astray.
        return ["No table is named; give warehouse and table, or path."] if given.unknown else [NO_TABLE]
    return []


def _placed(options: TableOptions, directory: str | None, given: Given) -> TableOptions:
    """The options with their paths settled: every process that gets them then looks in the same place."""

    def place(key: str, text: str, settle: Callable[..., str] = settled) -> str:
        try:
            return settle(text, directory=directory)
        except BadValueError as problem:
            given.problem(key, str(problem))
            return text

    def location(key: str, text: str | None) -> str | None:
        return None if text is None else place(key, text)

    catalog = {
        name: place("catalog.uri", value, settled_database) if name.lower() == "uri" else value
        for name, value in options.catalog.items()
    }
    warehouse = options.warehouse if is_rest(options.catalog) else location("warehouse", options.warehouse)
    return replace(options, warehouse=warehouse, path=location("path", options.path), catalog=catalog)


def _quarantine_placed(options: QuarantineOptions, directory: str | None, given: Given) -> QuarantineOptions:
    if options.table is None or "/" not in options.table:
        return options
    try:
        return replace(options, table=settled(options.table, directory=directory))
    except BadValueError as problem:
        given.problem("quarantine", str(problem))
        return options


def _quarantine_problems(given: Given, purpose: Purpose, options: Options) -> Iterator[str]:
    """Where the quarantine is, told as the table is; and checks that are no conditions at all."""
    if purpose in READS:
        return
    table = options.quarantine.table
    if table is not None and "quarantine" not in given.refused:
        if given.has("path") and "/" not in table:
            yield "quarantine is a name, and path names no warehouse to look in; give its location, as in path."
        if given.has("warehouse") and "/" in table:
            yield "quarantine is a location; beside warehouse and table it is named as database.table."
        if options.table.branch != MAIN_BRANCH:
            # A quarantine tells tables apart, and not their branches, whose batches have numbers of their own.
            yield f"quarantine is for the branch {MAIN_BRANCH} alone; leave branch out, or quarantine."
        if table == options.table.path or ("/" not in table and parse_table_name(table) == options.table.name):
            yield "quarantine is the table itself; give bad rows a table of their own."
    for name, text in options.quarantine.checks.items():
        try:
            parse_condition(text)
        except (NotUnderstoodError, LiteralError) as error:
            yield f"check.{name} cannot be parsed: {error}."


def _table_format(formats: Mapping[str, Capabilities]) -> Callable[[str], str]:
    """The name of a format that is there."""

    def parse(text: str) -> str:
        name = text.strip().lower()
        if name in formats:
            return name
        *others, last = formats
        there_are = f"{', '.join(others)} or {last}" if others else last
        nearest = nearest_name(name, formats)
        hint = f"; did you mean {nearest}?" if nearest else "."
        raise BadValueError(f"must be {there_are}, not {quoted(text)}{hint}")

    return parse


def _format_problems(given: Given, options: Options, formats: Mapping[str, Capabilities]) -> Iterator[str]:
    """What the format does not have, or keeps for itself."""
    if "tableFormat" in given.refused:
        return  # told already, and nobody knows what it has
    format_ = formats[options.table.table_format]
    transforms = transforms_in(given.texts.get("partitionBy", ""))
    if transforms and not format_.partition_transforms:
        others = _formats_with("partition_transforms", formats)
        yield (
            f"partitionBy asks for {', '.join(transforms)[:80]!r}. {format_.title} partitions by column values; add a "
            f"column that holds the value and name that one{f'; transforms are for {others}' if others else ''}. If "
            "this is a column's name, back-quote it."
        )
    if given.texts.get("branch", "").strip() not in ("", MAIN_BRANCH) and not format_.branches:
        others = _formats_with("branches", formats)
        yield f"branch is not available for {format_.title}; leave it out{f', or use {others}' if others else ''}."
    if given.has("quarantine") and not format_.quarantine:
        others = _formats_with("quarantine", formats)
        yield f"quarantine is not available for {format_.title}; leave it out{f', or use {others}' if others else ''}."
    if given.has("routeColumn") and not format_.routing:
        others = _formats_with("routing", formats)
        yield f"routeColumn is not available for {format_.title}; leave it out{f', or use {others}' if others else ''}."
    if options.commit.commit_identifier == HIGHEST_IDENTIFIER:
        yield f"commitIdentifier must not be {HIGHEST_IDENTIFIER}, {format_.highest_identifier_marks}."
    for name in options.commit.snapshot_properties:
        if name.lower() in format_.reserved_snapshot_properties:
            reason = format_.reserved_snapshot_properties[name.lower()]
            yield f"snapshotProperty.{name.lower()} is a name that {reason}; choose another."


def _formats_with(feature: str, formats: Mapping[str, Capabilities]) -> str:
    names = []
    for name in formats:
        # One that cannot be loaded is another problem, for whoever asks for it.
        with suppress(OptionError):
            if getattr(formats[name], feature):
                names.append(f"tableFormat={name}")
    return " or ".join(names)


def _purpose_problems(given: Given, purpose: Purpose, options: Mapping[str, Any]) -> list[str]:
    """What a write cannot heed is refused: ignored, it would write or replace other rows than were meant.

    A read passes over the options of writes, so that one dictionary serves both. Those of the other kind of read would
    make it one of other rows.
    """
    asked: list[Declaration] = [DECLARED.options[key.lower()] for key in given.texts]
    asked += [DECLARED.families[prefix.lower()] for prefix, names in given.families.items() if names]
    if purpose in READS:
        asked = [option for option in asked if option.purposes & READS]
    elif any(str(key).lower() == OVERWRITE_SETTING.lower() for key in options):
        return [
            f"{OVERWRITE_SETTING} is a setting of the session and does nothing as an option; the option is "
            "partitionOverwriteMode."
        ]
    return [_elsewhere(option, purpose) for option in asked if purpose not in option.purposes]


def _elsewhere(option: Declaration, purpose: Purpose) -> str:
    words = {other.in_words for other in option.purposes}
    if option.purposes >= READS:
        words = {"reads", *(other.in_words for other in option.purposes - READS)}
    for_what = " and ".join(sorted(words))
    # What to do instead is said of writes.
    cure = "leave it out." if purpose in READS or option.instead is None else option.instead
    return f"{option.key} is for {for_what}, not for {purpose.in_words}: {cure}"


def _commit_problems(given: Given, purpose: Purpose) -> list[str]:
    if purpose is Purpose.BATCH_WRITE and given.has("commitIdentifier") and not given.has("commitUser"):
        return ["commitIdentifier needs commitUser, which names the job whose rerun it recognises."]
    return []


def _replacement_problems(given: Given, purpose: Purpose) -> list[str]:
    is_asked = purpose is Purpose.BATCH_WRITE and given.has("replaceWhere")
    if is_asked and given.texts.get("partitionOverwriteMode", "").strip().lower() == "dynamic":
        return [
            "replaceWhere and partitionOverwriteMode=dynamic contradict each other; give the condition, or leave it to "
            "the rows which partitions they replace."
        ]
    return []


def _switch_problems(given: Given, purpose: Purpose) -> list[str]:
    """Bounds of something that is not switched on."""
    if purpose in READS:
        return []
    bounds = ((option.key, option.switch) for option in DECLARED.options.values())
    return [
        f"{bound} does nothing without {switch}, which switches it on; set both, or neither."
        for bound, switch in bounds
        if switch is not None and given.has(bound) and not given.has(switch)
    ]


def _merge_problems(given: Given, write: WriteOptions, purpose: Purpose) -> list[str]:
    """Where it is given and off, it says what is so anyway."""
    if purpose in READS or not write.type_widening or write.merge_schema or "mergeSchema" in given.refused:
        return []
    return ["mergeSchema.typeWidening does nothing without mergeSchema=true; set both, or neither."]


def _watermark_problems(given: Given) -> list[str]:
    if given.has("watermarkColumn"):
        return []
    return [
        f"{key} needs watermarkColumn, which names the event time it is about."
        for key in ("watermarkDelay", "watermarkMaxAhead", "watermarkIdle")
        if given.has(key)
    ]


def _listener_problems(given: Given, purpose: Purpose, options: ListenerOptions) -> list[str]:
    problems = []
    names = options.names
    if names and purpose is Purpose.BATCH_WRITE and not given.has("commitIdentifier"):
        problems.append(
            "listeners needs commitUser and commitIdentifier in a batch write: what listeners know is kept under them."
        )
    for key in options.settings:
        if given.has("listeners") and not names:
            continue  # told already
        if not any(key.lower().startswith(f"{name.lower()}.") and len(key) > len(name) + 1 for name in names):
            listed = f"one of {', '.join(names)}" if names else "in the option listeners"
            problems.append(f"listener.* has {quoted_key(key)}, which is for a listener that is not {listed}.")
    return problems


# ---------------------------------------------------------------- keys that nobody declared


def _unknown(key: str) -> str:
    nearest = _nearest(key)
    cure = f"did you mean {nearest}?" if nearest else "`pwc options` lists what there is."
    return f"{quoted_key(key)} is not an option; {cure}"


_ELSEWHERE = {
    "scan.mode": "startingVersion",
    "scan.snapshot-id": "startingVersion",
    "scan.timestamp-millis": "startingTimestamp",
    "stream-from-timestamp": "startingTimestamp",
    "read.stream.maxfilespertrigger": "maxFilesPerTrigger",
    "read.stream.maxbytespertrigger": "maxBytesPerTrigger",
    "read.stream.maxrowspertrigger": "maxRowsPerTrigger",
    "streaming-max-files-per-micro-batch": "maxFilesPerTrigger",
    "streaming-max-rows-per-micro-batch": "maxRowsPerTrigger",
    "streaming-skip-overwrite-snapshots": "skipChangeCommits",
    "streaming-skip-delete-snapshots": "skipChangeCommits",
    "ignorechanges": "skipChangeCommits",
    "ignoredeletes": "skipChangeCommits",
    "consumer-id": "consumerId",
    "consumer.expiration-time": "consumerExpiration",
}
"""What streams of Paimon, Iceberg and Delta call it."""


def _nearest(key: str) -> str | None:
    """The documented spelling nearest to ``key``. A misspelt prefix is looked for as well."""
    if key.lower() in _ELSEWHERE:
        return _ELSEWHERE[key.lower()]
    nearest = nearest_name(key, [*(declaration.key for declaration in DECLARED), *SPARK_KEYS])
    if nearest is not None:
        return nearest
    head, dot, _ = key.partition(".")
    prefixes = {family.prefix.rstrip("."): family.key for family in DECLARED.families.values()}
    prefix = nearest_name(head, prefixes) if dot else None
    return None if prefix is None else prefixes[prefix]


def _is_sparks_own(key: str) -> bool:
    lowered = key.lower()
    return lowered in (own.lower() for own in SPARK_KEYS) or lowered.startswith(SPARK_PREFIXES)
