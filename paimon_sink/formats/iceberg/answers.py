"""What a REST catalog answers: the table's metadata, whose snapshots stay text here as they do in files.

The only module that reaches into the HTTP client of pyiceberg's REST catalog.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog

from paimon_sink.formats.iceberg.file_io import record
from paimon_sink.formats.iceberg.kept_text import slim_answer

__all__ = ["slim_answers"]


def slim_answers(catalog: Catalog) -> Catalog:
    """The catalog, which from now on makes no objects of snapshots that are merely kept."""
    if isinstance(catalog, RestCatalog):
        catalog._session.hooks["response"].append(_slimmed)
    return catalog


def _slimmed(response: Any, *_: Any, **__: Any) -> Any:
    on_record = record()
    if on_record is None or not on_record.slim_only or not response.ok:
        return response
    try:
        found = slim_answer(response.content.decode())
    except ValueError:
        return response
    if found is not None:
        text, on_record.answered = found
        response._content = text.encode()
        response.encoding = "utf-8"
    return response
