"""The environment in which a node measures a block: its runtimes, artifacts, runner and folders."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from farm.contract.reports import Facts
from farm.rules.quality.looks import Search
from worker.agent.installation.cache import ArtifactCache
from worker.agent.installation.runtimes import RuntimeStore
from worker.agent.machine import facts

# each returns the digest of the stored file, or None if it was not stored
# (arm, trace round, Chrome-trace JSON)
StoreTrace = Callable[[int, int, Path], str | None]
# (arm, zip with the part of a model that shows a difference)
StorePart = Callable[[int, Path], str | None]
# (arm, model with what a provider compiled)
StoreCompiled = Callable[[int, Path], str | None]
Say = Callable[[str], None]


@dataclass(frozen=True)
class JudgeFile:
    """A function in a user's file, which judges in place of a metric.

    `file` is the file's name for the user, and `content` its text. With `lower_is_better` None, the function's
    attribute of that name decides.
    """

    content: bytes
    file: str
    function: str
    lower_is_better: bool | None = None


@dataclass(frozen=True)
class NodeEnvironment:
    """What a node needs to carry out an order."""

    runtimes: RuntimeStore
    cache: ArtifactCache
    # the staged runner, see `stages`
    stage: Path
    # each block makes a folder in it, and removes that folder at its end
    work_dir: Path
    store_trace: StoreTrace = lambda arm, trace_round, path: None
    store_part: StorePart = lambda arm, path: None
    # None: compiled models are not stored
    store_compiled: StoreCompiled | None = None
    read_facts: Callable[[], Facts] = facts.read_facts
    # called with each activity, in words
    say: Say = field(default=lambda text: None)
    # finds the first operator whose outputs differ; None: such questions are refused
    search: Search | None = None
    # the user's own judge, for a bench on their own machine; a farm's orders never have one
    judge: JudgeFile | None = None
