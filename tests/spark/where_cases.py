"""Random tables and random conditions on them, out of the values that engines disagree about most readily."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from paimon_sink.core.conditions import ConditionError, conditions
from paimon_sink.core.errors import SchemaMismatchError
from paimon_sink.core.schema import SQL_TYPE
from paimon_sink.write.fanout import Limits
from tests.support import tasks
from tests.support.engines import other_engine
from tests.support.lake import Lake

__all__ = ["FIELDS", "KINDS", "Case", "Kind", "arrow_column", "condition", "count_of", "field_of", "make_table"]

LAST, BEFORE_SURROGATES = "\U0010ffff", "\ud7ff"
SIXTEEN = "prefix of sixteen"[:16]
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Kind:
    """A column: its type, values that any partition can be named by, values that test the limits, and its literals."""

    type: pa.DataType
    tame: Sequence[Any]
    wild: Sequence[Any]
    spell: Callable[[Random, Any], str]
    sql_type: str | None = None


# ---------------------------------------------------------------- how a value may be written


def _whole(rng: Random, value: int) -> str:
    forms = [
        "{}",
        "{}",
        "{}",
        "+{}",
        "- {}",
        "{}L",
        "{}.0",
        "{}.5",
        "{}.",
        "'{}'",
        "{}D",
        "{}e0",
        "{}BD",
        "{}F",
        "{}.25",
    ]
    return rng.choice(forms).format(value).replace("+-", "-").replace("- -", "-")


def _float(rng: Random, value: float) -> str:
    if not math.isfinite(value):
        word = {"nan": ["NaN", "nan"], "inf": ["Infinity", "inf", "+inf"], "-inf": ["-Infinity", "-INF"]}
        return f"'{rng.choice(word[str(value)])}'"
    plain = format(Decimal(value), "f")
    forms = [f"{value!r}D", repr(value) if "e" in repr(value) else f"{value!r}e0", f"'{value!r}'", f"{value!r}F"]
    if len(plain) < 36:
        forms += [plain, plain, f"{plain}D", plain.rstrip("0").rstrip(".") if "." in plain else plain]
    return rng.choice(forms)


def _decimal(rng: Random, value: Decimal) -> str:
    plain = format(value, "f")
    nearly = f"{plain}{rng.choice(['', '0', '5', '01'])}" if "." in plain else plain
    return rng.choice([plain, plain, nearly, f"{plain}BD", f"{plain}D", f"'{plain}'", str(int(value)), f"{plain}e0"])


def _text(rng: Random, value: str) -> str:
    shown = value[: rng.choice([len(value), len(value), 16, 3])]
    quotes = rng.choice(["\\'", "''"])
    escaped = shown.replace("\\", "\\\\").replace("'", quotes)
    if rng.random() < 0.2:
        escaped = escaped.replace("\n", "\\n").replace("a", "\\u0061").replace("😀", "\\uD83D\\uDE00")
    if rng.random() < 0.1:
        escaped += rng.choice(["\\%", "\\_", "\\x", "\\101", "\\0", "\\Z", " "])
    return f"'{escaped}'"


def _truth(rng: Random, value: bool) -> str:
    return rng.choice(["{}", "{}", "'{}'"]).format(rng.choice([str(value), str(value).lower(), str(value).upper()]))


def _date(rng: Random, value: Any) -> str:
    if isinstance(value, int):
        value = date(9999, 12, 31) if value > 0 else date(1, 1, 1)
    return rng.choice(["'{}'", "DATE '{}'", "date'{}'"]).format(value.isoformat())


def _clock(rng: Random, value: Any) -> str:
    value = _sayable(value)
    shown = value.isoformat(sep=rng.choice(["T", " "]))
    forms = ["'{}'", "TIMESTAMP_NTZ '{}'", "timestamp_ntz'{}'"]
    return rng.choice(forms).format(shown) if rng.random() < 0.9 else f"DATE '{value.date().isoformat()}'"


def _instant(rng: Random, value: Any) -> str:
    value = _sayable(value)
    hours = rng.choice([0, 0, 5, -8]) if 1 < value.year < 9999 else 0
    shown = (value + timedelta(hours=hours)).isoformat(sep=rng.choice(["T", " "]))
    zone = rng.choice(["Z", "+00:00"]) if hours == 0 else f"{'+' if hours > 0 else '-'}{abs(hours):02}:00"
    return rng.choice(["'{}{}'", "TIMESTAMP '{}{}'", "TIMESTAMP_LTZ'{}{}'"]).format(shown, zone)


def _sayable(value: Any) -> datetime:
    if isinstance(value, int):
        return datetime(9999, 12, 31, 23, 59, 59, 999_999) if value > 0 else datetime(1, 1, 1)
    assert isinstance(value, datetime)
    return value.replace(tzinfo=None)


def _bytes(rng: Random, value: bytes) -> str:
    return f"{rng.choice('xX')}'{value.hex()}'"


# ---------------------------------------------------------------- columns


def _integers(bits: int) -> tuple[list[int], list[int]]:
    top = 2 ** (bits - 1)
    near = (2**24 + 1, 2**31 - 1, -(2**31), 2**31, 2**53 + 1, 2**53, -(2**53) - 1)
    return [0, 1, -1, 5, 7, 10, -11], [top - 1, -top, top - 2, -top + 1, *(n for n in near if -top <= n < top)]


SHORT, LONG = (
    [Decimal(sign + "9999.99") for sign in ("", "-")],
    [Decimal(sign + "9" * 28 + "." + "9" * 10) for sign in ("", "-")],
)
TEXTS = ["a", "b", "ab", "abc", "abcd", "b'c", "zz", "ž", "x\\y", "a\nb", "A", "😀", "NaN", "5", "true"]
LONG_TEXTS = ["", SIXTEEN, SIXTEEN + "a", SIXTEEN[:15] + LAST * 3, LAST * 17, LAST * 16, "é" * 20, "😀" * 17]
LONG_TEXTS += [SIXTEEN[:15] + BEFORE_SURROGATES + "z", "a\0b", " a", "a ", "%_", "\x1a"]
CLOCKS = [EPOCH + timedelta(microseconds=n) for n in (0, -1, 1, 86_400_000_000, -86_400_000_001, -3_600_000_000)]
CLOCKS += [datetime(2026, 11, 16, 5, 30), datetime(1969, 12, 31, 23), datetime(1900, 2, 28, 1, 2, 3, 450_000)]
FAR_CLOCKS: list[Any] = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), 2**62, -(2**62)]
DAYS = [date(1970, 1, 1), date(1969, 12, 31), date(1970, 1, 2), date(2026, 11, 1), date(2026, 12, 31), date(1899, 5, 9)]
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -2.25, 0.1, 16777216.0, 1e-40]
DOUBLES = [*FLOATS, 16777217.0, 1e300, -1e300, 5e-324, 2.0**53, 9.223372036854776e18, 0.30000000000000004]


def _only_nulls(rng: Random, value: Any) -> str:
    return "NULL"


FIELDS: dict[str, Kind] = {
    "st.n": Kind(pa.int32(), *_integers(32), _whole),
    "st.Text": Kind(pa.string(), TEXTS, LONG_TEXTS, _text),
    "st.`x.y`": Kind(pa.float64(), [], DOUBLES, _float),
    "st.deep.d": Kind(pa.date32(), DAYS, [], _date),
    "st.deep.p": Kind(pa.decimal128(6, 2), [Decimal("1.25"), Decimal("-1.25")], SHORT, _decimal),
}
"""Inside of the struct ``st``, as a condition names them."""

DEEP = pa.struct([("d", pa.date32()), ("p", pa.decimal128(6, 2))])
STRUCT = pa.struct([("n", pa.int32()), ("Text", pa.string()), ("x.y", pa.float64()), ("deep", DEEP)])


def _structs() -> list[Any]:
    """Every value of every field at least once, some fields null, and some structs in structs, too."""
    n, text, double, day, price = ([None, *kind.tame, *kind.wild] for kind in FIELDS.values())
    return [
        {
            "n": n[number % len(n)],
            "Text": text[number % len(text)],
            "x.y": double[number % len(double)],
            "deep": {"d": day[number % len(day)], "p": price[number % len(price)]} if number % 4 else None,
        }
        for number in range(max(map(len, (n, text, double, day, price))))
    ]


LATE = "late"
"""Added to the table after its first files."""

KINDS: dict[str, Kind] = {
    "i8": Kind(pa.int8(), *_integers(8), _whole),
    "i16": Kind(pa.int16(), *_integers(16), _whole),
    "i": Kind(pa.int32(), *_integers(32), _whole),
    "l": Kind(pa.int64(), *_integers(64), _whole),
    "f": Kind(pa.float32(), [], FLOATS, _float),
    "x": Kind(pa.float64(), [], DOUBLES, _float),
    "b": Kind(pa.bool_(), [True, False], [], _truth),
    "s": Kind(pa.string(), TEXTS, LONG_TEXTS, _text),
    "v": Kind(pa.string(), TEXTS, LONG_TEXTS, _text, "VARCHAR(40)"),
    "c": Kind(pa.string(), ["a", "ab", "abc", "abcd", "b c"], ["", " ", "é", "a\n"], _text, "CHAR(4)"),
    "d": Kind(pa.date32(), DAYS, [date(1, 1, 1), date(9999, 12, 31), 2_932_897, -800_000], _date),
    "t": Kind(pa.timestamp("us"), CLOCKS, FAR_CLOCKS, _clock),
    "at": Kind(pa.timestamp("us", tz="UTC"), CLOCKS, FAR_CLOCKS, _instant),
    "p": Kind(pa.decimal128(6, 2), [Decimal(n) for n in ("0.00", "1.25", "-1.25", "7.50")], SHORT, _decimal),
    "q": Kind(
        pa.decimal128(38, 10),
        [Decimal(n) for n in ("0E-10", "1.2500000000", "-0.0000000001", "1E+3")],
        [*LONG, Decimal("9007199254740993.0000000001")],
        _decimal,
    ),
    "bin": Kind(pa.binary(), [b"", b"a", b"\x80", b"ab"], [b"\xff" * 20, b"\0", b"a" * 17], _bytes),
    "a.b": Kind(pa.int64(), *_integers(64), _whole),
    "Naïve col": Kind(pa.string(), TEXTS, LONG_TEXTS, _text),
    LATE: Kind(pa.string(), TEXTS, LONG_TEXTS, _text),
    "st": Kind(STRUCT, _structs(), [], _only_nulls),
    "li": Kind(pa.list_(pa.int32()), [[1], []], [], _only_nulls),
    "m": Kind(pa.map_(pa.string(), pa.int32()), [[("k", 1)], []], [], _only_nulls),
}
PLAIN_PARTITIONS = ["", "", "i", "s", "d", "b", "p", "l", "d, b", "c", "v", "i8", "q", "t", "Naïve col"]
TRANSFORMS = ["days(at)", "hours(t)", "months(d)", "years(t)", "bucket(4, s)", "bucket(3, l)", "truncate(3, s)"]
TRANSFORMS += [
    "truncate(10, l)",
    "truncate(7, i)",
    "truncate(50, p)",
    "bucket(2, p)",
    "truncate(2, bin)",
    "bucket(5, d)",
]
TRANSFORMS += ["days(t), bucket(2, i)", "truncate(100, q)", "years(at)", "months(t)", "hours(at)", "bucket(3, at)"]
METRICS = ["truncate(16)", "truncate(16)", "truncate(3)", "full", "counts", "none"]


@dataclass(frozen=True)
class Case:
    """A table, and what its columns hold."""

    lake: Lake
    described: str
    pools: Mapping[str, Sequence[Any]]
    schema: pa.Schema
    kinds: Mapping[str, Kind] = field(default_factory=lambda: KINDS | FIELDS)
    """What conditions may be about, fields of structs included."""


def make_table(rng: Random, warehouse: str, table_format: str) -> Case:
    """Forty rows in three commits, partitioned in one way or another; some files know one column less."""
    iceberg = table_format == "iceberg"
    partition_by = rng.choice(PLAIN_PARTITIONS + (TRANSFORMS * 2 if iceberg else []))
    extra = {"partitionBy": partition_by} if partition_by else {}
    if iceberg:
        extra["table.write.metadata.metrics.default"] = rng.choice(METRICS)
    sources = {
        name for name in KINDS if name in partition_by.replace("(", " ").replace(")", " ").replace(",", " ").split()
    }
    sources |= {name for name in KINDS if name == partition_by}
    state = rng.getstate()
    for number, tame in enumerate((set(), sources)):
        rng.setstate(state)
        options = {"warehouse": f"{warehouse}/{number}", "tableFormat": table_format}
        lake = Lake(options, extra=extra)
        pools = {name: kind.tame if name in tame else [*kind.tame, *kind.wild] for name, kind in KINDS.items()}
        try:
            _fill(rng, lake, pools)
        except SchemaMismatchError:
            if tame:
                raise
            continue
        pools |= {name: [*kind.tame, *kind.wild] for name, kind in FIELDS.items()}
        return Case(lake, f"{table_format} {extra}", pools, lake.open().schema)
    raise AssertionError(partition_by)


def _fill(rng: Random, lake: Lake, pools: Mapping[str, Sequence[Any]]) -> None:
    """Values of partition columns are few: each is a file."""
    few = {name: rng.sample(list(pool), min(4, len(pool))) for name, pool in pools.items()}
    for commit in range(3):
        count = rng.choice([12, 14, 16])
        if commit == 1:
            other_engine(lake).add_column(LATE)
        kinds = {name: kind for name, kind in KINDS.items() if commit > 0 or name != LATE}
        columns = [_column(rng, kind, pools[name], few[name], count) for name, kind in kinds.items()]
        fields = [field_of(name, kind) for name, kind in kinds.items()]
        ids = pa.array(range(commit * 100, commit * 100 + count), pa.int64())
        rows = pa.Table.from_arrays([*columns, ids], schema=pa.schema([*fields, pa.field("id", pa.int64())]))
        tasks.append(lake, commit, rows, limits=Limits(row_group_rows=rng.choice([3, 1000])))


def field_of(name: str, kind: Kind) -> pa.Field:
    metadata = None if kind.sql_type is None else {SQL_TYPE: kind.sql_type.encode()}
    return pa.field(name, kind.type, metadata=metadata)


def _column(rng: Random, kind: Kind, pool: Sequence[Any], few: Sequence[Any], count: int) -> pa.Array:
    """Mostly a few values, so that files have bounds that say something."""
    nulls = rng.choice([0.0, 0.1, 0.1, 1.0]) if rng.random() < 0.5 else 0.1
    values = [None if rng.random() < nulls else rng.choice(few if rng.random() < 0.8 else pool) for _ in range(count)]
    return arrow_column(kind, values)


def arrow_column(kind: Kind, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_temporal(kind.type):
        unit = pa.int32() if pa.types.is_date32(kind.type) else pa.int64()
        return pa.array([count_of(value, kind.type) for value in values], unit).cast(kind.type)
    return pa.array(values, kind.type)


def count_of(value: Any, kind: pa.DataType) -> int | None:
    if value is None or isinstance(value, int):
        return value
    if pa.types.is_date32(kind):
        return (value - date(1970, 1, 1)).days  # type: ignore[no-any-return]
    return (value.replace(tzinfo=UTC) - EPOCH.replace(tzinfo=UTC)) // timedelta(microseconds=1)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- conditions


def condition(rng: Random, case: Case) -> str:
    """One comparison, or some of them joined in any way: with and without parentheses, so that precedence counts."""
    depth = rng.choice([0, 0, 1, 1, 1, 2, 2, 3])
    return _comparison(rng, case) if depth == 0 else _joined(rng, case, depth)


def _joined(rng: Random, case: Case, depth: int) -> str:
    parts = [_part(rng, case, depth - 1) for _ in range(rng.choice([1, 2, 2, 3]))]
    text = parts[0]
    for part in parts[1:]:
        text += rng.choice([" AND ", " and ", "\n  And\t", " OR ", " or ", " OR\n"]) + part
    return text


def _part(rng: Random, case: Case, depth: int) -> str:
    negation = rng.choice(["", "", "", "NOT ", "not ", "NOT NOT "])
    if depth > 0 and rng.random() < 0.6:
        return f"{negation}({_joined(rng, case, depth)})"
    # One that is refused would have the whole refused.
    drawn = (_comparison(rng, case) for _ in range(20))
    accepted = next((text for text in drawn if _is_accepted(text, case.schema)), "id > 0")
    return negation + accepted


def _is_accepted(text: str, schema: pa.Schema) -> bool:
    try:
        return bool(conditions(text, schema))
    except ConditionError:
        return False


def _comparison(rng: Random, case: Case) -> str:
    name = rng.choice(list(case.kinds))
    spelled = _spelled(rng, name)
    negation = rng.choice(["", "", "NOT ", "not "])
    kind = rng.random()
    if kind < 0.08 or name not in _compared(case):
        return f"{spelled} IS {rng.choice(['', 'NOT '])}NULL"
    if kind < 0.25:
        several = rng.choice([1, 2, 3, 12])
        return f"{spelled} {negation}in ({', '.join(_literal(rng, case, name) for _ in range(several))})"
    if kind < 0.4:
        return f"{spelled} {negation}BETWEEN {_literal(rng, case, name)} AND {_literal(rng, case, name)}"
    if kind < 0.6 and pa.types.is_string(case.kinds[name].type):
        return f"{spelled} {negation}{rng.choice(['LIKE', 'like'])} {_pattern(rng, case, name)}"
    sign = rng.choice(["=", "==", "<", "<=", ">", ">=", "!=", "<>"])
    return f"{spelled} {sign} {_literal(rng, case, name)}"


def _compared(case: Case) -> list[str]:
    return [name for name, kind in case.kinds.items() if kind.spell is not _only_nulls]


def _spelled(rng: Random, name: str) -> str:
    if name in FIELDS:
        spelled = name if rng.random() < 0.7 else name.replace("st.", "`st`.")
    else:
        spelled = name if name.isidentifier() and rng.random() < 0.7 else f"`{name}`"
    return spelled.upper() if rng.random() < 0.1 else spelled


def _literal(rng: Random, case: Case, name: str) -> str:
    if rng.random() < 0.02:
        return "NULL"
    # Now and then a value of another column, of a type that fits or does not.
    source = name if rng.random() < 0.95 else rng.choice(_compared(case))
    return case.kinds[source].spell(rng, rng.choice(list(case.pools[source])))


def _pattern(rng: Random, case: Case, name: str) -> str:
    """The beginning of a value that there is, or all of it; rarely with a wildcard that is refused."""
    value: str = rng.choice(list(case.pools[name]))
    asked = value[: rng.choice([0, 1, 2, 15, 16, 17, 30])]
    for special in "\\%_":
        asked = asked.replace(special, "\\" + special)
    pattern = asked + rng.choice(["%", "%", "%", "", "  %", "%%", "b%"]) + rng.choice(["", "", "", "", "", "_"])
    escaped = pattern.replace("\\", "\\\\").replace("'", rng.choice(["\\'", "''"]))
    return f"'{escaped}'"
