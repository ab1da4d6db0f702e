"""What a Paimon table may use that this sink cannot write safely yet. Each is refused by name, before the first row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_OFF = {"", "false", "none"}

_REFUSED_WHEN_SET = {
    "primary-key": "a primary key",
    "bucket-key": "a bucket key",
    "data-evolution.enabled": "data evolution",
    "deletion-vectors.enabled": "deletion vectors",
    "row-tracking.enabled": "row tracking",
    "changelog-producer": "a changelog producer",
    "data-file.external-paths": "external data file paths",
    "data-file.path-directory": "a data file directory of its own",
    "query-auth.enabled": "query authorization",
    "variant.shreddingSchema": "variant shredding",
    "blob-field": "blob columns",
    "vector-field": "vector columns",
    "branch": "a branch",
}

_ALLOWED_VALUES = {
    "bucket": ({"-1"}, "fixed or postponed buckets (bucket = {})"),
    "file.format": ({"parquet"}, "the file format {}"),
    "type": ({"table"}, "the table type {}"),
    "manifest.format": ({"avro"}, "the manifest format {}"),
}


def unsupported_features(options: Mapping[str, str], primary_keys: Sequence[str]) -> list[str]:
    """The features in use that we refuse, in words."""
    features = ["a primary key"] if primary_keys else []
    for key, name in _REFUSED_WHEN_SET.items():
        if str(options.get(key, "")).strip().lower() not in _OFF and name not in features:
            features.append(name)
    for key, (allowed, name) in _ALLOWED_VALUES.items():
        value = str(options.get(key, "")).strip().lower()
        if value and value not in allowed:
            features.append(name.format(value[:60]))
    return features
