"""Options: text from users in, one frozen, checked value out.

All problems are found before anything is touched and told together. What the options are stands in
``option_declarations``; here stands how they are read and which of them contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from paimon_sink.core import option_declarations as declared
from paimon_sink.core.errors import OptionError
from paimon_sink.core.names import nearest_name
from paimon_sink.core.option_declarations import (
    AVAILABLE_FORMATS,
    DECLARED,
    FORMATS_WITH_BRANCHES,
    FORMATS_WITH_TRANSFORMS,
    GROUPS,
    OPTIONS,
    SPARK_KEYS,
    SPARK_PREFIXES,
    Group,
    OnLedgerLost,
    OnRewind,
    Option,
    OverwriteMode,
    Purpose,
)
from paimon_sink.core.option_docs import OptionDoc, describe_options, render_markdown
from paimon_sink.core.option_secrets import Masked, quoted_key
from paimon_sink.core.option_values import BadValueError, transforms_in
from paimon_sink.core.places import is_rest, settled, settled_database
from paimon_sink.core.strict_json import is_text

__all__ = ["AVAILABLE_FORMATS", "OptionDoc", "Purpose", "SinkOptions", "describe_options", "render_markdown"]

T = TypeVar("T")

OVERWRITE_SETTING = "spark.sql.sources.partitionOverwriteMode"
"""Spark's own. The one of its settings that is mistaken for an option, and would make an overwrite wider than meant."""

_GROUPS = ("catalog", "storage", "table_properties", "snapshot_properties", "read_partition", "listener_settings")

NO_TABLE = (
    "No table is named: Spark does not hand a catalog table's options to a Python data source, so a statement on a "
    "table created USING pwc, or by saveAsTable, arrives without any; either run CREATE TEMPORARY VIEW t USING pwc "
    "OPTIONS (warehouse '…', table '…') and use that view, or give the options with each statement: INSERT INTO t WITH "
    "(warehouse='…', table='…') SELECT …, or SELECT … FROM t WITH (warehouse='…', table='…'), or set warehouse and "
    "table, or path, on the DataFrame reader or writer itself."
)


@dataclass(frozen=True)
class SinkOptions:
    """The options of one reader or writer. It crosses processes, and its text form shows no secret."""

    warehouse: str | None = None
    database: str | None = None
    table: str | None = None
    path: str | None = None
    table_format: str = declared.TABLE_FORMAT.default_value
    catalog: Mapping[str, str] = field(default_factory=Masked)
    """``catalog.*`` without the prefix."""
    branch: str = declared.BRANCH.default_value
    storage: Mapping[str, str] = field(default_factory=Masked)
    """``s3.*`` under their full names."""
    create_table: bool = declared.CREATE_TABLE.default_value
    partition_by: tuple[str, ...] = ()
    table_properties: Mapping[str, str] = field(default_factory=Masked)
    """``table.*`` without the prefix."""
    commit_user: str | None = None
    commit_identifier: int | None = None
    on_rewind: OnRewind = declared.ON_REWIND.default_value
    on_ledger_lost: OnLedgerLost = declared.ON_LEDGER_LOST.default_value
    takeover: bool = declared.TAKEOVER.default_value
    target_file_size_bytes: int = declared.TARGET_FILE_SIZE.default_value
    compression: str | None = None
    """None when the user did not choose, so that an existing table's own codec can win."""
    partition_overwrite_mode: OverwriteMode | None = None
    """None when the user did not choose, so that Spark's own setting can."""
    snapshot_properties: Mapping[str, str] = field(default_factory=Masked)
    """``snapshotProperty.*`` without the prefix."""
    read_partition: Mapping[str, str] = field(default_factory=Masked)
    """``partition.*`` without the prefix."""
    where: str | None = None
    ledger_retention_ms: int = declared.LEDGER_RETENTION.default_value
    expire_older_than_ms: int | None = None
    """None: snapshots are not expired after commits."""
    expire_keep_last: int = declared.EXPIRE_KEEP_LAST.default_value
    expire_limit: int = declared.EXPIRE_LIMIT.default_value
    compact_min_files: int | None = None
    compact_max_bytes: int = declared.COMPACT_MAX_BYTES.default_value
    watermark_column: str | None = None
    watermark_delay_ms: int = declared.WATERMARK_DELAY.default_value
    watermark_max_ahead_ms: int = declared.WATERMARK_MAX_AHEAD.default_value
    watermark_idle_ms: int | None = None
    """None: an empty batch does not move the watermark."""
    listeners: tuple[str, ...] = ()
    listener_settings: Mapping[str, str] = field(default_factory=Masked)
    """``listener.*`` without the prefix."""

    def __post_init__(self) -> None:
        for name in _GROUPS:
            object.__setattr__(self, name, Masked(getattr(self, name)))

    @property
    def label(self) -> str:
        """What sentences call the table: ``sales.orders``, or its location."""
        return self.path if self.path is not None else f"{self.database}.{self.table}"

    @classmethod
    def parse(cls, options: Mapping[str, str], *, purpose: Purpose, directory: str | None = ".") -> SinkOptions:
        """Read and check all options, or raise one :class:`OptionError` that tells every problem.

        Relative paths are taken from ``directory``, and refused when it is None.
        """
        given = _Given(options)
        database, table = given.take(declared.TABLE) or (None, None)
        parsed = cls(
            warehouse=given.take(declared.WAREHOUSE),
            database=database,
            table=table,
            path=given.take(declared.PATH),
            table_format=given.take_or_default(declared.TABLE_FORMAT),
            catalog=given.groups[declared.CATALOG.prefix],
            branch=given.take_or_default(declared.BRANCH),
            storage={option.key: value for option in declared.STORAGE if (value := given.take(option)) is not None},
            create_table=given.take_or_default(declared.CREATE_TABLE),
            partition_by=given.take(declared.PARTITION_BY) or (),
            table_properties=given.groups[declared.TABLE_PROPERTIES.prefix],
            commit_user=given.take(declared.COMMIT_USER),
            commit_identifier=given.take(declared.COMMIT_IDENTIFIER),
            on_rewind=given.take_or_default(declared.ON_REWIND),
            on_ledger_lost=given.take_or_default(declared.ON_LEDGER_LOST),
            takeover=given.take_or_default(declared.TAKEOVER),
            target_file_size_bytes=given.take_or_default(declared.TARGET_FILE_SIZE),
            compression=given.take(declared.COMPRESSION),
            partition_overwrite_mode=given.take(declared.PARTITION_OVERWRITE_MODE),
            snapshot_properties=given.groups[declared.SNAPSHOT_PROPERTIES.prefix],
            read_partition=given.groups[declared.READ_PARTITION.prefix],
            where=given.take(declared.WHERE),
            ledger_retention_ms=given.take_or_default(declared.LEDGER_RETENTION),
            expire_older_than_ms=given.take(declared.EXPIRE_OLDER_THAN),
            expire_keep_last=given.take_or_default(declared.EXPIRE_KEEP_LAST),
            expire_limit=given.take_or_default(declared.EXPIRE_LIMIT),
            compact_min_files=given.take(declared.COMPACT_MIN_FILES),
            compact_max_bytes=given.take_or_default(declared.COMPACT_MAX_BYTES),
            watermark_column=given.take(declared.WATERMARK_COLUMN),
            watermark_delay_ms=given.take_or_default(declared.WATERMARK_DELAY),
            watermark_max_ahead_ms=given.take_or_default(declared.WATERMARK_MAX_AHEAD),
            watermark_idle_ms=given.take(declared.WATERMARK_IDLE),
            listeners=given.take(declared.LISTENERS) or (),
            listener_settings=given.groups[declared.LISTENER_SETTINGS.prefix],
        )
        parsed = _placed(parsed, directory, given.problems)
        # Promised and not there yet: only looked at, to refuse them.
        given.take(declared.MERGE_SCHEMA)
        problems = [
            *given.problems,
            *_purpose_problems(given, purpose),
            *_location_problems(given),
            *_format_problems(given),
            *_commit_problems(given, purpose),
            *_upkeep_problems(given, purpose),
            *_watermark_problems(given),
            *_listener_problems(given, purpose, parsed.listeners),
        ]
        if problems:
            raise OptionError(_together(problems))
        return parsed


class _Given:
    """What the user gave, sorted by declaration, and the problems found on the way."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.texts: dict[str, str] = {}
        self.groups: dict[str, dict[str, str]] = {group.prefix: {} for group in GROUPS.values()}
        self.unknown = False
        self.session_overwrite_mode = False
        self.problems: list[str] = []
        spelled: dict[str, tuple[str, str]] = {}
        for key, value in ((str(key), _as_text(value)) for key, value in options.items()):
            if _is_sparks_own(key):
                self.session_overwrite_mode |= key.lower() == OVERWRITE_SETTING.lower()
                continue
            earlier = spelled.setdefault(key.lower(), (key, value))
            if earlier != (key, value):
                if earlier[1] != value:
                    self.problems.append(
                        f"{quoted_key(key)} and {quoted_key(earlier[0])} are the same option with different values; "
                        "keep one."
                    )
                continue
            self._sort(key, value)

    def _sort(self, key: str, value: str) -> None:
        if key.lower() in OPTIONS:
            self.texts[OPTIONS[key.lower()].key] = value
            return
        for prefix, group in GROUPS.items():
            if key.lower().startswith(prefix):
                self._sort_into(group, key[len(prefix) :], value)
                return
        self.unknown = True
        self.problems.append(_unknown(key))

    def _sort_into(self, group: Group, name: str, value: str) -> None:
        if not name.strip():
            self.problems.append(f"{group.prefix} needs a name after the dot, as in {group.example}.")
        elif group.reserved is not None and name.lower().startswith(group.reserved):
            self.problems.append(
                f"{group.prefix}{group.reserved}* is kept for paimon-sink's own properties; choose another name."
            )
        elif not (is_text(name) and is_text(value)):
            self.problems.append(f"{group.prefix}* has a name or value with half a character, as no file can hold it.")
        else:
            self.groups[group.prefix][name] = value

    def has(self, option: Option[Any]) -> bool:
        return option.key in self.texts

    def take(self, option: Option[T]) -> T | None:
        """The parsed value; None when it was not given, or was wrong and is now among the problems."""
        text = self.texts.get(option.key)
        if text is None:
            return None
        if not text.strip():
            self.problems.append(f"{option.key} is empty; give it a value such as {option.example}, or leave it out.")
            return None
        try:
            return option.parse(text)
        except BadValueError as problem:
            self.problems.append(f"{option.key} {problem}")
        except OptionError as problem:
            self.problems.append(str(problem))
        return None

    def take_or_default(self, option: Option[T]) -> T:
        value = self.take(option)
        return option.default_value if value is None else value


# ---------------------------------------------------------------- rules over several options


def _location_problems(given: _Given) -> list[str]:
    warehouse, table, path = (given.has(option) for option in (declared.WAREHOUSE, declared.TABLE, declared.PATH))
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


def _placed(options: SinkOptions, directory: str | None, problems: list[str]) -> SinkOptions:
    """The options with their paths settled: every process that gets them then looks in the same place."""

    def place(key: str, text: str, settle: Callable[..., str] = settled) -> str:
        try:
            return settle(text, directory=directory)
        except BadValueError as problem:
            problems.append(f"{key} {problem}")
            return text

    def location(key: str, text: str | None) -> str | None:
        return None if text is None else place(key, text)

    catalog = {
        name: place("catalog.uri", value, settled_database) if name.lower() == "uri" else value
        for name, value in options.catalog.items()
    }
    warehouse = options.warehouse if is_rest(options.catalog) else location("warehouse", options.warehouse)
    return replace(options, warehouse=warehouse, path=location("path", options.path), catalog=catalog)


def _format_problems(given: _Given) -> list[str]:
    name = given.texts.get(declared.TABLE_FORMAT.key, "").strip().lower() or declared.TABLE_FORMAT.default_value
    transforms = transforms_in(given.texts.get(declared.PARTITION_BY.key, ""))
    problems = []
    if transforms and name not in FORMATS_WITH_TRANSFORMS:
        problems.append(
            f"partitionBy asks for {', '.join(transforms)[:80]!r}. {name.capitalize()} partitions by column values; "
            "add a column that holds the value and name that one; transforms are for tableFormat=iceberg. If this is a "
            "column's name, back-quote it."
        )
    branch = given.texts.get(declared.BRANCH.key, declared.MAIN_BRANCH)
    if branch.strip() not in ("", declared.MAIN_BRANCH) and name not in FORMATS_WITH_BRANCHES:
        problems.append(
            f"branch is not available for {name.capitalize()}; leave it out, or use "
            f"tableFormat={FORMATS_WITH_BRANCHES[0]}."
        )
    return problems


def _purpose_problems(given: _Given, purpose: Purpose) -> list[str]:
    """What a write cannot heed is refused: ignored, it would write or replace other rows than were meant.

    A read passes over the options of writes, so that one dictionary serves both.
    """
    if purpose is Purpose.READ:
        return []
    if given.session_overwrite_mode:
        return [
            f"{OVERWRITE_SETTING} is a setting of the session and does nothing as an option; the option is "
            f"{declared.PARTITION_OVERWRITE_MODE.key}."
        ]
    asked: list[Option[Any] | Group] = [OPTIONS[key.lower()] for key in given.texts]
    asked += [GROUPS[prefix.lower()] for prefix, names in given.groups.items() if names]
    return [_elsewhere(option, purpose) for option in asked if purpose not in option.purposes]


def _elsewhere(option: Option[Any] | Group, purpose: Purpose) -> str:
    for_what = " and ".join(sorted(known.in_words for known in option.purposes))
    cure = option.instead or "leave it out."
    return f"{option.key} is for {for_what}, not for {purpose.in_words}: {cure}"


def _commit_problems(given: _Given, purpose: Purpose) -> list[str]:
    problems = []
    if purpose is Purpose.BATCH_WRITE and given.has(declared.COMMIT_IDENTIFIER) and not given.has(declared.COMMIT_USER):
        problems.append("commitIdentifier needs commitUser, which names the job whose rerun it recognises.")
    return problems


def _upkeep_problems(given: _Given, purpose: Purpose) -> list[str]:
    """Bounds of something that is not switched on."""
    if purpose is Purpose.READ:
        return []
    bounds = (
        (declared.EXPIRE_KEEP_LAST, declared.EXPIRE_OLDER_THAN),
        (declared.EXPIRE_LIMIT, declared.EXPIRE_OLDER_THAN),
        (declared.COMPACT_MAX_BYTES, declared.COMPACT_MIN_FILES),
    )
    return [
        f"{bound.key} does nothing without {switch.key}, which switches it on; set both, or neither."
        for bound, switch in bounds
        if given.has(bound) and not given.has(switch)
    ]


def _watermark_problems(given: _Given) -> list[str]:
    if given.has(declared.WATERMARK_COLUMN):
        return []
    return [
        f"{option.key} needs watermarkColumn, which names the event time it is about."
        for option in (declared.WATERMARK_DELAY, declared.WATERMARK_MAX_AHEAD, declared.WATERMARK_IDLE)
        if given.has(option)
    ]


def _listener_problems(given: _Given, purpose: Purpose, names: tuple[str, ...]) -> list[str]:
    problems = []
    if names and purpose is Purpose.BATCH_WRITE and not given.has(declared.COMMIT_IDENTIFIER):
        problems.append(
            "listeners needs commitUser and commitIdentifier in a batch write: what listeners know is kept under them."
        )
    for key in given.groups[declared.LISTENER_SETTINGS.prefix]:
        if given.has(declared.LISTENERS) and not names:
            continue  # told already
        if not any(key.lower().startswith(f"{name.lower()}.") and len(key) > len(name) + 1 for name in names):
            told = f"one of {', '.join(names)}" if names else "in the option listeners"
            problems.append(f"listener.* has {quoted_key(key)}, which is for a listener that is not {told}.")
    return problems


# ---------------------------------------------------------------- sentences


def _unknown(key: str) -> str:
    nearest = _nearest(key)
    cure = f"did you mean {nearest}?" if nearest else "`pwc options` lists what there is."
    return f"{quoted_key(key)} is not an option; {cure}"


def _nearest(key: str) -> str | None:
    """The documented spelling nearest to ``key``. A misspelt prefix is looked for as well."""
    nearest = nearest_name(key, [*(entry.key for entry in DECLARED), *SPARK_KEYS])
    if nearest is not None:
        return nearest
    head, dot, _ = key.partition(".")
    prefixes = {group.prefix.rstrip("."): group.key for group in GROUPS.values()}
    prefix = nearest_name(head, prefixes) if dot else None
    return None if prefix is None else prefixes[prefix]


def _together(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    lines = "\n".join(f"  {number}. {problem}" for number, problem in enumerate(problems, start=1))
    return f"The options have {len(problems)} problems:\n{lines}"


def _is_sparks_own(key: str) -> bool:
    lowered = key.lower()
    return lowered in (own.lower() for own in SPARK_KEYS) or lowered.startswith(SPARK_PREFIXES)


def _as_text(value: object) -> str:
    """Spark hands over text; a caller in Python may have passed ``True``, a number or nothing."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
