"""A listener's settings: declared as fields, read at once, and every problem told in one sentence or one list."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pytest

from paimon_sink import listeners
from paimon_sink.core.errors import OptionError
from paimon_sink.core.option_fields import WRITES, Section, declarations
from paimon_sink.listen.loading import BUILT_IN, load_by_path
from paimon_sink.listen.settings import settings_table
from paimon_sink.listeners import (
    ListenerContext,
    Settings,
    boolean,
    choice,
    count,
    duration_ms,
    plain_text,
    setting,
    setting_family,
    words,
)


class BellSettings(Settings):
    sound: str = setting("sound", parse=plain_text, default="ding", doc="what it says", example="dong")
    pause_ms: int = setting(
        "pause", parse=duration_ms(at_least="0ms", at_most="1h"), default="1s", doc="between two", example="5m"
    )
    times: int | None = setting(
        "times", parse=count(at_least=1, at_most=9), default_note="for ever", doc="how often | at most", example="3"
    )
    mode: str = setting("mode", parse=choice("loud", "soft"), default="loud", doc="how", example="soft")
    at_night: bool = setting("at-night", parse=boolean, default="false", doc="when", example="true")
    rooms: tuple[str, ...] = setting(
        "rooms", parse=words("hall", "attic", "cellar"), default="hall", doc="where", example="attic"
    )
    code: str | None = setting("code", parse=plain_text, doc="who may ring", example="…", secret=True)
    free: Mapping[str, str] = setting_family("free.", doc="anything", example="free.x=y")

    def problems(self, given: Collection[str]) -> Iterator[tuple[str, str]]:
        if self.mode == "soft" and "times" in given:
            yield "mode", "does not go with this bell."


class DoorSettings(Settings):
    key: str = setting("door", parse=plain_text, required="which door", doc="which", example="front")


def context(given: dict[str, str]) -> ListenerContext:
    return ListenerContext("bell", {key.replace("__", ".").replace("_", "-"): value for key, value in given.items()})


def settings(**given: str) -> BellSettings:
    return BellSettings.of(context(given))


def refusal(**given: str) -> str:
    with pytest.raises(OptionError) as refused:
        settings(**given)
    return str(refused.value)


def test_what_is_not_set_has_its_default() -> None:
    assert settings() == BellSettings(
        sound="ding", pause_ms=1_000, times=None, mode="loud", at_night=False, rooms=("hall",), code=None, free={}
    )


def test_what_is_set_is_read() -> None:
    read = settings(
        sound="dong", pause="5m", times="3", mode="LOUD", at_night="true", rooms="attic, Hall", free__as__you="like"
    )

    assert read == BellSettings(
        sound="dong", pause_ms=300_000, times=3, at_night=True, rooms=("attic", "hall"), free={"as.you": "like"}
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param({"pause": "5"}, "listener.bell.pause must be a duration", id="a duration without a unit"),
        pytest.param({"pause": "2h"}, "listener.bell.pause must be from 0ms to 1h, not '2h'", id="too long"),
        pytest.param({"times": "0"}, "listener.bell.times must be a whole number from 1 to 9", id="too few"),
        pytest.param({"mode": "shrill"}, "listener.bell.mode must be loud or soft, not 'shrill'", id="no such word"),
        pytest.param({"at_night": "yes"}, "listener.bell.at-night must be true or false", id="neither true nor false"),
        pytest.param({"rooms": "hall,loft"}, "listener.bell.rooms takes hall, attic, cellar", id="a word of a list"),
        pytest.param({"rooms": "hall,hall"}, "listener.bell.rooms names hall twice", id="a word twice"),
        pytest.param({"sound": " "}, "listener.bell.sound is empty; give it a value such as dong", id="empty"),
        pytest.param({"sund": "x"}, "'sund' is no setting of the listener bell; did you mean sound?", id="misspelt"),
        pytest.param({"zzz": "x"}, "'zzz' is no setting of the listener bell; there are sound, pause", id="unknown"),
        pytest.param({"mode": "soft", "times": "2"}, "listener.bell.mode does not go with this", id="two together"),
    ],
)
def test_a_problem_is_one_sentence(given: dict[str, str], sentence: str) -> None:
    assert refusal(**given).startswith(sentence)


def test_all_problems_are_told_together() -> None:
    first, *problems = refusal(pause="soon", times="many", mode="soft", sund="x").splitlines()

    assert first == "The settings of the listener bell have 4 problems:"
    assert [line.split()[1] for line in problems] == [
        "listener.bell.pause",
        "listener.bell.times",
        "listener.bell.mode",
        "'sund'",
    ]


def test_one_that_is_required_is_missed() -> None:
    with pytest.raises(OptionError, match=r"^listener\.bell\.door is missing; it says which door\.$"):
        DoorSettings.of(context({}))
    assert DoorSettings.of(context({"door": "back"})).key == "back"


def test_a_secret_is_not_repeated() -> None:
    refused = refusal(sound="tok\nen", **{"token=abc": "x"})

    assert "tok\n" not in refused
    assert "abc" not in refused
    assert "hush" not in repr(settings(code="hush", free__password="hush"))


def test_what_only_an_option_of_the_sink_can_have_is_refused_for_a_setting() -> None:
    for more in ({"purposes": WRITES}, {"switch": "pause"}, {"section": Section.TABLE}, {"instead": "leave it out."}):
        with pytest.raises(TypeError, match="what only an option of the sink can have"):
            type(
                "WrongSettings",
                (Settings,),
                {
                    "__annotations__": {"sound": str},
                    "sound": setting("sound", parse=plain_text, doc="", example="", **more),
                },
            )


def test_the_table_of_the_documentation_comes_from_the_fields() -> None:
    lines = settings_table(BellSettings).splitlines()

    assert lines[:3] == ["| setting | default | meaning |", "|---|---|---|", "| `sound` | `ding` | what it says |"]
    assert "| `times` | for ever | how often \\| at most |" in lines
    assert "| `code` | | who may ring **secret** |" in lines
    assert "| `free.*` | | anything |" in lines
    assert settings_table(DoorSettings).splitlines()[2] == "| `door` | required | which |"


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_settings_of_the_built_in_listeners_take_their_defaults(name: str) -> None:
    group = load_by_path(BUILT_IN[name], what="listener").SETTINGS

    for declaration in declarations(group).values():
        assert declaration.doc
        assert declaration.example
    assert issubclass(group, Settings)


def test_the_front_door_offers_all_that_it_names() -> None:
    assert [name for name in listeners.__all__ if not hasattr(listeners, name)] == []
    assert listeners.Listener is listeners.CommitListener
