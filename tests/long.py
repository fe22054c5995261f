"""`python -m tests.long [--list] [NAME …]`: runs the stories of tests/stories.py; exit 1 where one fails.

A command that ends with 2 says that this machine cannot run it, which is told and is no failure; one that ends with 75
ran out of its minutes and goes on where it was.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from tests.stories import STORIES, Story

CANNOT, GO_ON = 2, 75


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bash deploy/test --long", description=__doc__)
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args(words)
    by_name = {story.name: story for story in STORIES}
    if unknown := sorted(set(asked.names) - set(by_name)):
        parser.error(f"there is no story named {', '.join(unknown)}; there are {', '.join(by_name)}")
    stories = [by_name[name] for name in asked.names] or list(STORIES)
    if asked.list:
        print(_listed(stories))
        return 0
    endings = {story.name: _run(story) for story in stories}
    print("\n── long stories")
    for name, (code, seconds) in endings.items():
        print(f"{seconds:6.0f} s  {name}: {_in_words(code)}")
    return int(any(code not in (0, CANNOT) for code, _ in endings.values()))


def _listed(stories: Sequence[Story]) -> str:
    width = max(len(story.name) for story in stories)
    lines = [f"{story.name:{width}}  {story.minutes:3} min  {story.proves}" for story in stories]
    return "\n".join([*lines, f"{'all':{width}}  {sum(story.minutes for story in stories):3} min"])


def _run(story: Story) -> tuple[int, float]:
    """The exit code of the first command that fails, else 0, and the seconds that it took."""
    print(f"\n── {story.name}: {story.proves} (about {story.minutes} min)", flush=True)
    began, code = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix=f"onnxfarm-{story.name}-", ignore_cleanup_errors=True) as folder:
        for command in story.commands:
            code = _ended(command.format(folder=folder), story)
            if code:
                break
    return code, time.monotonic() - began


def _ended(command: str, story: Story) -> int:
    """Runs a command until it has ended for good."""
    argv = [sys.executable, "-m", *shlex.split(command)]
    while (code := subprocess.run(argv, env=os.environ | story.environment, check=False).returncode) == GO_ON:
        print(f"{story.name}: ran out of its minutes, goes on", flush=True)
    return code


def _in_words(code: int) -> str:
    return {0: "passed", CANNOT: "not run: this machine cannot, see above"}.get(code, f"FAILED (exit {code})")


if __name__ == "__main__":
    sys.exit(main())
