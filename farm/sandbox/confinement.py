"""Finds which level of confinement works on this machine, by trying to break out of each.

`explain_level_failure` remembers for this process what `find_weakness` says: None where the level works.
"""

import functools
import os
import sys
import tempfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from farm.sandbox import interpreters, parent, unconfined
from farm.sandbox.ending import Ending
from farm.sandbox.policy import Level, Policy, SandboxError

PROBE = Path(__file__).with_name("probe.py")
_PROBE_S = 20.0
_BY_PREFERENCE: tuple[Level, ...] = ("landlock", "bubblewrap")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tried: tuple[str, ...]
    worked: tuple[str, ...]


@functools.cache
def find_available_level() -> Level:
    """Return the best level that passes the probe, or "none"; probed once per process, in about 0.1 s."""
    # Landlock first: without a program between us and the child, the kernel reports the child's own times and memory.
    # bubblewrap is for kernels without Landlock
    return next((level for level in _BY_PREFERENCE if explain_level_failure(level) is None), "none")


def require_level() -> Level:
    """Return the best level that works here, or "none" where none does and this process accepts unconfined children.

    Raises NoSandboxError where none works and the process does not accept that.
    """
    level = find_available_level()
    if level == "none":
        unconfined.require_unconfined_accepted(explain_missing_sandbox())
    return level


@functools.cache
def explain_level_failure(level: Level) -> str | None:
    return find_weakness(level) if sys.platform == "linux" else f"it needs Linux, and this is {sys.platform}"


def explain_missing_sandbox() -> str:
    """Say to an operator why no level works on this machine, and what to do about it; only for where none does."""
    reasons = "; ".join(f"{level}: {str(explain_level_failure(level)).rstrip('.')}" for level in _BY_PREFERENCE)
    return (
        f"No sandbox holds on this machine ({reasons}). Use Linux 5.13 or newer with Landlock, or install bubblewrap "
        "and allow user name spaces; both need pyseccomp and libseccomp2."
    )


def find_weakness(level: Level) -> str | None:
    """Run the probe at this level, and say in a sentence why the level does not work.

    None where it works: everything that the probe tried was refused. A probe that cannot be started raises nothing.
    """
    try:
        ending = run_probe(level)
        answer = _Answer.model_validate_json(ending.reply)
    except SandboxError as error:
        return str(error)
    except ValidationError:
        return f"The probe gave no answer. {ending.describe()}"
    if answer.worked:
        return f"The probe was not confined: it could {'; '.join(answer.worked)}."
    return None if answer.tried and ending.is_done else f"The probe did not end well. {ending.describe()}"


def run_probe(level: Level) -> Ending:
    """Run farm/sandbox/probe.py confined at this level. Raises SandboxError where it cannot be started or confined."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        secret, readable, outside, work = (folder / part for part in ("secret", "readable", "outside", "work"))
        secret.write_text("must not be read")
        readable.write_text("must not be changed")
        outside.mkdir()
        work.mkdir()
        python = os.path.abspath(sys.executable)
        read_only = (*interpreters.list_interpreter_paths(Path(python)), PROBE, readable)
        policy = Policy(read_only=read_only, read_write=(work,), level=level)
        argv = [python, "-I", "-S", str(PROBE), str(secret), str(readable), str(outside), str(os.getpid())]
        return parent.run_confined(argv, policy=policy, timeout_s=_PROBE_S)
