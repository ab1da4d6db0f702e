"""The options as people and machines read them, generated from the declarations."""

from __future__ import annotations

from dataclasses import dataclass

from paimon_sink.core.option_fields import Declaration, Family, Purpose, declarations
from paimon_sink.core.options import DECLARED, SPARK_KEYS, SPARK_PREFIXES

__all__ = ["OptionDoc", "describe_options", "render_markdown"]

_BEFORE_THE_TABLE = """\
<!-- Made by `pwc options --markdown`. Change paimon_sink/core/option_groups instead. -->
# Options

Option names are case-insensitive. An unknown option is refused with the nearest known name, and all problems are
reported together, before any row is written. Give either `path`, or `warehouse` and `table`.

| option | default | meaning | example | used by |
|---|---|---|---|---|
"""

_AFTER_THE_TABLE = """
## Notes

- **One set of options for writing and reading.** Options of writes are checked and then passed over by a read, so that
  one dictionary serves both. A write refuses what it cannot heed, and says what to do instead: `where` and
  `partition.*` on any write (an overwrite would replace more than they say), `commitIdentifier` on a stream,
  `onRewind`, `compact.*` and `watermarkIdle` on a batch write, and `expire.keepLast`, `expire.limit` and
  `compact.maxBytes` without the option that switches them on. `commitIdentifier` needs `commitUser` beside it.
- **Overwrites.** Spark refuses `INSERT OVERWRITE` in SQL while `spark.sql.sources.partitionOverwriteMode` is `dynamic`;
  set the option `partitionOverwriteMode` on the view instead.
- **secret** options never appear in a log, an error, a message or a snapshot. The same holds for a `catalog.*` option
  whose name contains token, secret, password, credential or key. Credentials written into an address, as in
  `s3://key:secret@bucket`, are refused.
- **`catalog.*`, `table.*`, `snapshotProperty.*`, `partition.*`** stand for any name after the dot; it is
  handed on without the prefix.
- **Names.** `table` is `database.table`. Put back-quotes around a name that contains a dot, and double a back-quote
  that belongs to the name: `` `my.db`.`my table` ``. Refused: empty names, `.`, `..`, slashes, backslashes, control
  characters, `$`, blanks at either end, and more than 200 bytes.
- **Sizes** are `b`, `kb`, `mb`, `gb` and `tb`, by powers of 1024, or a plain number of bytes. **Durations** are `ms`,
  `s`, `m`, `h` and `d`, always with the unit.
"""


@dataclass(frozen=True)
class OptionDoc:
    """One line of the options page. ``key`` ends in ``.*`` for a whole family."""

    key: str
    default: str | None
    meaning: str
    example: str
    secret: bool
    is_prefix: bool
    used_by: tuple[str, ...]


def describe_options() -> list[OptionDoc]:
    """Every option, in reading order."""
    return [
        OptionDoc(
            key=entry.key,
            default=None if isinstance(entry, Family) else entry.default or entry.default_note,
            meaning=entry.doc,
            example=entry.example,
            secret=False if isinstance(entry, Family) else entry.secret,
            is_prefix=isinstance(entry, Family),
            used_by=tuple(purpose.value for purpose in Purpose if purpose in entry.purposes),
        )
        for entry in _in_reading_order()
    ]


def _in_reading_order() -> list[Declaration]:
    """By section, and inside of one as they are declared."""
    placed = []
    for group in DECLARED.groups:
        for entry in declarations(group).values():
            section = entry.section or group.SECTION
            assert section is not None, f"{entry.key} has no place on the options page"
            placed.append((section.value, entry))
    return [entry for _, entry in sorted(placed, key=lambda pair: pair[0])]


def render_markdown() -> str:
    """The text of ``docs/options.md``."""
    rows = "\n".join(_row(option) for option in describe_options())
    spark_keys = ", ".join(f"`{key}`" for key in (*SPARK_KEYS, *(f"{prefix}*" for prefix in SPARK_PREFIXES)))
    return f"{_BEFORE_THE_TABLE}{rows}\n{_AFTER_THE_TABLE}- **Spark's own options** pass: {spark_keys}.\n"


def _row(option: OptionDoc) -> str:
    default = "" if option.default is None else option.default if " " in option.default else f"`{option.default}`"
    meaning = f"{option.meaning} **secret**" if option.secret else option.meaning
    cells = (f"`{option.key}`", default, meaning, f"`{option.example}`", ", ".join(option.used_by))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
