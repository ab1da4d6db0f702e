"""From texts that people wrote to values, by declarations: one loop for all options, and every problem in one list."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from paimon_sink.core.errors import OptionError
from paimon_sink.core.option_fields import Declaration, Family, Option, OptionGroup, declarations
from paimon_sink.core.option_secrets import quoted_key
from paimon_sink.core.option_values import BadValueError
from paimon_sink.core.strict_json import is_text

__all__ = ["Declared", "Given", "all_together"]

log = logging.getLogger(__name__)

G = TypeVar("G", bound=OptionGroup)


class Declared:
    """The declarations of some groups, by the names that people write: in any case, and those of before."""

    def __init__(self, groups: Iterable[type[OptionGroup]]) -> None:
        self.groups = tuple(groups)
        self.options: dict[str, Option] = {}
        self.families: dict[str, Family] = {}
        self._renamed: dict[str, str] = {}
        for declaration in self:
            if isinstance(declaration, Option):
                self.options[declaration.key.lower()] = declaration
                self._renamed |= {alias.lower(): declaration.key for alias in declaration.aliases}
            else:
                self.families[declaration.prefix.lower()] = declaration
                self._renamed |= {alias.lower(): declaration.prefix for alias in declaration.aliases}

    def __iter__(self) -> Iterator[Declaration]:
        for group in self.groups:
            yield from declarations(group).values()

    def today(self, key: str) -> str:
        """The name that an option has now. One it had before is named in the log."""
        if key.lower() in self._renamed:
            _log_renamed(key, self._renamed[key.lower()])
            return self._renamed[key.lower()]
        for before, now in self._renamed.items():
            if before.endswith(".") and key.lower().startswith(before):
                _log_renamed(key[: len(before)], now)
                return now + key[len(before) :]
        return key


@cache
def _log_renamed(before: str, now: str) -> None:
    """Once a process: options are read again for each batch and by each task."""
    log.warning(
        "The option %s is called %s now. The old name still works, and will go: write the new one.", before, now
    )


class Given:
    """What a user gave, sorted by declaration, and the problems on the way.

    ``label`` is what sentences put before a key. ``parsers`` stand in for those of the declarations, where what is
    allowed is known to the caller alone; ``unknown`` makes the sentence for a key that nobody declared.
    """

    def __init__(
        self,
        texts: Mapping[str, Any],
        declared: Declared,
        *,
        unknown: Callable[[str], str],
        label: str = "",
        parsers: Mapping[str, Callable[[str], Any]] | None = None,
    ) -> None:
        self.declared = declared
        self.texts: dict[str, str] = {}
        """By the documented spelling of the key."""
        self.families: dict[str, dict[str, str]] = {family.prefix: {} for family in declared.families.values()}
        self.problems: list[str] = []
        self.unknown: list[str] = []
        """One sentence for each key that nobody declared. They are problems too, and kept apart from the others."""
        self.refused: set[str] = set()
        """Keys whose values are among the problems."""
        self._sentence = unknown
        self._label = label
        self._parsers = dict(parsers or {})
        self._sort_all(texts)

    def has(self, key: str) -> bool:
        """Whether an option was given, right or wrong."""
        assert key.lower() in self.declared.options, f"{key} is not declared"
        return key in self.texts

    def problem(self, key: str, rest: str) -> None:
        """Note one more problem: the rest of a sentence that begins with the key."""
        self.problems.append(f"{self._label}{key} {rest}")

    def read(self, group: type[G]) -> G:
        """The group with the values given. What is wrong has its default, and is among the problems."""
        values = {
            name: self.families[declaration.prefix] if isinstance(declaration, Family) else self._value(declaration)
            for name, declaration in declarations(group).items()
        }
        return group(**values)

    # ------------------------------------------------------------ inside

    def _sort_all(self, texts: Mapping[str, Any]) -> None:
        earlier: dict[str, tuple[str, str]] = {}
        for key, value in ((str(key), _as_text(value)) for key, value in texts.items()):
            today = self.declared.today(key)
            first_key, first_value = earlier.setdefault(today.lower(), (key, value))
            if (first_key, first_value) == (key, value):
                self._sort(today, value)
            elif first_value != value:
                self.problems.append(
                    f"{quoted_key(key)} and {quoted_key(first_key)} are the same option with different values; keep "
                    "one."
                )

    def _sort(self, key: str, value: str) -> None:
        declared = self.declared.options.get(key.lower())
        if declared is not None:
            self.texts[declared.key] = value
            return
        for prefix, family in self.declared.families.items():
            if key.lower().startswith(prefix):
                self._sort_into(family, key[len(prefix) :], value)
                return
        self.unknown.append(self._sentence(key))

    def _sort_into(self, family: Family, name: str, value: str) -> None:
        prefix = f"{self._label}{family.prefix}"
        if not name.strip():
            self.problems.append(f"{prefix} needs a name after the dot, as in {family.example}.")
        elif family.reserved is not None and name.lower().startswith(family.reserved):
            self.problems.append(
                f"{prefix}{family.reserved}* is kept for paimon-sink's own properties; choose another name."
            )
        elif not (is_text(name) and is_text(value)):
            self.problems.append(f"{prefix}* has a name or value with half a character, as no file can hold it.")
        else:
            self.families[family.prefix][name] = value

    def _value(self, option: Option) -> Any:
        text = self.texts.get(option.key)
        if text is None:
            if option.required is not None:
                self.problem(option.key, f"is missing; it says {option.required}.")
            return option.fallback
        self.refused.add(option.key)
        if not text.strip():
            self.problem(option.key, f"is empty; give it a value such as {option.example}, or leave it out.")
            return option.fallback
        try:
            value = self._parsers.get(option.key, option.parse)(text)
        except BadValueError as problem:
            self.problem(option.key, str(problem))
        except OptionError as problem:
            self.problems.append(str(problem))
        else:
            self.refused.discard(option.key)
            return value
        return option.fallback


def all_together(problems: list[str], *, whose: str) -> OptionError:
    """One error that tells every problem; ``whose`` says of what: "The options"."""
    if len(problems) == 1:
        return OptionError(problems[0])
    lines = "\n".join(f"  {number}. {problem}" for number, problem in enumerate(problems, start=1))
    return OptionError(f"{whose} have {len(problems)} problems:\n{lines}")


def _as_text(value: object) -> str:
    """Spark hands over text; a caller in Python may have passed ``True``, a number or nothing."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
