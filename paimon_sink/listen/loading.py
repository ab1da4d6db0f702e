"""From the names in the option ``listeners`` to listeners: by entry point, or by ``package.module:Class``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from paimon_sink.core.errors import OptionError, PwcError
from paimon_sink.core.events import CommitEvent, CommitListener
from paimon_sink.core.names import nearest_name
from paimon_sink.core.option_groups import ListenerOptions, TableOptions
from paimon_sink.core.option_secrets import Masked
from paimon_sink.formats.contract import Table
from paimon_sink.listen.redaction import RedactingListener, describe_error, redact, secrets_in
from paimon_sink.listen.table import ListenerTable

__all__ = ["BUILT_IN", "GROUP", "ListenerContext", "check_listeners", "load_by_path", "load_listeners"]

GROUP = "paimon_sink.listeners"
BUILT_IN = {
    "mark-done": "paimon_sink.listen.mark_done:MarkDone",
    "tags": "paimon_sink.listen.tags:Tags",
    "metrics": "paimon_sink.listen.metrics:Metrics",
}
"""Entry points of this package too; also where it is on the path without being installed, as Spark ships archives."""

Factory = Callable[["ListenerContext"], CommitListener]


@dataclass(frozen=True)
class ListenerContext:
    """What a listener is made from: its settings, and the table it listens at."""

    name: str
    settings: Mapping[str, str] = field(default_factory=Masked)
    """``listener.<name>.*`` without that prefix, in small letters."""
    table: ListenerTable | None = None
    """None while options are only checked: before the first row, when there may be no table yet."""


def check_listeners(options: ListenerOptions, at: TableOptions, table: Table | None = None) -> None:
    """Make every listener once, so that what is wrong with one is said before any row is written.

    Without a table first, so that none is created for options that are wrong; then with it.
    """
    for name in options.names:
        secrets = _secrets(options, at)
        try:
            made = _factory(name)(_context(name, options, table))
        except PwcError as error:
            if redact(str(error), secrets) == str(error):
                raise
            raise OptionError(redact(str(error), secrets)) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a constructor may raise anything
            raise OptionError(
                f"Cannot write to {at.label}: the listener {name} cannot be made "
                f"({describe_error(error, secrets)}). Correct its settings, or leave it out of the option listeners."
            ) from None
        if not callable(getattr(made, "on_commit", None)):
            raise OptionError(f"Cannot write to {at.label}: {name} is no listener, it has no method on_commit.")


def load_listeners(options: ListenerOptions, at: TableOptions, table: Table) -> dict[str, CommitListener]:
    """The listeners of a writer. One that cannot be made any more fails when it is told, not before the commit."""
    return {name: _made(name, options, at, table) for name in options.names}


def _made(name: str, options: ListenerOptions, at: TableOptions, table: Table) -> CommitListener:
    try:
        made = _factory(name)(_context(name, options, table))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a batch must not be lost to a listener
        made = _Unmade(error)
    return RedactingListener(made, _secrets(options, at))


def _secrets(options: ListenerOptions, at: TableOptions) -> tuple[str, ...]:
    """Of each for itself: the same name may stand for two values."""
    return tuple(
        {secret: None for settings in (at.storage, at.catalog, options.settings) for secret in secrets_in(settings)}
    )


@dataclass(frozen=True)
class _Unmade:
    reason: Exception | SystemExit

    def on_commit(self, event: CommitEvent, state: Any) -> Any:
        raise self.reason


def _context(name: str, options: ListenerOptions, table: Table | None) -> ListenerContext:
    prefix = f"{name.lower()}."
    own = {
        key.lower().removeprefix(prefix): value
        for key, value in options.settings.items()
        if key.lower().startswith(prefix)
    }
    return ListenerContext(name, Masked(own), None if table is None else ListenerTable.of(table))


def _factory(name: str) -> Factory:
    if ":" in name:
        factory: Factory = load_by_path(name, what="listener")
        return factory
    known = {found.name: found for found in entry_points(group=GROUP)}
    if name in known:
        factory = known[name].load()
        return factory
    if name in BUILT_IN:
        factory = load_by_path(BUILT_IN[name], what="listener")
        return factory
    names = sorted({*known, *BUILT_IN})
    nearest = nearest_name(name, names)
    hint = f"did you mean {nearest}?" if nearest else f"there are {', '.join(names)}."
    raise OptionError(f"No installed package has a listener {name!r}; {hint}")


def load_by_path(name: str, *, what: str) -> Any:
    """What ``package.module:Class`` names."""
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise OptionError(
            f"Cannot load the {what} {name} ({error}). Install the package where the driver and the executors run."
        ) from error
    return found
