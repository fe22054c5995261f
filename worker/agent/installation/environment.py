"""What a block is measured with: this node's runtimes, artifacts, runner and folders."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from farm.contract.reports import Facts
from farm.rules.quality.looks import Search
from worker.agent.installation.cache import ArtifactCache
from worker.agent.installation.runtimes import RuntimeStore
from worker.agent.machine import facts

# (arm, trace round, Chrome-trace JSON) → digest under which it was stored, None: not stored
StoreTrace = Callable[[int, int, Path], str | None]
# (arm, zip with the part of a model that shows a difference) → digest under which it was stored, None: not stored
StorePart = Callable[[int, Path], str | None]
# (arm, model that holds what a provider compiled) → digest under which it was stored, None: not stored
StoreCompiled = Callable[[int, Path], str | None]
Say = Callable[[str], None]


@dataclass(frozen=True)
class JudgeFile:
    """A function of the user's own file that judges in place of a metric; `lower_is_better` None: the function says."""

    content: bytes
    file: str
    function: str
    lower_is_better: bool | None = None


@dataclass(frozen=True)
class NodeEnvironment:
    """The node's side of an order.

    `stage` is the staged runner (see `stages`). `work_dir` holds one folder a block, removed at its end.
    `say` is told in words what is being done, for logs and progress bars. `search` answers where outputs part; a node
    without one answers no such question.
    """

    runtimes: RuntimeStore
    cache: ArtifactCache
    stage: Path
    work_dir: Path
    store_trace: StoreTrace = lambda arm, trace_round, path: None
    store_part: StorePart = lambda arm, path: None
    # None: nobody wants it, and nothing is compiled for it
    store_compiled: StoreCompiled | None = None
    read_facts: Callable[[], Facts] = facts.read_facts
    say: Say = field(default=lambda text: None)
    search: Search | None = None
    # of a bench on its user's own machine alone: no order of a farm brings one
    judge: JudgeFile | None = None
