"""Reads .onnx graphs in a sandboxed child, because the agent itself never parses a model."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from farm.rules.tracing.graphs import Graph
from farm.sandbox import child
from farm.sandbox.policy import Policy, SandboxError

TIMEOUT_S = 60.0
MAX_REPLY_BYTES = 64 << 20
_OURS = Path(__file__).resolve().parents[2]
_ANSWER = TypeAdapter(dict[str, tuple[Graph | None, ...]])


def read_graphs(paths: Sequence[Path], *, work_dir: Path, memory_bytes: int | None = None) -> list[Graph | None]:
    """Read the graphs of .onnx files, in the same order; None for a file that cannot be read or is too large.

    All are None where the child fails, for instance because it takes longer than TIMEOUT_S.
    """
    policy = Policy(read_only=(_OURS, *paths), read_write=(work_dir,), memory_bytes=memory_bytes)
    try:
        ending = child.run_function(
            "worker.agent.measurement.graph_reader:read_in_child",
            [str(path) for path in paths],
            policy=policy,
            timeout_s=TIMEOUT_S,
            max_reply_bytes=MAX_REPLY_BYTES,
        )
        answer = _ANSWER.validate_json(ending.reply, extra="forbid") if ending.is_done else {}
    except (SandboxError, ValidationError):
        answer = {}
    read = answer.get("graphs", ())
    return list(read) if len(read) == len(paths) else [None] * len(paths)
