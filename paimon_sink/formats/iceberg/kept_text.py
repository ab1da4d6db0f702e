"""Table metadata with its two long lists left as text: the snapshots that are kept, and the log of them.

A commit adds one snapshot. Making objects of all the others, and text of those again, is most of its time once a table
is old. So the lists are cut out of the file before pyiceberg reads it, and put back, as they were, into the next one.
pyiceberg sees the snapshots that branches and tags name, and nothing of the others.

What is cut is found by its text, at the speed of a search, and what is left has to parse: else all is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

__all__ = ["KeptText", "Link", "SlimMetadata", "keep_unknown", "slim", "slim_answer", "snapshot_log", "with_lists"]

Json = dict[str, Any]

SNAPSHOTS, LOG, METADATA_LOG = "snapshots", "snapshot-log", "metadata-log"
_WRITTEN_VERSION = 2
_NUMBERS = re.compile(r'\{(?:"[a-z-]+":-?\d+,)*')
"""How an object begins that has its id after nothing but numbers."""
_LINK = re.compile(
    r'\{(?:"sequence-number":(\d+),)?"snapshot-id":(\d+)(?:,"parent-snapshot-id":(\d+))?(?:,"sequence-number":(\d+))?'
)
_INNER_END = re.compile(r"\]\s*[}\]]")
_NEVER_ESCAPED = re.compile(r"[\w .:-]*", re.ASCII)
_MANIFEST_LIST = '"manifest-list":'


class Link(NamedTuple):
    """Where a snapshot stands."""

    parent: int | None
    sequence_number: int


@dataclass(frozen=True)
class KeptText:
    """The inside of a list of snapshots, as it stands in a file."""

    text: str

    def __bool__(self) -> bool:
        return bool(self.text)

    def mentions(self, text: str) -> bool:
        """Whether it may be a key or a value somewhere. Only False is sure."""
        # Engines differ in what they escape. From the end: far faster than ``in``, and what is there is mostly new.
        return not _NEVER_ESCAPED.fullmatch(text) or self.text.rfind(f'"{text}"') >= 0

    def find(self, snapshot_id: int, *, before: int | None = None) -> tuple[Json, int] | None:
        """A snapshot by its id, with its place; ``before`` is the place of one that most likely came after it."""
        if "_parsed" in self.__dict__:
            return self._in_parsed(snapshot_id)
        found = None if before is None else self._search(snapshot_id, before)
        if found is None:
            found = self._search(snapshot_id, len(self.text))
        if found is None:
            return self._in_parsed(snapshot_id) if self.text.rfind(str(snapshot_id)) >= 0 else None
        return found

    def all(self) -> list[Json]:
        return list(self._parsed.values())

    @cached_property
    def links(self) -> Mapping[int, Link]:
        """What each snapshot follows, oldest first as the file has them."""
        matches = _LINK.findall(self.text)
        counts = (
            (len(matches), _MANIFEST_LIST),
            (len(matches), '"snapshot-id":'),
            (sum(1 for match in matches if match[2]), '"parent-snapshot-id":'),
            (sum(1 for match in matches if match[0] or match[3]), '"sequence-number":'),
        )
        if all(count == self.text.count(key) for count, key in counts):
            return {
                int(own): Link(int(parent) if parent else None, int(first or second or 0))
                for first, own, parent, second in matches
            }
        # Written by somebody who puts things in another order.
        return {
            own: Link(each.get("parent-snapshot-id"), each.get("sequence-number") or 0)
            for own, each in self._parsed.items()
        }

    @cached_property
    def _parsed(self) -> dict[int, Json]:
        return {each["snapshot-id"]: each for each in json.loads(f"[{self.text}]")}

    def _in_parsed(self, snapshot_id: int) -> tuple[Json, int] | None:
        found = self._parsed.get(snapshot_id)
        return None if found is None else (found, len(self.text))

    def _search(self, snapshot_id: int, end: int) -> tuple[Json, int] | None:
        """The last that has the id before ``end``. None where the text does not tell for sure."""
        at = self.text.rfind(f'"snapshot-id":{snapshot_id},', 0, end)
        start = self.text.rfind("{", 0, at) if at > 0 else -1
        if start < 0 or not _NUMBERS.fullmatch(self.text, start, at):
            return None
        found, _ = _DECODER.raw_decode(self.text, start)
        return (found, start) if "manifest-list" in found else None


_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class SlimMetadata:
    """A metadata file in two: what a commit needs of it, and its long lists as text."""

    fields: Json
    """As in the file, but with both lists empty."""
    kept: KeptText
    log: str
    """The inside of the snapshot log."""

    @cached_property
    def named(self) -> list[Json]:
        """The snapshots that branches and tags name."""
        ids = [ref["snapshot-id"] for ref in (self.fields.get("refs") or {}).values()]
        current = self.fields.get("current-snapshot-id")
        ids += [] if current in (None, -1) else [current]
        found = [self.kept.find(each) for each in dict.fromkeys(ids)]
        return [each[0] for each in found if each is not None]

    @cached_property
    def text(self) -> str:
        """What pyiceberg is given to read."""
        return _dumps({**self.fields, SNAPSHOTS: self.named})

    def followed_by(self, after: Json, plain: Json) -> SlimMetadata:
        """The next one: ``after`` is what pyiceberg made of it, ``plain`` what it makes of this one unchanged."""
        known = {each["snapshot-id"] for each in plain[SNAPSHOTS]}
        if not known <= {each["snapshot-id"] for each in after[SNAPSHOTS]}:
            raise ValueError("a snapshot was taken out of metadata that has only some of them")
        added = [each for each in after[SNAPSHOTS] if each["snapshot-id"] not in known]
        fields = keep_unknown(self.fields, plain, {**after, SNAPSHOTS: [], LOG: []})
        return SlimMetadata(fields, KeptText(_joined(self.kept.text, added)), _joined(self.log, after[LOG]))

    def whole(self) -> str:
        """The file."""
        return with_lists(self.fields, snapshots=self.kept.text, log=self.log)


def slim(text: str) -> SlimMetadata | None:
    """A metadata file in two, or None for one that only pyiceberg should judge."""
    cut = _cut_all(text)
    found = None if cut is None else _slim_of(*cut)
    if found is None:
        try:
            found = _parsed_slim(json.loads(text))
        except ValueError:
            return None
    return found if found is not None and _is_sound(found) else None


def slim_answer(text: str) -> tuple[str, SlimMetadata] | None:
    """What a catalog answers, which has the metadata inside: what pyiceberg is given, and the metadata in two."""
    cut = _cut_all(text)
    answer: Any = None if cut is None else cut[0]
    found = _slim_of(answer.get("metadata"), *cut[1:]) if cut is not None and isinstance(answer, dict) else None
    if found is None:
        answer = json.loads(text)
        found = _parsed_slim(answer.get("metadata")) if isinstance(answer, dict) else None
    if found is None or not _is_sound(found):
        return None
    return _dumps({**answer, "metadata": {**found.fields, SNAPSHOTS: found.named}}), found


def _cut_all(text: str) -> tuple[Any, str, str] | None:
    """What is left without the two lists, parsed, and what stood in each."""
    first = _cut_out(text, SNAPSHOTS)
    second = None if first is None else _cut_out(first[0], LOG)
    if first is None or second is None:
        return None
    try:
        return json.loads(second[0]), first[1], second[1]
    except ValueError:
        return None


def snapshot_log(inside: str) -> list[Json]:
    entries: list[Json] = json.loads(f"[{inside}]")
    return entries


def with_lists(fields: Json, *, snapshots: str, log: str) -> str:
    """As Java orders them: the lists behind all else, and the log of files last, so that each ends before a name."""
    others = {key: value for key, value in fields.items() if key not in (SNAPSHOTS, LOG, METADATA_LOG)}
    last = _dumps({METADATA_LOG: fields.get(METADATA_LOG) or []})[1:]
    return f'{_dumps(others)[:-1]},"{SNAPSHOTS}":[{snapshots}],"{LOG}":[{log}],{last}'


def keep_unknown(found: Any, plain: Any, after: Any) -> Any:
    """``after``, with what ``found`` has and a reader of it does not know: ``plain`` is what the reader made of it."""
    if after == plain:
        return found
    if isinstance(found, dict) and isinstance(plain, dict) and isinstance(after, dict):
        unknown = {key: value for key, value in found.items() if key not in plain and key not in after}
        merged = {
            key: keep_unknown(found[key], plain[key], value) if key in found and key in plain else value
            for key, value in after.items()
        }
        # A snapshot that there is none of is spelt in several ways, all of which a reader leaves out.
        kept = {key: value for key, value in unknown.items() if value is not None and key != "current-snapshot-id"}
        return {**merged, **kept}
    if isinstance(found, list) and isinstance(plain, list) and isinstance(after, list) and len(found) == len(plain):
        return [*_elements(found, plain, after)]
    return after


def _elements(found: list[Any], plain: list[Any], after: list[Any]) -> Iterator[Any]:
    """Each with what was known of the same one before: lists only grow at their end, or lose some."""
    before = iter(zip(found, plain, strict=True))
    by_id = {_id_of(each): (kept, each) for kept, each in zip(found, plain, strict=True)}
    for each in after:
        here = next(before, None)
        if here is not None and here[1] == each:
            yield here[0]
        elif (same := by_id.get(_id_of(each))) is not None:
            yield keep_unknown(same[0], same[1], each)
        else:
            yield each


def _id_of(value: Any) -> Any:
    if isinstance(value, dict):
        return next(((key, value[key]) for key in _IDS if key in value), json.dumps(value, sort_keys=True))
    return json.dumps(value)


_IDS = ("snapshot-id", "schema-id", "spec-id", "order-id", "field-id", "id", "metadata-file")


def _joined(text: str, added: Iterable[Json]) -> str:
    return ",".join(filter(None, (text, *map(_dumps, added))))


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut_out(text: str, key: str) -> tuple[str, str] | None:
    """The text with an empty list, and what stood in it. None where the text does not tell for sure.

    A quote inside of a string is escaped, so what looks like a name and the begin of a list is one. What looks like the
    end of a list may be the end of an inner one, or of a string. Then what is left does not parse: its brackets do not
    match, or each of its strings begins where one should end.
    """
    opening = f'"{key}":['
    start = text.find(opening) + len(opening)
    if start < len(opening) or text[start - len(opening) - 1] == "\\" or text.find(opening, start) >= 0:
        return None
    end = text.find('],"', start)
    if end < 0:
        return None
    inside = text[start:end]
    if "]" in inside and _INNER_END.search(inside):
        return None
    return text[:start] + text[end:], inside


def _slim_of(fields: Any, snapshots: str, log: str) -> SlimMetadata | None:
    is_whole = isinstance(fields, dict) and fields.get(SNAPSHOTS) == [] and fields.get(LOG) == []
    return SlimMetadata(fields, KeptText(snapshots), log) if is_whole else None


def _parsed_slim(fields: Any) -> SlimMetadata | None:
    if not isinstance(fields, dict):
        return None
    snapshots, log = fields.get(SNAPSHOTS) or [], fields.get(LOG) or []
    if not isinstance(snapshots, list) or not isinstance(log, list):
        return None
    return SlimMetadata({**fields, SNAPSHOTS: [], LOG: []}, KeptText(_joined("", snapshots)), _joined("", log))


def _is_sound(found: SlimMetadata) -> bool:
    """Whether it is of the version that is written here, and has what its branches and tags name."""
    refs = found.fields.get("refs") or {}
    if found.fields.get("format-version") != _WRITTEN_VERSION or not isinstance(refs, dict):
        return False
    try:
        ids = {ref["snapshot-id"] for ref in refs.values()}
        current = found.fields.get("current-snapshot-id")
        ids |= set() if current in (None, -1) else {current}
        return ids == {each["snapshot-id"] for each in found.named}
    except (TypeError, KeyError, ValueError):
        return False
