"""Files of the table that we never wrote like that: named in a refusal, or read; nothing live ever goes."""

from __future__ import annotations

import json
import os
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paimon_sink.core.errors import CorruptTableError, PwcError
from paimon_sink.core.messages import TaskMessage
from paimon_sink.formats.ledger import Ledger, LedgerEntry
from paimon_sink.formats.paimon.snapshots import decode_ledger, encode_ledger
from tests.fuzz.strategies import any_text, broken_bytes, broken_json
from tests.fuzz.support import Sample, Scene, fuzz, refusal

pytestmark = pytest.mark.fault(38)

NEWEST = "snapshot/snapshot-2"
NEWER = re.compile(r"snapshot-([3-9]|[1-9][0-9]{1,18})", re.ASCII)


def paths_of(*payloads: bytes) -> frozenset[str]:
    return frozenset(file.path for payload in payloads for file in TaskMessage.from_bytes(payload).files)


def everything_is_tried(scene: Scene, sample: Sample) -> list[PwcError | None]:
    """A replay, the next batch, an overwrite, an abort and a read, on a table with a file that is not as it should be.

    Each is refused by name or goes through. What is damaged may read as anything, so what must hold whatever it says:
    no file that was named before is gone or changed, and no path leads outside.
    """
    before = scene.files()

    refused = [
        scene.commit(1, sample.replay),
        scene.commit(2, sample.fresh),
        scene.commit(3, overwrite=True),
        refusal(lambda: scene.abort(4, sample.replay)),
        refusal(scene.lake.history),
    ]

    scene.assert_unharmed(before, may_go=paths_of(sample.replay))
    return refused


def names(scene: Scene, kind: str) -> list[str]:
    """Manifests or manifest lists of the newest snapshot, by their path in the table."""
    body = json.loads(scene.bytes_of(NEWEST))
    lists = [f"manifest/{body[key]}" for key in ("baseManifestList", "deltaManifestList")]
    if kind == "lists":
        return lists
    files = sorted(path.name for path in (scene.table / "manifest").iterdir())
    return [f"manifest/{name}" for name in files if not name.startswith("manifest-list-")]


# ---------------------------------------------------------------- snapshots


@fuzz(60)
@given(data=st.data())
def test_a_snapshot_with_other_fields_harms_nothing(sample: Sample, data: st.DataObject) -> None:
    with sample.scene() as scene:
        name = data.draw(st.sampled_from([NEWEST, "snapshot/snapshot-1"]))
        scene.edit(name, data.draw(broken_json(json.loads(scene.bytes_of(name)))))

        everything_is_tried(scene, sample)


@fuzz(40)
@given(data=st.data())
def test_a_snapshot_whose_bytes_were_damaged_harms_nothing(sample: Sample, data: st.DataObject) -> None:
    with sample.scene() as scene:
        scene.edit(NEWEST, data.draw(broken_bytes(scene.bytes_of(NEWEST))))

        everything_is_tried(scene, sample)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("baseManifestList", "../../neighbour/manifest/x"),
        ("deltaManifestList", "/etc/passwd"),
        ("commitIdentifier", "1"),
        ("commitIdentifier", 1e300),
        ("commitUser", ["test"]),
        ("timeMillis", None),
        ("properties", ["pwc.ledger"]),
        ("properties", {"pwc.ledger": 7}),
        ("indexManifest", "../x"),
        ("id", "2"),
        ("id", 1),
    ],
)
def test_a_snapshot_with_a_field_of_another_kind_is_named(sample: Sample, field: str, value: object) -> None:
    """An id of another snapshot once made the search for the newest one go round for ever."""
    with sample.scene() as scene:
        scene.edit(NEWEST, json.dumps({**json.loads(scene.bytes_of(NEWEST)), field: value}).encode())

        refused = scene.commit(2, sample.fresh)

        assert isinstance(refused, CorruptTableError)
        assert NEWEST in str(refused)


# ---------------------------------------------------------------- the ledger


@fuzz(60)
@given(data=st.data())
def test_a_ledger_with_other_fields_harms_nothing(sample: Sample, data: st.DataObject) -> None:
    with sample.scene() as scene:
        body = json.loads(scene.bytes_of(NEWEST))
        ledger = data.draw(broken_json(json.loads(body["properties"]["pwc.ledger"])))
        body["properties"]["pwc.ledger"] = ledger.decode("utf-8", "replace")
        scene.edit(NEWEST, json.dumps(body).encode())

        everything_is_tried(scene, sample)


@fuzz(200)
@given(data=st.data())
@example(data=None)
def test_a_ledger_is_read_as_it_was_written_or_refused(data: st.DataObject | None) -> None:
    entry = LedgerEntry(7, "query", "commit", 3, 1_700_000_000_000)
    ledger = Ledger({"test": entry, "snö": LedgerEntry(0, None, None, 1, 0)}, complete=False)
    text = encode_ledger(ledger)
    if data is None:
        assert decode_ledger(text, source="here") == ledger
        return
    broken = data.draw(broken_json(json.loads(text))).decode("utf-8", "replace")

    read: list[Ledger] = []
    refused = refusal(lambda: read.append(decode_ledger(broken, source="here")))

    assert refused is not None or all(decode_ledger(encode_ledger(found), source="here") == found for found in read)
    assert refused is None or (isinstance(refused, CorruptTableError) and "here" in str(refused))


@pytest.mark.parametrize(
    "text",
    [
        '{"version":1,"complete":"false","users":{}}',
        '{"version":true,"complete":true,"users":{}}',
        '{"version":1,"complete":true,"users":{},"users":{}}',
        '{"version":1,"complete":true,"users":{"test":["1",null,"c",1,1]}}',
        '{"version":1,"complete":true,"users":{"test":[1.9,null,"c",1,1]}}',
        '{"version":1,"complete":true,"users":{"test":[1e999,null,"c",1,1]}}',
        '{"version":1,"complete":true,"users":{"test":[1,["q"],"c",1,1]}}',
        '{"version":1,"complete":true,"users":' + "[" * 20_000 + "]" * 20_000 + "}",
    ],
    ids=["no truth", "true for 1", "twice", "text", "half", "no end", "a list for a query", "too deep"],
)
def test_a_ledger_that_is_nearly_right_is_refused(text: str) -> None:
    """``"false"`` once counted as complete, and 1.9 as batch 1."""
    with pytest.raises(CorruptTableError, match="ledger in here"):
        decode_ledger(text, source="here")


def test_a_ledger_that_contradicts_its_snapshot_is_refused_and_no_file_goes(sample: Sample) -> None:
    """It once made a new batch look like one that is in: acknowledged, and its files deleted."""
    with sample.scene() as scene:
        body = json.loads(scene.bytes_of(NEWEST))
        ledger = json.loads(body["properties"]["pwc.ledger"])
        ledger["users"]["test"][0] = 2
        body["properties"]["pwc.ledger"] = json.dumps(ledger)
        scene.edit(NEWEST, json.dumps(body).encode())
        before = scene.files()

        refused = scene.commit(2, sample.fresh)

        assert isinstance(refused, CorruptTableError)
        assert "snapshot-2" in str(refused)
        scene.assert_unharmed(before)


# ---------------------------------------------------------------- schemas, manifests


@fuzz(60)
@given(data=st.data())
def test_a_broken_schema_harms_nothing(sample: Sample, data: st.DataObject) -> None:
    with sample.scene() as scene:
        raw = scene.bytes_of("schema/schema-0")
        scene.edit("schema/schema-0", data.draw(broken_json(json.loads(raw)) | broken_bytes(raw)))

        everything_is_tried(scene, sample)
        refusal(scene.lake.write)


@fuzz(60)
@given(data=st.data())
def test_a_broken_manifest_or_list_harms_nothing(sample: Sample, data: st.DataObject) -> None:
    with sample.scene() as scene:
        name = data.draw(st.sampled_from(names(scene, data.draw(st.sampled_from(["lists", "manifests"])))))
        scene.edit(name, data.draw(broken_bytes(scene.bytes_of(name))))

        everything_is_tried(scene, sample)


@pytest.mark.parametrize("kind", ["lists", "manifests"])
def test_a_manifest_that_is_gone_fails_an_overwrite_by_name(sample: Sample, kind: str) -> None:
    """A missing manifest once went up as a plain FileNotFoundError."""
    with sample.scene() as scene:
        [*_, name] = names(scene, kind)
        (scene.table / name).unlink()
        before = scene.files()

        refused = scene.commit(2, sample.fresh, overwrite=True)

        assert isinstance(refused, CorruptTableError)
        assert name in str(refused)
        scene.assert_unharmed(before)


# ---------------------------------------------------------------- hints, claims, names of files


@fuzz(60)
@given(hint=st.binary(max_size=40) | st.integers(0, 10**25).map(lambda number: str(number).encode()))
@example(hint=b"1")
@example(hint=b"3")
@example(hint=b"9" * 5000)
@example(hint="٢".encode())
def test_whatever_the_hint_says_the_next_batch_lands_on_the_newest(sample: Sample, hint: bytes) -> None:
    with sample.scene() as scene:
        scene.edit("snapshot/LATEST", hint)
        before = scene.files()

        assert scene.commit(2, sample.fresh) is None

        assert scene.lake.batch_ids() == [0, 1, 2]
        scene.assert_unharmed(before)


def file_names(prefix: str) -> st.SearchStrategy[str]:
    usable = any_text.filter(lambda name: is_file_name(prefix + name))
    return usable.map(lambda name: prefix + name)


def is_file_name(name: str) -> bool:
    try:
        return 0 < len(name.encode()) < 250 and not set(name) & {"/", "\0"} and name not in (".", "..")
    except UnicodeEncodeError:
        return False


@fuzz(60)
@given(
    name=file_names("snapshot-") | file_names("") | st.integers(0, 10**20).map(lambda number: f"snapshot-{number}"),
    is_file=st.booleans(),
    hinted=st.booleans(),
)
@example(name="snapshot-3", is_file=False, hinted=True)
@example(name="snapshot-7", is_file=True, hinted=False)
@example(name="snapshot-03", is_file=True, hinted=False)
def test_a_stray_name_among_the_snapshots_is_passed_over(
    sample: Sample, name: str, is_file: bool, hinted: bool
) -> None:
    """One that spells a number otherwise than Paimon does once hid all snapshots from a writer without a hint."""
    with sample.scene() as scene:
        stray = scene.table / "snapshot" / name
        if stray.exists():
            return
        stray.touch() if is_file else stray.mkdir()
        if not hinted:
            (scene.table / "snapshot/LATEST").unlink()
        before = scene.files()

        refused = scene.commit(2, sample.fresh)

        if name == "snapshot-3" or (NEWER.fullmatch(name) and not hinted):
            # It is the newest one, and cannot be read.
            assert isinstance(refused, PwcError)
            assert name in str(refused)
        else:
            assert refused is None
            assert scene.lake.ids() == [1, 2, 3, 4, 5, 6]
        scene.assert_unharmed(before)


@fuzz(60)
@given(claims=st.lists(file_names("") | file_names("1.") | file_names("7..x") | st.just("1..x.y"), max_size=4))
def test_no_name_of_a_claim_is_believed_for_more_than_it_says(sample: Sample, claims: list[str]) -> None:
    with sample.scene() as scene:
        body = json.loads(scene.bytes_of(NEWEST))
        del body["properties"]
        body["commitUser"] = "flink"
        scene.edit(NEWEST, json.dumps(body).encode())
        (scene.table / "snapshot/snapshot-1").unlink()
        [directory] = (scene.table / "pwc/claims").glob("*/*")
        for name in claims:
            (directory / name).touch()
        before = scene.files()
        # A whole number, no query, any commit id: only such a claim is one of this writer.
        claim = re.compile(r"(0|[1-9][0-9]{0,18})\.\.[^.]*", re.DOTALL)
        own = [int(found.group(1)) for name in os.listdir(directory) if (found := claim.fullmatch(name))]

        refused = scene.commit(2, sample.fresh)

        # Batch 2 is new to a writer that tried older ones only. Without a claim, nobody can tell.
        assert (refused is None) == (bool(own) and max(own) < 2), os.listdir(directory)
        scene.assert_unharmed(before)
