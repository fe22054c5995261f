"""Writes the graph of a model without its weights to a file. Runs in the child only."""

import mmap
from pathlib import Path

from farm.rules.tracing.outlines import remove_weights
from farm.workshop.child import payloads
from farm.workshop.problems import Problem, answer_problems, printable


@answer_problems
def write_outline(payload: payloads.Outline) -> dict[str, object]:
    """Write the graph of the payload's model without its weights to `out`, and return its size in bytes.

    Returns a problem with the code empty_file, no_graph or large_graph.
    """
    main, limit = payload["main"], payload["limit_bytes"]
    path = Path(payload["folder"]) / main
    if not path.stat().st_size:
        raise Problem("empty_file", f"{printable(main)} is empty.")
    with path.open("rb") as file:
        # mapped, so that only the pages of the graph are read, and weights never
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        outline = remove_weights(memoryview(mapped))
    except ValueError as problem:
        raise Problem(
            "no_graph", f"{printable(main)} is not a valid ONNX model as far as it can be read: {problem}."
        ) from problem
    if len(outline) > limit:
        text = f"It has {len(outline):,} bytes without its weights, more than the {limit:,} that a page can draw."
        raise Problem("large_graph", text)
    Path(payload["out"]).write_bytes(outline)
    return {"bytes": len(outline)}
