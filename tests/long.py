"""`python -m tests.long [--list] [--shard N/M] [--touching BASE] [NAME …]`: runs the stories of tests/stories.py.

Stories that judge what they measure run one after the other, the others two at a time. Exit 1 where one fails. A
command that ends with 2 says that this machine cannot run it, which is told and is no failure; one that ends with 75
ran out of its minutes and goes on where it was.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from tests.stories import STORIES, Story

CANNOT, GO_ON = 2, 75
TOGETHER = 2
ROOT = Path(__file__).resolve().parents[1]
# what every story stands on
SHARED = ("requirements",)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bash deploy/test --long", description=__doc__)
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--shard", metavar="N/M", help="the Nth of M parts that take about as long as each other")
    parser.add_argument("--touching", metavar="BASE", help="those whose rooms changed since this commit")
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args(words)
    by_name = {story.name: story for story in STORIES}
    if unknown := sorted(set(asked.names) - set(by_name)):
        parser.error(f"there is no story named {', '.join(unknown)}; there are {', '.join(by_name)}")
    stories = [by_name[name] for name in asked.names] or list(STORIES)
    try:
        if asked.touching:
            stories = touching(changed_since(asked.touching), stories)
        if asked.shard:
            stories = shard(asked.shard, stories)
    except ValueError as problem:
        parser.error(str(problem))
    if asked.list:
        print(_listed(stories))
        return 0
    endings = run(stories)
    print("\n── long stories")
    for name, (code, seconds) in endings.items():
        print(f"{seconds:6.0f} s  {name}: {_in_words(code)}")
    return int(any(code not in (0, CANNOT) for code, _ in endings.values()))


def changed_since(base: str) -> list[str]:
    """Paths that differ from a commit, also those that are not committed. Raises ValueError: no such commit."""
    git = ["git", "-C", str(ROOT)]
    since = [*git, "diff", "--name-only", "--no-renames", "--end-of-options", base, "--"]
    done = subprocess.run(since, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"git knows no commit {base!r}: name one, such as main or HEAD~3")
    new = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    return sorted({*done.stdout.splitlines(), *new.stdout.splitlines()})


def touching(paths: Iterable[str], stories: Sequence[Story]) -> list[Story]:
    """The stories of which a room, or what it runs, is among these paths; all for what all stand on."""
    changed = list(paths)
    return [story for story in stories if any(_is_within(path, (*SHARED, *_places(story))) for path in changed)]


def _places(story: Story) -> Iterable[str]:
    """Rooms, and the files and modules that its commands name."""
    words = [word for command in story.commands for word in shlex.split(command)]
    yield from story.rooms
    yield from (word for word in words if word.startswith("tests/"))
    for module in (word for word in words if word.startswith("tests.")):
        yield from (module.replace(".", "/"), f"{module.replace('.', '/')}.py")


def _is_within(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def shard(asked: str, stories: Sequence[Story]) -> list[Story]:
    """The Nth of M parts, in the order of the list. Raises ValueError where it is not N/M."""
    number, slash, parts = asked.partition("/")
    if not (slash and number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise ValueError(f"--shard is {asked!r}: write N/M, such as 2/6")
    shards: list[list[Story]] = [[] for _ in range(int(parts))]
    for story in sorted(stories, key=lambda story: -cost(story)):
        min(shards, key=lambda chosen: sum(map(cost, chosen))).append(story)
    chosen = shards[int(number) - 1]
    return [story for story in stories if story in chosen]


def cost(story: Story) -> float:
    """The minutes that a story adds to a run."""
    return story.minutes if story.is_alone else story.minutes / TOGETHER


def run(stories: Sequence[Story]) -> dict[str, tuple[int, float]]:
    """The exit code and seconds of each story: first the ones that run together, then those that are alone."""
    # the longest first, so that none is left alone at the end
    together = sorted((story for story in stories if not story.is_alone), key=lambda story: -story.minutes)
    with ThreadPoolExecutor(TOGETHER) as pool:
        ended = dict(zip((story.name for story in together), pool.map(_run_beside, together), strict=True))
    return ended | {story.name: _run(story, output=None) for story in stories if story.is_alone}


def _listed(stories: Sequence[Story]) -> str:
    width = max((len(story.name) for story in stories), default=3)
    lines = [
        f"{story.name:{width}}  {story.minutes:3} min  {story.proves} [{', '.join(story.rooms)}]" for story in stories
    ]
    return "\n".join([*lines, f"{'all':{width}}  {sum(map(cost, stories)):3.0f} min"])


def _run_beside(story: Story) -> tuple[int, float]:
    """As _run, for one of several: what it says is shown once it has ended."""
    with tempfile.TemporaryFile("w+") as output:
        ending = _run(story, output=output)
        output.seek(0)
        print(f"{output.read()}── {story.name}: {_in_words(ending[0])}", flush=True)
    return ending


def _run(story: Story, *, output: IO[str] | None) -> tuple[int, float]:
    """The exit code of the first command that fails, else 0, and the seconds that it took."""
    print(f"\n── {story.name}: {story.proves} (about {story.minutes} min)", flush=True)
    began, code = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix=f"onnxfarm-{story.name}-", ignore_cleanup_errors=True) as folder:
        for command in story.commands:
            code = _ended(command.format(folder=folder), story, output)
            if code:
                break
    return code, time.monotonic() - began


def _ended(command: str, story: Story, output: IO[str] | None) -> int:
    """Runs a command until it has ended for good."""
    argv, environment = [sys.executable, "-m", *shlex.split(command)], os.environ | story.environment
    while True:
        done = subprocess.run(argv, env=environment, check=False, stdout=output, stderr=output and subprocess.STDOUT)
        if done.returncode != GO_ON:
            return done.returncode
        print(f"{story.name}: ran out of its minutes, goes on", flush=True)


def _in_words(code: int) -> str:
    return {0: "passed", CANNOT: "not run: this machine cannot, see above"}.get(code, f"FAILED (exit {code})")


if __name__ == "__main__":
    sys.exit(main())
