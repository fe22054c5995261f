"""`bash deploy/test --long`: what is left out of the default suite stands in its list, and each story can start."""

import shlex
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

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
    story = Story(name, "nothing", 1, (), ("timeit -n 1 -r 1 " + shlex.quote(code),))
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


def test_every_room_is_there_and_every_part_of_the_product_is_proved_by_a_story() -> None:
    rooms = {room for story in STORIES for room in story.rooms}
    assert [room for room in sorted(rooms) if not (PROJECT / room).exists()] == []
    parts = [*(f"farm/{found.name}" for found in (PROJECT / "farm").iterdir() if (found / "__init__.py").exists())]
    parts += ["worker/agent", "worker/runner", "worker/tab", "onnxfarm", "dashboard", "deploy"]
    assert [part for part in parts if not any(room.startswith(part) for room in rooms)] == []


@pytest.mark.parametrize(
    ("path", "picked", "left_out"),
    [
        ("farm/backups/creation.py", {"moving"}, {"chaos"}),
        ("farm/backups_other.py", set(), {"moving"}),
        ("tests/chaos/faults.py", {"chaos", "chaos-postgres"}, {"moving"}),
        ("tests/acceptance/long_arm.py", {"arm"}, {"chaos"}),
        ("tests/integration/test_backups.py", {"moving"}, {"arm"}),
        ("requirements/node-cpu.txt", {story.name for story in STORIES}, set()),
        ("docs/README.md", set(), {story.name for story in STORIES}),
    ],
)
def test_a_change_runs_the_stories_of_the_rooms_that_it_touches(path: str, picked: set[str], left_out: set[str]):
    found = {story.name for story in long.touching([path], STORIES)}
    assert found >= picked
    assert not found & left_out


def test_what_changed_since_a_commit_is_what_git_says_of_it() -> None:
    assert long.changed_since("HEAD") == sorted(long.changed_since("HEAD"))
    with pytest.raises(ValueError, match="no commit 'no-such'"):
        long.changed_since("no-such")


def test_shards_are_all_stories_once_and_take_about_as_long_as_each_other() -> None:
    shards = [long.shard(f"{number}/6", STORIES) for number in range(1, 7)]
    assert sorted(story.name for stories in shards for story in stories) == sorted(story.name for story in STORIES)
    minutes = [sum(map(long.cost, stories)) for stories in shards]
    assert max(minutes) - min(minutes) < 5
    assert sum(minutes) <= 165


@pytest.mark.parametrize("asked", ["0/6", "7/6", "2", "a/b", "/6", "2/", "²/6"])
def test_a_shard_that_is_none_is_refused(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        long.main(["--list", "--shard", asked])
    assert ended.value.code == 2
    assert "write N/M" in capsys.readouterr().err


def test_stories_that_judge_nothing_run_two_at_a_time_and_one_that_does_runs_alone(tmp_path: Path) -> None:
    begins = (
        "import os, pathlib, time; place = pathlib.Path('PLACE'); marks = lambda word: len(list(place.glob(word)));"
    )
    meets = "(place / (str(os.getpid()) + '.begun')).touch(); until = time.monotonic() + 60\n"
    meets += "while marks('*.begun') < 2 and time.monotonic() < until: time.sleep(0.05)\n"
    meets += "seen = marks('*.begun'); (place / (str(os.getpid()) + '.ended')).touch(); os._exit(10 + seen)"
    code = {"a": meets, "b": meets, "alone": "os._exit(10 + marks('*.ended'))"}
    stories = [
        Story(
            name, "nothing", 1, (), (f"timeit -n 1 -r 1 {shlex.quote(begins.replace('PLACE', str(tmp_path)) + text)}",)
        )
        for name, text in code.items()
    ]
    stories = [replace(story, is_alone=story.name == "alone") for story in stories]
    assert {name: ended for name, (ended, _) in long.run(stories).items()} == {"a": 12, "b": 12, "alone": 12}
