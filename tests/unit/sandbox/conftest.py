"""A confined Python with a work folder, at every level that holds on this machine."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farm.sandbox import child, confinement, interpreters
from farm.sandbox.ending import Ending
from farm.sandbox.policy import Level, Policy

Confined = Callable[..., Ending]
# tried once: no level comes or goes while the tests run
why_not = functools.cache(confinement.find_weakness)


@pytest.fixture(params=["landlock", "bubblewrap"])
def level(request: pytest.FixtureRequest) -> Level:
    chosen: Level = request.param
    reason = why_not(chosen)
    if reason is not None:
        pytest.skip(f"level {chosen} does not hold here: {reason}")
    return chosen


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def confined(level: Level, work: Path) -> Confined:
    """Runs Python lines in a child that may write in `work` only; keyword arguments refine the policy."""

    def run(code: str, *, timeout_s: float = 100, limits: dict[str, Any] | None = None, **options: Any) -> Ending:
        python = os.path.abspath(sys.executable)
        policy = Policy(
            read_only=interpreters.list_interpreter_paths(Path(python)),
            read_write=(work,),
            level=level,
            **(limits or {}),
        )
        return child.run_command([python, "-I", "-S", "-c", code], policy=policy, timeout_s=timeout_s, **options)

    return run
