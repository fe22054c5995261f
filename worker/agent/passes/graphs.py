"""Reading .onnx graphs, in a sandboxed child: the agent itself never parses a model."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from farm.rules.tracing.graphs import Graph, GraphNode
from farm.sandbox import child
from farm.sandbox.policy import Policy, SandboxError

TIMEOUT_S = 60.0
MAX_REPLY_BYTES = 64 << 20
_OURS = Path(__file__).resolve().parents[2]


class _Node(BaseModel):
    model_config = ConfigDict(extra="forbid")
    label: str
    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    index: int
    path: tuple[str, ...]


class _Graph(BaseModel):
    model_config = ConfigDict(extra="forbid")
    nodes: tuple[_Node, ...]
    given: tuple[str, ...]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    graphs: tuple[_Graph | None, ...]


def read_graphs(paths: Sequence[Path], *, work_dir: Path, memory_bytes: int | None = None) -> list[Graph | None]:
    """The graphs of .onnx files, in the same order; None for one that cannot be read or is too large to map."""
    policy = Policy(read_only=(_OURS, *paths), read_write=(work_dir,), memory_bytes=memory_bytes)
    try:
        ending = child.run_function(
            "worker.agent.passes.graph_reader:read_in_child",
            [str(path) for path in paths],
            policy=policy,
            timeout_s=TIMEOUT_S,
            max_reply_bytes=MAX_REPLY_BYTES,
        )
        answer = _Answer.model_validate_json(ending.reply) if ending.is_done else None
    except (SandboxError, ValidationError):
        answer = None
    if answer is None or len(answer.graphs) != len(paths):
        return [None] * len(paths)
    return [_as_graph(part) if part else None for part in answer.graphs]


def _as_graph(part: _Graph) -> Graph:
    nodes = tuple(GraphNode(**node.model_dump()) for node in part.nodes)
    return Graph(nodes=nodes, given=frozenset(part.given))
