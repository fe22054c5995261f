"""`bash deploy/test --long`: what is left out of the default suite stands in its list, and each story can start."""

import shlex
from importlib.util import find_spec

import pytest

from tests import long
from tests.conftest import PROJECT
from tests.stories import STORIES, Story


def test_the_list_names_every_story_with_its_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    assert long.main(["--list"]) == 0
    told = capsys.readouterr().out
    for story in STORIES:
        assert f"{story.name} " in told
        assert f"{story.minutes} min  {story.proves}" in told


def test_a_file_with_long_tests_is_part_of_a_story() -> None:
    named = {word for story in STORIES for command in story.commands for word in shlex.split(command)}
    # not this file, which says the word
    marked = [path for path in PROJECT.glob("tests/**/*.py") if "mark." + "long" in path.read_text()]
    assert [path for path in marked if str(path.relative_to(PROJECT)) not in named] == []


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_what_a_story_runs_is_there(story: Story) -> None:
    for command in story.commands:
        module, *words = shlex.split(command)
        assert find_spec(module), module
        assert [word for word in words if word.startswith("tests/") and not (PROJECT / word).exists()] == []


def test_an_unknown_story_is_refused_with_the_names_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        long.main(["no-such"])
    assert ended.value.code == 2
    assert "node-bodies" in capsys.readouterr().err


def _made_up(monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    """A story of one command, which runs this code."""
    story = Story(name, "nothing", 1, ("timeit -n 1 -r 1 " + shlex.quote(code),))
    monkeypatch.setattr(long, "STORIES", (story,))


@pytest.mark.parametrize(("code", "ended", "word"), [(0, 0, "passed"), (1, 1, "FAILED"), (2, 0, "not run")])
def test_a_story_ends_as_its_command_does(
    code: int, ended: int, word: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _made_up(monkeypatch, "made-up", f"import os; os._exit({code})")
    assert long.main([]) == ended
    assert f"made-up: {word}" in capfd.readouterr().out


def test_a_command_that_ran_out_of_its_minutes_goes_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    mark = f"{tmp_path}/once"
    code = f"import os; known = os.path.exists('{mark}'); open('{mark}', 'w').close(); os._exit(0 if known else 75)"
    _made_up(monkeypatch, "made-up", code)
    assert long.main(["made-up"]) == 0
    assert "ran out of its minutes" in capfd.readouterr().out
