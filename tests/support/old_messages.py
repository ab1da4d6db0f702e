"""Messages as version 1 had them: plain JSON, which executors of an earlier release still send."""

from __future__ import annotations

import base64
import json
from typing import Any

from paimon_sink.core.messages import TaskMessage

__all__ = ["as_version_1", "body_of_version_1"]


def body_of_version_1(payload: bytes) -> dict[str, Any]:
    """What a message says, whatever its version is."""
    message = TaskMessage.from_bytes(payload)
    return {
        "version": 1,
        "table": message.table_identity,
        "schema": message.schema_id,
        "query": message.query_id,
        "batch": message.batch_id,
        "planned": None if message.planned is None else [message.planned.wall_ms, message.planned.steady_ms],
        "watermark": message.watermark_ms,
        **({"overwrite": "dynamic"} if message.dynamic_overwrite else {}),
        "files": [
            {
                "path": file.path,
                "partition": list(file.partition),
                "rows": file.rows,
                "bytes": file.size_bytes,
                "entry": base64.b64encode(file.entry).decode("ascii"),
            }
            for file in message.files
        ],
    }


def as_version_1(payload: bytes) -> bytes:
    return json.dumps(body_of_version_1(payload), separators=(",", ":")).encode("utf-8")
