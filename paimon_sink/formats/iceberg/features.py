"""What an Iceberg table may use that this sink cannot write safely yet. Each is refused by name."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, FloatType

from paimon_sink.core.errors import UnsupportedTableError

_REFUSED_WHEN_SET = {
    "write.data.path": "data files outside of the table (write.data.path)",
    "write.folder-storage.path": "data files outside of the table (write.folder-storage.path)",
    "write.object-storage.path": "data files outside of the table (write.object-storage.path)",
    "write.location-provider.impl": "a location provider of its own (write.location-provider.impl)",
    "write.py-location-provider.impl": "a location provider of its own (write.py-location-provider.impl)",
    "encryption.key-id": "encryption",
}


def unsupported_features(metadata: TableMetadata) -> list[str]:
    """The features in use that we refuse, in words."""
    features = [] if metadata.format_version == 2 else [f"format version {metadata.format_version}"]
    for field in metadata.spec().fields:
        # NaN is not equal to itself, so that no overwrite would find its partition.
        if isinstance(field.transform, IdentityTransform) and _is_floating(metadata, field.source_id):
            features.append(f"the partition {field.name} of floating point numbers")
    return [*features, *unsupported_properties(metadata.properties)]


def _is_floating(metadata: TableMetadata, field_id: int) -> bool:
    return field_id in metadata.schema().field_ids and isinstance(
        metadata.schema().find_type(field_id), FloatType | DoubleType
    )


def unsupported_properties(properties: Mapping[str, str]) -> list[str]:
    features = [name for key, name in _REFUSED_WHEN_SET.items() if properties.get(key, "").strip()]
    if properties.get("write.object-storage.enabled", "").strip().lower() == "true":
        features.append("the object store layout (write.object-storage.enabled)")
    file_format = properties.get("write.format.default", "parquet").strip().lower()
    if file_format != "parquet":
        features.append(f"the file format {file_format}")
    version = properties.get("format-version", "2").strip()
    if version != "2":
        features.append(f"format version {version}")
    return features


def check_collectable(properties: Mapping[str, str], *, table: str) -> None:
    """Refuse to delete files of a table that forbids it: other tables may use them too."""
    if properties.get("gc.enabled", "true").strip().lower() == "false":
        raise UnsupportedTableError(
            f"Refused to delete files of {table}: its property gc.enabled is false, so other tables may use them. "
            "Nothing was removed. Set it to true if that is not so."
        )
