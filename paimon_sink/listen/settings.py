"""Reading a listener's settings: ask for each by its key, then :meth:`Settings.finish` tells every problem at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from paimon_sink.core import option_values as values
from paimon_sink.core.errors import OptionError
from paimon_sink.core.names import nearest_name
from paimon_sink.core.option_secrets import Masked, quoted, quoted_key
from paimon_sink.core.option_values import BadValueError
from paimon_sink.listen.loading import ListenerContext

__all__ = ["Settings"]

L = TypeVar("L", bound=str)
T = TypeVar("T")
D = TypeVar("D")


class Settings:
    """The settings of one listener, by their keys.

    Each question names the value it gives when nothing was set; None says that nothing is a good answer, too. A wrong
    value gives the same and is a problem, so that a constructor goes on to the end and all problems are told together.
    """

    def __init__(self, context: ListenerContext) -> None:
        self._name = context.name
        self._given = context.settings
        self._known: list[str] = []
        self._groups: list[str] = []
        self._problems: list[str] = []

    def has(self, key: str) -> bool:
        return key in self._given

    def below(self, prefix: str) -> list[str]:
        """The keys that were given and begin so."""
        return [key for key in self._given if key.startswith(prefix)]

    def text(self, key: str, default: D) -> str | D:
        """Any text. It may be secret, so no sentence repeats it."""
        return self.parsed(key, default, values.plain_text)

    def duration_ms(self, key: str, default: D, *, at_least: str = "0ms", at_most: str = "36500d") -> int | D:
        return self.parsed(key, default, values.duration_ms(at_least=at_least, at_most=at_most))

    def count(self, key: str, default: D, *, at_least: int = 0, at_most: int = 1_000_000) -> int | D:
        return self.parsed(key, default, values.count(at_least=at_least, at_most=at_most))

    def flag(self, key: str, default: D) -> bool | D:
        return self.parsed(key, default, values.boolean)

    def choice(self, key: str, default: L, *others: L) -> L:
        """One of a few words: the default, or one of the others."""
        return self.parsed(key, default, values.choice(default, *others))

    def words(self, key: str, default: tuple[L, ...], *allowed: L) -> tuple[L, ...]:
        """Some of a few words, separated by commas."""

        def parse(text: str) -> tuple[L, ...]:
            given = [part.strip().lower() for part in text.split(",")]
            for word in given:
                if word not in allowed:
                    raise BadValueError(f"takes {', '.join(allowed)}, separated by commas, not {quoted(word)}.")
                if given.count(word) > 1:
                    raise BadValueError(f"names {word} twice.")
            return tuple(word for part in given for word in allowed if word == part)

        return self.parsed(key, default, parse)

    def group(self, prefix: str) -> Mapping[str, str]:
        """All settings under a prefix such as ``custom.``, without it, whatever they are called."""
        self._groups.append(prefix)
        return Masked({key.removeprefix(prefix): value for key, value in self._given.items() if key.startswith(prefix)})

    def parsed(self, key: str, default: D, parse: Callable[[str], T]) -> T | D:
        """Any value, by a parser that raises :class:`BadValueError`."""
        self._known.append(key)
        text = self._given.get(key)
        if text is None:
            return default
        if not text.strip():
            self.problem(key, "is empty; give it a value, or leave it out.")
            return default
        try:
            return parse(text)
        except BadValueError as problem:
            self.problem(key, str(problem))
            return default

    def problem(self, key: str, rest: str) -> None:
        """Note one more problem: the rest of a sentence that begins with the key."""
        self._problems.append(f"{self._full(key)} {rest}")

    def finish(self) -> None:
        """Raise one :class:`OptionError` that tells all problems, if there are any. Call it last."""
        problems = [*self._problems, *self._unknown()]
        if len(problems) == 1:
            raise OptionError(problems[0])
        if problems:
            lines = "\n".join(f"  {number}. {problem}" for number, problem in enumerate(problems, start=1))
            raise OptionError(f"The settings of the listener {self._name} have {len(problems)} problems:\n{lines}")

    def _unknown(self) -> list[str]:
        found = []
        for key in self._given:
            if key in self._known or key.startswith(tuple(self._groups)):
                continue
            nearest = nearest_name(key, self._known)
            cure = f"did you mean {nearest}?" if nearest else f"there are {', '.join(self._known) or 'none'}."
            found.append(f"{quoted_key(key)} is no setting of the listener {self._name}; {cure}")
        return found

    def _full(self, key: str) -> str:
        return f"listener.{self._name}.{key}"
