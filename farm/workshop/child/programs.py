"""Checks a framework's program beside a model, matches it with the model, and writes it without unneeded parts.

A program is the `.pt2` of torch.export that lies beside the .onnx of a bundle. Runs in the child only.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from farm.contract.cells import PROGRAM_ENDING
from farm.workshop.child import program_archive, program_graph
from farm.workshop.child.program_archive import make_problem
from farm.workshop.child.program_graph import Graph, Tensor
from farm.workshop.child.signature import Port
from farm.workshop.problems import Problem, printable

# how the runner is told which tensor is which
PORTS = "extra/onnxfarm.json"


def describe_program(folder: Path, *, inputs: Sequence[Port], outputs: Sequence[Port]) -> dict[str, object] | None:
    """Describe the program in a folder by the fields of `plans.SourceFacts`; None where there is no program.

    What is wrong with it is a sentence in the field `problem`.
    """
    found = sorted(path for path in folder.iterdir() if path.name.endswith(PROGRAM_ENDING))
    if not found:
        return None
    about: dict[str, object] = {"name": found[0].name, "bytes": found[0].stat().st_size}
    try:
        _refuse_several(found)
        with program_archive.open_archive(found[0]) as archive:
            graph = program_graph.parse_graph(archive.name, archive.read_json(program_archive.GRAPH))
        about |= {"saved_by": graph.saved_by, "operators": graph.operators}
        match_ports(archive.name, graph, inputs=inputs, outputs=outputs)
    except Problem as problem:
        about["problem"] = problem.text
    return about


def write_program(folder: Path, target: Path, *, inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Write the program of a folder to `target` as nodes run it, and say in a sentence what was done.

    Raises Problem bad_program where there is not one program, or it cannot be run or does not fit the model.
    """
    found = sorted(path for path in folder.iterdir() if path.name.endswith(PROGRAM_ENDING))
    if not found:
        raise Problem(
            "bad_program", f"There is no {PROGRAM_ENDING} beside the model: add the one that torch.export.save wrote."
        )
    _refuse_several(found)
    with program_archive.open_archive(found[0]) as archive:
        content = archive.read_json(program_archive.GRAPH)
        graph = program_graph.parse_graph(archive.name, content)
        told = match_ports(archive.name, graph, inputs=inputs, outputs=outputs)
        more = {PORTS: json.dumps(told).encode()}
        program_archive.write_archive(archive, target, graph=program_graph.remove_executable_parts(content), more=more)
    return (
        f"The program of {printable(archive.name)} was taken over without its pickled sample inputs, guards and notes."
    )


def match_ports(name: str, graph: Graph, *, inputs: Sequence[Port], outputs: Sequence[Port]) -> dict[str, object]:
    """Match the program's inputs and outputs with the model's, by name where all names agree, else by place.

    Return what the runner reads in the archive. Raises Problem bad_program where they do not fit.
    """
    taken = _match_side(name, graph.inputs, inputs, side="input")
    given = _match_side(name, graph.outputs, outputs, side="output")
    return {
        "saved_by": graph.saved_by,
        "positional": graph.positional,
        "inputs": [
            {"name": port["name"], "key": tensor.key, "dtype": tensor.dtype, "sizes": list(tensor.sizes)}
            for tensor, port in zip(graph.inputs, taken, strict=True)
        ],
        "outputs": [port["name"] for port in given],
    }


def _refuse_several(found: Sequence[Path]) -> None:
    if len(found) > 1:
        raise Problem(
            "bad_program",
            f"{printable(found[0].name)} and {printable(found[1].name)} are both programs: keep one.",
        )


def _match_side(name: str, tensors: Sequence[Tensor], known: Sequence[Port], *, side: str) -> list[Port]:
    """Find the model's port for each of the program's tensors."""
    by_name = {port["name"]: port for port in known}
    if len(tensors) != len(known):
        have = ", ".join(printable(tensor.name, limit=30) for tensor in tensors[:8]) or "none"
        asked = ", ".join(printable(name, limit=30) for name in list(by_name)[:8]) or "none"
        raise make_problem(name, f"has the {side}s {have} and the model has {asked}: export both from one model")
    is_by_name = {tensor.name for tensor in tensors} == by_name.keys()
    chosen = [by_name[tensor.name] if is_by_name else port for tensor, port in zip(tensors, known, strict=True)]
    for tensor, port in zip(tensors, chosen, strict=True):
        if not _fits(tensor, port):
            theirs = f"{tensor.dtype}[{', '.join('?' if size is None else str(size) for size in tensor.sizes)}]"
            ours = f"{port['dtype']}[{', '.join(map(str, cast(Sequence[object], port['shape'] or ())))}]"
            what = f"has the {side} {printable(tensor.name)} of {theirs} where the model has {printable(port['name'])} "
            raise make_problem(name, f"{what}of {ours}: export both from one model")
    return chosen


def _fits(tensor: Tensor, port: Port) -> bool:
    shape = port["shape"]
    if tensor.dtype != port["dtype"] or (shape is not None and len(shape) != len(tensor.sizes)):
        return False
    return shape is None or all(
        size is None or not isinstance(dim, int) or size == dim for size, dim in zip(tensor.sizes, shape, strict=True)
    )
