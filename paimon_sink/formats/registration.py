"""What a package registers in the entry point group ``paimon_sink.formats``, under the name that users write.

[project.entry-points."paimon_sink.formats"]
delta = "my_package.capabilities:FORMAT"
"""

from __future__ import annotations

from dataclasses import dataclass

from paimon_sink.core.capabilities import Capabilities

__all__ = ["RegisteredFormat"]


@dataclass(frozen=True, kw_only=True)
class RegisteredFormat:
    """A format as it is known before it is used. Its module must be importable without the format's own library."""

    capabilities: Capabilities
    implementation: str
    """``package.module:Class`` of its :class:`~paimon_sink.formats.contract.Format`, imported when one is opened."""
    install: str
    """What ``pip install`` takes where something is missing: paimon-sink[iceberg]."""
