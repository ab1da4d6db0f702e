"""Settings of a listener, declared as options are: each is a field, with its key, parser, default and documentation.

    class BellSettings(Settings):
        times: int = setting("times", parse=count(at_least=1, at_most=9), default="1", doc="How often.", example="3")

    settings = BellSettings.of(context)

``of`` raises one :class:`OptionError` that tells every problem. The tables of the documentation come from the fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Self

from paimon_sink.core.names import nearest_name
from paimon_sink.core.option_fields import EVERYWHERE, Declaration, Family, OptionGroup, declarations
from paimon_sink.core.option_fields import option as setting
from paimon_sink.core.option_fields import option_family as setting_family
from paimon_sink.core.option_reading import Declared, Given, all_together
from paimon_sink.core.option_secrets import quoted_key
from paimon_sink.listen.loading import ListenerContext

__all__ = ["Settings", "setting", "setting_family", "settings_table"]


class Settings(OptionGroup):
    """Base of a listener's settings. A subclass is a frozen dataclass whose text form shows no secret."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for declaration in declarations(cls).values():
            if _is_for_options_alone(declaration):
                raise TypeError(f"{declaration.key} says of a setting what only an option of the sink can have.")

    def problems(self, given: Collection[str]) -> Iterable[tuple[str, str]]:
        """What several settings together make wrong: a key, and the rest of a sentence that begins with it.

        ``given`` are the keys that were given. What was wrong by itself has its default here.
        """
        return ()

    @classmethod
    def of(cls, context: ListenerContext) -> Self:
        """The settings of a listener, or one :class:`OptionError` that tells all that is wrong with them."""

        def unknown(key: str) -> str:
            nearest = nearest_name(key, known)
            cure = f"did you mean {nearest}?" if nearest else f"there are {', '.join(known) or 'none'}."
            return f"{quoted_key(key)} is no setting of the listener {context.name}; {cure}"

        declared = Declared([cls])
        known = [option.key for option in declared.options.values()]
        given = Given(context.settings, declared, unknown=unknown, label=f"listener.{context.name}.")
        settings = given.read(cls)
        for key, rest in settings.problems(frozenset(context.settings)):
            given.problem(key, rest)
        problems = [*given.problems, *given.unknown]
        if problems:
            raise all_together(problems, whose=f"The settings of the listener {context.name}")
        return settings


def settings_table(group: type[Settings]) -> str:
    """The settings as a table in Markdown."""
    rows = [_row(declaration) for declaration in declarations(group).values()]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _row(declaration: Declaration) -> str:
    default, meaning = "", declaration.doc
    if not isinstance(declaration, Family):
        default = f"`{declaration.default}`" if declaration.default is not None else declaration.default_note or ""
        default = "required" if declaration.required is not None else default
        meaning += " **secret**" if declaration.secret else ""
    cells = (f"`{declaration.key}`", default, meaning)
    return "|" + "|".join(f" {cell.replace('|', chr(92) + '|')} " if cell else " " for cell in cells) + "|"


def _is_for_options_alone(declaration: Declaration) -> bool:
    """A listener has one purpose, no page of options, and checks by itself what switches what on."""
    has_switch = not isinstance(declaration, Family) and declaration.switch is not None
    has_place = declaration.section is not None or declaration.instead is not None
    return has_switch or has_place or declaration.purposes != EVERYWHERE
