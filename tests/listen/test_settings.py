"""A listener's settings: read by key, and every problem told in one sentence or one list."""

from __future__ import annotations

import pytest

from paimon_sink.core.errors import OptionError
from paimon_sink.listen.loading import ListenerContext
from paimon_sink.listen.settings import Settings


def settings(**given: str) -> Settings:
    return Settings(ListenerContext("bell", {key.replace("__", ".").replace("_", "-"): given[key] for key in given}))


def ask_all(asked: Settings) -> tuple[object, ...]:
    return (
        asked.text("sound", "ding"),
        asked.duration_ms("pause", 1_000, at_most="1h"),
        asked.count("times", None, at_least=1, at_most=9),
        asked.choice("mode", "loud", "soft"),
        asked.flag("at-night", False),
        asked.words("rooms", ("hall",), "hall", "attic", "cellar"),
        dict(asked.group("free.")),
    )


def test_what_is_not_set_has_its_default() -> None:
    asked = settings()
    assert ask_all(asked) == ("ding", 1_000, None, "loud", False, ("hall",), {})
    asked.finish()


def test_what_is_set_is_read() -> None:
    asked = settings(
        sound="dong", pause="5m", times="3", mode="SOFT", at_night="true", rooms="attic, Hall", free__as__you="like"
    )
    assert ask_all(asked) == ("dong", 300_000, 3, "soft", True, ("attic", "hall"), {"as.you": "like"})
    asked.finish()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"pause": "5"}, "listener.bell.pause must be a duration", id="a duration without a unit"),
        pytest.param({"pause": "2h"}, "listener.bell.pause must be from 0ms to 1h, not '2h'", id="too long"),
        pytest.param({"times": "0"}, "listener.bell.times must be a whole number from 1 to 9", id="too few"),
        pytest.param({"mode": "shrill"}, "listener.bell.mode must be loud or soft, not 'shrill'", id="no such word"),
        pytest.param({"at_night": "yes"}, "listener.bell.at-night must be true or false", id="neither true nor false"),
        pytest.param({"rooms": "hall,loft"}, "listener.bell.rooms takes hall, attic, cellar", id="a word of a list"),
        pytest.param({"rooms": "hall,hall"}, "listener.bell.rooms names hall twice", id="a word twice"),
        pytest.param({"sound": " "}, "listener.bell.sound is empty", id="empty"),
        pytest.param({"sund": "x"}, "'sund' is no setting of the listener bell; did you mean sound?", id="misspelt"),
        pytest.param({"zzz": "x"}, "'zzz' is no setting of the listener bell; there are sound, pause", id="unknown"),
    ],
)
def test_a_problem_is_one_sentence(given: dict[str, str], said: str) -> None:
    asked = settings(**given)
    ask_all(asked)
    with pytest.raises(OptionError) as refused:
        asked.finish()
    assert str(refused.value).startswith(said)


def test_all_problems_are_told_together() -> None:
    asked = settings(pause="soon", times="many", sund="x")
    ask_all(asked)
    asked.problem("mode", "does not go with this bell.")
    with pytest.raises(OptionError) as refused:
        asked.finish()
    first, *problems = str(refused.value).splitlines()
    assert first == "The settings of the listener bell have 4 problems:"
    assert [line.split()[1] for line in problems] == [
        "listener.bell.pause",
        "listener.bell.times",
        "listener.bell.mode",
        "'sund'",
    ]


def test_a_secret_is_not_repeated() -> None:
    asked = settings(sound="tok\nen", **{"token=abc": "x"})
    ask_all(asked)
    with pytest.raises(OptionError) as refused:
        asked.finish()
    assert "tok\n" not in str(refused.value)
    assert "abc" not in str(refused.value)
