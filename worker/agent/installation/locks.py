"""The lock of the runtimes that nodes install: the sha256 of their wheels, and all packages of their environments.

The lock is locks.json in this folder, which deploy/lock-runtimes writes from requirements/node-*.txt and the package
index. A release that is not in it is installed by its version alone.

locks.json, version 1: `hashes` of each `name==version`; `environments`: every pin that a runtime needs, with markers.
"""

import functools
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from farm.contract.cells import Runtime
from farm.rules.runtimes.allowances import package_names
from worker.agent.installation.requirements import Recipe

VERSION = 1
FILE = Path(__file__).with_name("locks.json")
_PIN = re.compile(r"([a-z0-9._-]+)(?:\[[a-z,]+\])?(==[0-9A-Za-z.+]+)")


@dataclass(frozen=True)
class Requirements:
    """Lines of requirements. `is_whole`: they name every package with its hashes, and nothing else is installed."""

    lines: tuple[str, ...]
    is_whole: bool


def pin_requirements(runtime: Runtime, recipe: Recipe, *, allowed: Collection[str] = ()) -> Requirements:
    """Return the recipe's requirements, with the hashes that are known.

    Where the recipe installs dependencies and the runtime is in the lock, return every pin of its environment.
    `allowed`: packages that the machine's owner allows by name. They may be builds of the owner's, and get no hashes.
    """
    hashes, environments = _read_locks()
    unlocked = package_names(allowed)
    lines = recipe.requirements
    if recipe.with_dependencies and runtime.distribution not in unlocked:
        lines = tuple(environments.get(str(runtime), lines))
    pins = {line: parse_pin(line) for line in lines}
    locked = {line: hashes.get(pin, []) for line, pin in pins.items() if Runtime.of(pin).distribution not in unlocked}
    is_closed = not recipe.with_dependencies or lines is not recipe.requirements
    return Requirements(
        lines=tuple(" ".join([line, *(f"--hash=sha256:{sha}" for sha in locked.get(line, []))]) for line in lines),
        is_whole=is_closed and all(locked.get(line) for line in lines),
    )


def parse_pin(line: str) -> str:
    """Return the `name==version` of a requirement's line, without extras and marker; "" where it pins no version."""
    match = _PIN.match(line)
    return match[1] + match[2] if match is not None else ""


def parse_lock(text: str) -> dict[str, list[str]]:
    """Parse a requirements file with hashes into the hashes of each requirement's line; empty where it has none."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.lstrip().startswith("#")]
    return {line.partition(" --hash")[0].strip(): re.findall(r"sha256:([0-9a-f]{64})", line) for line in lines}


@functools.cache
def _read_locks() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    locks = json.loads(FILE.read_text(encoding="utf-8"))
    return locks["hashes"], locks["environments"]
