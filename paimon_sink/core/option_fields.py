"""How an option is declared: as a field of a frozen dataclass, with all that is to be known of it in its metadata.

    class WriteOptions(OptionGroup):
        target_file_size_bytes: int = option("targetFileSize", parse=…, default="128mb", doc=…, example="256mb")

That line is the key, the parser, the default and the documentation. Options of the sink are declared like this, and
settings of listeners.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar, TypedDict, TypeVar, Unpack, dataclass_transform, overload

from paimon_sink.core.option_secrets import HIDDEN, Masked, is_secret

__all__ = [
    "BATCHES",
    "BATCH_READS",
    "EVERYWHERE",
    "READS",
    "STREAMS",
    "STREAM_READS",
    "WRITES",
    "Declaration",
    "Family",
    "Option",
    "OptionGroup",
    "Purpose",
    "Section",
    "declarations",
    "option",
    "option_family",
]

T = TypeVar("T")
U = TypeVar("U")

_DECLARATION = "option"


class Purpose(Enum):
    """What the options are parsed for. The value is what the options page says."""

    STREAM_WRITE = "stream"
    BATCH_WRITE = "batch"
    READ = "read"
    STREAM_READ = "stream read"

    @property
    def in_words(self) -> str:
        words = {"stream": "streams", "batch": "batch writes", "read": "batch reads", "stream read": "stream reads"}
        return words[self.value]


EVERYWHERE = frozenset(Purpose)
WRITES = frozenset({Purpose.STREAM_WRITE, Purpose.BATCH_WRITE})
STREAMS = frozenset({Purpose.STREAM_WRITE})
BATCHES = frozenset({Purpose.BATCH_WRITE})
READS = frozenset({Purpose.READ, Purpose.STREAM_READ})
BATCH_READS = frozenset({Purpose.READ})
STREAM_READS = frozenset({Purpose.STREAM_READ})


class Section(Enum):
    """Where an option stands on the options page. In the order people read it."""

    TABLE = 1
    COMMIT = 2
    READ = 3
    FOLLOW = 4
    DATA_FILES = 5
    QUARANTINE = 6
    ROUTES = 7
    UPKEEP = 8
    EVENT_TIME = 9
    LISTENERS = 10


# ---------------------------------------------------------------- declarations


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option. ``default`` is written as a user would; ``default_note`` describes one that is no fixed value."""

    key: str
    parse: Callable[[str], Any]
    doc: str
    example: str
    default: str | None = None
    default_note: str | None = None
    required: str | None = None
    """What it says, where it has to be given: the rest of a sentence."""
    unset: Any = None
    """The value where nothing was given and there is no default."""
    purposes: frozenset[Purpose] = EVERYWHERE
    instead: str | None = None
    """What to do where it cannot be heeded. None: leave it out."""
    switch: str | None = None
    """The option without which this one does nothing."""
    secret: bool = False
    aliases: tuple[str, ...] = ()
    """Names it had before. They are taken, with a word in the log."""
    section: Section | None = None
    """None: that of its group."""

    @property
    def fallback(self) -> Any:
        """The value where nothing was given. One that has to be given stands in with its example: checks go on."""
        if self.required is not None:
            return self.parse(self.example)
        return self.unset if self.default is None else self.parse(self.default)


@dataclass(frozen=True, kw_only=True)
class Family:
    """All options under one prefix, whatever they are called, handed on without it."""

    prefix: str
    doc: str
    example: str
    purposes: frozenset[Purpose] = EVERYWHERE
    reserved: str | None = None
    """Names under the prefix that begin like this are ours."""
    instead: str | None = None
    """As for an option."""
    aliases: tuple[str, ...] = ()
    section: Section | None = None

    @property
    def key(self) -> str:
        return f"{self.prefix}*"


Declaration = Option | Family


class _More(TypedDict, total=False):
    default_note: str
    purposes: frozenset[Purpose]
    instead: str
    switch: str
    secret: bool
    aliases: tuple[str, ...]
    section: Section


@overload
def option(
    key: str, *, parse: Callable[[str], T], doc: str, example: str, default: str, **more: Unpack[_More]
) -> T: ...
@overload
def option(
    key: str, *, parse: Callable[[str], T], doc: str, example: str, required: str, **more: Unpack[_More]
) -> T: ...
@overload
def option(
    key: str, *, parse: Callable[[str], T], doc: str, example: str, unset: U, **more: Unpack[_More]
) -> T | U: ...
@overload
def option(
    key: str, *, parse: Callable[[str], T], doc: str, example: str, **more: Unpack[_More]
) -> T | None: ...  # fmt: skip
def option(key: str, **declared: Any) -> Any:
    """A field that is an option. Its type is what ``parse`` gives; None, or ``unset``, where it has no default."""
    declaration = Option(key=key, **declared)
    metadata = {_DECLARATION: declaration}
    if declaration.required is not None:
        return field(metadata=metadata)
    return field(default=declaration.fallback, metadata=metadata)


def option_family(prefix: str, **declared: Any) -> Mapping[str, str]:
    """A field that holds all options under a prefix such as ``table.``."""
    made: Any = field(default_factory=Masked, metadata={_DECLARATION: Family(prefix=prefix, **declared)})
    return made  # type: ignore[no-any-return]


# ---------------------------------------------------------------- groups


@dataclass_transform(frozen_default=True, kw_only_default=True)
class OptionGroup:
    """Base of a group of options: a subclass is a frozen dataclass whose text form shows no secret.

    It crosses processes, so it holds values and never handles.
    """

    SECTION: ClassVar[Section | None] = None
    """Where its options stand on the options page, unless they say otherwise."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True, repr=False)(cls)

    def __post_init__(self) -> None:
        for name, declaration in declarations(type(self)).items():
            if isinstance(declaration, Family):
                object.__setattr__(self, name, Masked(getattr(self, name)))

    def __repr__(self) -> str:
        shown = (f"{name}={_shown(entry, getattr(self, name))}" for name, entry in declarations(type(self)).items())
        return f"{type(self).__name__}({', '.join(shown)})"


def declarations(group: type[OptionGroup]) -> dict[str, Declaration]:
    """What a group declares, by the names of its fields, in their order."""
    declaring: Any = group  # a dataclass, made so when it was defined
    return {each.name: each.metadata[_DECLARATION] for each in fields(declaring)}


def _shown(declaration: Declaration, value: Any) -> str:
    if isinstance(declaration, Family) or not isinstance(value, str):
        return repr(value)
    return HIDDEN if declaration.secret or is_secret(declaration.key, value) else repr(value)
