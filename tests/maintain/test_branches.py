"""Write to a branch, look at it, publish it: main gets all of it or nothing, and knows its batches."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import CommitConflictError, OptionError, UnsupportedTableError
from paimon_sink.maintain.branches import (
    create_branch,
    delete_branch,
    difference,
    list_branches,
    publish_branch,
)
from paimon_sink.maintain.tags import create_tag
from paimon_sink.maintain.verify import verify
from tests.support.engines import other_engine
from tests.support.iceberg_engine import native
from tests.support.lake import Lake, rows
from tests.support.places import Place, places


@pytest.fixture(params=places(format="iceberg"))
def place(request: pytest.FixtureRequest) -> Place:
    where: Place = request.param
    return where


def audited(lake: Lake) -> tuple[Lake, list[int]]:
    """Two batches on main, and a branch from there."""
    lake.append(0, rows(0))
    lake.append(1, rows(1))
    create_branch(lake.open(), "audit")
    return lake.with_options(branch="audit"), lake.snapshot_ids()


@pytest.mark.witness
def test_what_is_written_to_a_branch_is_in_main_once_it_is_published(lake: Lake) -> None:
    branch, ids = audited(lake)
    branch.append(2, rows(2))
    branch.append(3, rows(3))
    assert lake.ids() == [0, 1]

    found = publish_branch(lake.open(), "audit")

    assert (found.parted_at, found.main_moved_on) == (ids[-1], False)
    assert (len(found.branch.snapshots), found.branch.rows, found.branch.files) == (2, 2, 2)
    assert (found.main.snapshots, found.main.rows) == ((), 0)
    assert lake.ids() == other_engine(lake).read_ids() == [0, 1, 2, 3]
    assert lake.batch_ids() == [0, 1, 2, 3]
    assert verify(lake.open(), deep=True).problems == ()


@pytest.mark.witness
def test_main_knows_the_batches_of_a_branch_that_was_published(lake: Lake) -> None:
    branch, _ = audited(lake)
    branch.append(2, rows(2))
    branch.with_options(commitUser="other").append(9, rows(9))

    publish_branch(lake.open(), "audit")
    # Whatever expires before our next commit.
    table = native(lake)
    newest = table.current_snapshot()
    assert newest is not None
    old = [each.snapshot_id for each in table.snapshots() if each.snapshot_id != newest.snapshot_id]
    table.maintenance.expire_snapshots().by_ids(old).commit()

    lake.append(2, rows(2))
    lake.with_options(commitUser="other").append(9, rows(9))
    lake.append(3, rows(3))
    assert lake.ids() == [0, 1, 2, 3, 9]


def test_a_branch_goes_on_after_it_was_published(lake: Lake) -> None:
    branch, _ = audited(lake)
    branch.append(2, rows(2))
    publish_branch(lake.open(), "audit")

    branch.append(3, rows(3))
    publish_branch(lake.open(), "audit")

    assert lake.ids() == [0, 1, 2, 3]


def test_to_publish_what_main_has_is_nothing(lake: Lake) -> None:
    _, ids = audited(lake)

    assert publish_branch(lake.open(), "audit").branch.snapshots == ()
    assert lake.snapshot_ids() == ids


@pytest.mark.witness
@pytest.mark.fault(83)
def test_a_branch_is_not_published_over_what_main_got_since(lake: Lake) -> None:
    branch, ids = audited(lake)
    branch.append(2, rows(2))
    lake.with_options(commitUser="other").append(0, rows(100))

    with pytest.raises(CommitConflictError, match=rf"main moved on to snapshot .* left it at {ids[-1]}"):
        publish_branch(lake.open(), "audit")

    found = difference(lake.open(), "audit")
    assert found.main_moved_on
    assert (found.branch.rows, found.main.rows) == (1, 1)
    assert lake.ids() == [0, 1, 100]


@pytest.mark.fault(83)
def test_nor_over_what_lands_between_the_look_and_the_commit(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    branch, _ = audited(lake)
    branch.append(2, rows(2))
    table = lake.open()
    assert table.branches is not None
    publish = type(table.branches).publish

    def beside(self: object, name: str, *, head: int, onto: int) -> None:
        lake.with_options(commitUser="other").append(0, rows(100))
        publish(self, name, head=head, onto=onto)  # type: ignore[arg-type]

    monkeypatch.setattr(type(table.branches), "publish", beside)
    with pytest.raises(CommitConflictError, match="Nothing was published"):
        publish_branch(table, "audit")

    assert lake.ids() == [0, 1, 100]


def test_a_branch_can_begin_at_an_older_snapshot(lake: Lake) -> None:
    _, ids = audited(lake)

    assert create_branch(lake.open(), "old", snapshot_id=ids[0]) == ids[0]

    assert lake.with_options(branch="old").ids() == [0]
    assert list_branches(lake.open()) == {"main": ids[1], "audit": ids[1], "old": ids[0]}


def test_a_branch_that_is_deleted_leaves_main_as_it_is(lake: Lake) -> None:
    branch, ids = audited(lake)
    branch.append(2, rows(2))

    delete_branch(lake.open(), "audit")

    assert list_branches(lake.open()) == {"main": ids[-1]}
    assert lake.ids() == [0, 1]
    assert verify(lake.open(), deep=True).problems == ()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("main", "there is one with the name .main."),
        ("audit", "there is one with the name 'audit'"),
        ("keep", "is the name of a tag"),
        ("12", "only digits"),
        ("", "is empty"),
    ],
)
def test_names_that_cannot_be_are_refused(lake: Lake, name: str, sentence: str) -> None:
    audited(lake)
    create_tag(lake.open(), "keep")

    with pytest.raises(OptionError, match=sentence):
        create_branch(lake.open(), name)


def test_a_branch_that_is_not_there_is_named_with_the_nearest(lake: Lake) -> None:
    audited(lake)

    for act in (difference, publish_branch, delete_branch):
        with pytest.raises(OptionError, match=r"has no branch .adit.\. Did you mean audit"):
            act(lake.open(), "adit")
    with pytest.raises(OptionError, match=r"the table .* itself"):
        delete_branch(lake.open(), "main")


def test_a_snapshot_that_is_gone_and_an_empty_table_have_no_branches(lake: Lake) -> None:
    lake.write()
    with pytest.raises(OptionError, match="no snapshot yet"):
        create_branch(lake.open(), "audit")
    lake.append(0, rows(0))

    with pytest.raises(OptionError, match="17 is none of its snapshots"):
        create_branch(lake.open(), "audit", snapshot_id=17)


def test_paimon_tables_have_none_and_say_so(local_lake: Lake) -> None:
    local_lake.append(0, rows(0))

    with pytest.raises(UnsupportedTableError, match="Paimon tables have no branches here"):
        list_branches(local_lake.open())
