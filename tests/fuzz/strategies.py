"""Hostile values, texts, bytes and JSON: what no careful writer sends, and networks, disks and people do."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

__all__ = ["any_text", "awkward_texts", "broken_bytes", "broken_json", "junk"]

any_text = st.text(st.characters(exclude_categories=()), max_size=40)
"""Surrogates, NUL and control characters included."""

AWKWARD_TEXTS = [
    "",
    " ",
    ".",
    "..",
    "../../x",
    "../../../../sales.db/neighbour/schema/schema-0",
    "/etc/passwd",
    "%2e%2e",
    "%2e%2e%2fx",
    "a/b",
    "a\\b",
    "x\x00y",
    "a\nb",
    "\x7f",
    "\ud800",
    "\ufeffx",
    "e\u0301",
    "\u00e9",
    "x.",
    "x ",
    " x",
    "NaN",
    "null",
    "-1",
    "1e9",
    "x" * 300,
    "雪" * 100,
    "snapshot",
    "manifest",
    "schema",
    "pwc",
    "bucket-0",
    "__DEFAULT_PARTITION__",
]

# Written into the JSON text as they are: no Python value is dumped as one of these.
_RAW = {
    "@raw-0@": "1e999",
    "@raw-1@": "-" + "9" * 4000,
    "@raw-2@": "9" * 5000,
    "@raw-3@": "[" * 20_000 + "]" * 20_000,
    "@raw-4@": '{"a":' * 20_000 + "1" + "}" * 20_000,
    "@raw-5@": "NaN",
    "@raw-6@": "-Infinity",
    "@raw-7@": '"\\ud800"',
    "@raw-8@": "1.5",
    "@raw-9@": "tru",
}

awkward_texts = st.sampled_from(AWKWARD_TEXTS) | any_text
junk: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [None, True, False, 0, 1, -1, 2, 2**31, 2**63 - 1, 2**63, -(2**63), 2**200, 0.5, [], {}, [[]], [None]]
    ),
    awkward_texts,
    st.sampled_from(sorted(_RAW)),
    st.dictionaries(st.sampled_from(["id", "version", "a", ""]), st.integers(), max_size=2),
)


@st.composite
def broken_json(draw: st.DrawFn, document: Any) -> bytes:
    """A JSON document with one to three of its places removed, doubled or holding something else."""
    body = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(body))
        if not places:
            break
        container, key = draw(st.sampled_from(places))
        if draw(st.integers(0, 4)) == 0:
            del container[key]
        else:
            container[key] = copy.deepcopy(draw(junk))
    text = json.dumps(body, ensure_ascii=draw(st.booleans()))
    for mark, raw in _RAW.items():
        text = text.replace(f'"{mark}"', raw)
    if draw(st.integers(0, 5)) == 0 and isinstance(body, dict) and body:
        name = draw(st.sampled_from(sorted(body)))
        text = f"{text[:-1]}, {json.dumps(name)}: {json.dumps(draw(st.none() | st.integers() | any_text))}}}"
    return text.encode("utf-8", "surrogatepass")


def _places(node: Any) -> Any:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield node, key
        yield from _places(value)


@st.composite
def broken_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes cut short, with bits flipped, a piece replaced, doubled or left out, or others altogether."""
    kind = draw(st.sampled_from(["bits", "bits", "bits", "cut", "piece", "doubled", "left out", "others"]))
    if kind == "others" or not data:
        return draw(st.binary(max_size=200))
    start = draw(st.integers(0, len(data) - 1))
    end = min(len(data), start + draw(st.integers(1, 40)))
    match kind:
        case "bits":
            changed = bytearray(data)
            for _ in range(draw(st.integers(1, 3))):
                changed[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
            return bytes(changed)
        case "cut":
            return data[:start]
        case "piece":
            return data[:start] + draw(st.binary(max_size=40)) + data[end:]
        case "doubled":
            return data[:end] + data[start:]
        case _:
            return data[:start] + data[end:]
