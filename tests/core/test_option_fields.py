"""Declarations: a field is an option, with its key, parser, default, text form and the names it had before."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, is_dataclass

import pytest

from paimon_sink.core import option_values as values
from paimon_sink.core.option_docs import describe_options
from paimon_sink.core.option_fields import Option, OptionGroup, option, option_family
from paimon_sink.core.option_reading import Declared, Given, _log_renamed, all_together
from paimon_sink.core.options import DECLARED, Options


class Bells(OptionGroup):
    """A throw-away group: all there is to an option is a field in it."""

    pause_ms: int = option(
        "bell.pause",
        parse=values.duration_ms(at_least="0s", at_most="1h"),
        default="1s",
        doc="How long it is silent.",
        example="5m",
        aliases=("bellPause", "pause"),
    )
    sound: str | None = option("sound", parse=values.plain_text, doc="What it says.", example="ding")
    code: str | None = option("code", parse=values.plain_text, doc="Who may ring.", example="…", secret=True)
    tower: str = option(
        "tower", parse=values.word, doc="Where it hangs.", example="north", required="which tower it is"
    )
    extra: Mapping[str, str] = option_family(
        "extra.", doc="Anything else.", example="extra.x=y", aliases=("more.",), reserved="own."
    )


@pytest.fixture(autouse=True)
def nothing_logged_before() -> None:
    _log_renamed.cache_clear()


def given(**texts: str) -> Given:
    written = {key.replace("__", "."): value for key, value in texts.items()}
    return Given({"tower": "north", **written}, Declared([Bells]), unknown=lambda key: f"{key} is unknown.")


def bells(**texts: str) -> Bells:
    asked = given(**texts)
    read = asked.read(Bells)
    assert [*asked.unknown, *asked.problems] == []
    return read


def problems(**texts: str) -> list[str]:
    asked = given(**texts)
    asked.read(Bells)
    return asked.problems


def test_what_is_given_is_read_and_the_rest_has_its_default() -> None:
    assert bells() == Bells(pause_ms=1_000, sound=None, code=None, tower="north", extra={})
    assert bells(BELL__pause="2s", sound="dong", extra__Colour="red") == Bells(
        pause_ms=2_000, sound="dong", tower="north", extra={"Colour": "red"}
    )


def test_a_group_is_a_frozen_value_that_crosses_processes() -> None:
    bell = bells(extra__x="y")

    assert is_dataclass(bell)
    assert pickle.loads(pickle.dumps(bell)) == bell
    with pytest.raises(FrozenInstanceError):
        bell.sound = "dong"  # type: ignore[misc]


def test_its_text_form_hides_secrets_however_it_was_made() -> None:
    for bell in (bells(code="hush", extra__token="hush"), Bells(code="hush", tower="t", extra={"token": "hush"})):
        assert "hush" not in f"{bell} {bell!r}"
        assert "code=(hidden)" in repr(bell)
    assert "hush" not in repr(Bells(sound="s3://key:hush@bell/", tower="t"))
    assert repr(bells(sound="dong")).startswith("Bells(pause_ms=1000, sound='dong', code=None, tower='north'")


@pytest.mark.parametrize("before", ["bellPause", "BELLPAUSE", "pause"])
def test_an_old_name_is_taken_with_a_word_in_the_log(before: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert bells(**{before: "2s"}).pause_ms == 2_000

    assert f"The option {before} is called bell.pause now" in caplog.text


def test_an_old_prefix_is_taken_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert bells(more__x="y").extra == {"x": "y"}

    assert "The option more. is called extra. now" in caplog.text


def test_an_old_name_is_logged_once_a_process(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            bells(pause="2s")

    assert len(caplog.records) == 1


def test_an_old_name_beside_the_new_one_is_the_same_option_twice() -> None:
    assert bells(pause="2s", bell__pause="2s").pause_ms == 2_000
    assert problems(pause="2s", bell__pause="3s") == [
        "'bell.pause' and 'pause' are the same option with different values; keep one."
    ]


def test_an_old_name_is_named_anew_where_its_value_is_wrong() -> None:
    [problem] = problems(pause="2h")

    assert problem == "bell.pause must be from 0s to 1h, not '2h'."


def test_what_has_to_be_given_is_missed_with_what_it_says() -> None:
    asked = Given({}, Declared([Bells]), unknown=str)

    assert asked.read(Bells).tower == "north"
    assert asked.problems == ["tower is missing; it says which tower it is."]


def test_every_problem_is_told_and_the_others_are_read_all_the_same() -> None:
    asked = given(bell__pause="soon", sound=" ", rope="long", extra__="x", extra__own__x="y")

    assert asked.read(Bells).pause_ms == 1_000
    assert asked.unknown == ["rope is unknown."]
    told = str(all_together(asked.problems, whose="The bells"))
    assert told.splitlines()[0] == "The bells have 4 problems:"
    for sentence in (
        "extra. needs a name after the dot, as in extra.x=y.",
        "extra.own.* is kept for paimon-sink's own properties",
        "bell.pause must be a duration",
        "sound is empty; give it a value such as ding, or leave it out.",
    ):
        assert sentence in told
    assert asked.refused == {"bell.pause", "sound"}


def test_asking_whether_an_option_was_given_that_nobody_declared_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="zound is not declared"):
        given().has("zound")


# ---------------------------------------------------------------- the options of the sink


def test_no_two_options_have_one_name() -> None:
    keys = [declaration.key.lower() for declaration in DECLARED]
    aliases = [alias.lower() for declaration in DECLARED for alias in declaration.aliases]

    assert len({*keys, *aliases}) == len(keys) + len(aliases)


def test_the_groups_of_the_options_are_those_that_are_declared_and_each_is_on_the_page() -> None:
    # Beside the groups there is only what is parsed by them once more, for single tables.
    groups = [each.name for each in fields(Options) if each.name != "per_table"]
    assert tuple(type(getattr(Options(), name)) for name in groups) == DECLARED.groups
    assert sorted(option.key for option in describe_options()) == sorted(declaration.key for declaration in DECLARED)


@pytest.mark.parametrize("declaration", DECLARED.options.values(), ids=lambda declaration: declaration.key)
def test_examples_and_defaults_are_values_that_the_option_takes(declaration: Option) -> None:
    declaration.parse(declaration.example)
    if declaration.default is not None:
        declaration.parse(declaration.default)


def test_every_switch_is_an_option() -> None:
    switches = {declaration.switch for declaration in DECLARED.options.values()} - {None}

    assert switches == {"expire.olderThan", "compact.minFiles", "quarantine", "routeColumn", "regional"}
    assert {str(switch).lower() for switch in switches} <= set(DECLARED.options)
