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

# the member in which the runner reads which tensor is which input or output
PORTS = "extra/onnxfarm.json"


def describe_program(folder: Path, *, inputs: Sequence[Port], outputs: Sequence[Port]) -> dict[str, object] | None:
    """Describe the program in a folder by the fields of `plans.SourceFacts`; None if there is no program.

    If it cannot be used, the field `problem` says why, and no error is raised.
    """
    programs = sorted(path for path in folder.iterdir() if path.name.endswith(PROGRAM_ENDING))
    if not programs:
        return None
    facts: dict[str, object] = {"name": programs[0].name, "bytes": programs[0].stat().st_size}
    try:
        _refuse_several(programs)
        with program_archive.open_archive(programs[0]) as archive:
            graph = program_graph.parse_graph(archive.name, archive.read_json(program_archive.GRAPH))
        facts |= {"saved_by": graph.saved_by, "operators": graph.operators}
        match_ports(archive.name, graph, inputs=inputs, outputs=outputs)
    except Problem as problem:
        facts["problem"] = problem.text
    return facts


def write_program(folder: Path, target: Path, *, inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Write the program of a folder to `target` as nodes run it, and say in a sentence what was done.

    Raises Problem bad_program if there is not one program, or it cannot be run or does not fit the model.
    """
    programs = sorted(path for path in folder.iterdir() if path.name.endswith(PROGRAM_ENDING))
    if not programs:
        raise Problem(
            "bad_program", f"There is no {PROGRAM_ENDING} beside the model: add the one that torch.export.save wrote."
        )
    _refuse_several(programs)
    with program_archive.open_archive(programs[0]) as archive:
        content = archive.read_json(program_archive.GRAPH)
        graph = program_graph.parse_graph(archive.name, content)
        ports = match_ports(archive.name, graph, inputs=inputs, outputs=outputs)
        program_graph.remove_executable_parts(content)
        more = {PORTS: json.dumps(ports).encode()}
        program_archive.write_archive(archive, target, graph=content, more=more)
    return (
        f"The program of {printable(archive.name)} was taken over without its pickled sample inputs, guards and notes."
    )


def match_ports(name: str, graph: Graph, *, inputs: Sequence[Port], outputs: Sequence[Port]) -> dict[str, object]:
    """Match the program's inputs and outputs with the model's, by name if all names agree, else by position.

    Return what the runner reads in the archive. Raises Problem bad_program if they do not fit.
    """
    input_ports = _match_side(name, graph.inputs, inputs, side="input")
    output_ports = _match_side(name, graph.outputs, outputs, side="output")
    return {
        "saved_by": graph.saved_by,
        "positional": graph.positional,
        "inputs": [
            {"name": port["name"], "key": tensor.key, "dtype": tensor.dtype, "sizes": list(tensor.sizes)}
            for tensor, port in zip(graph.inputs, input_ports, strict=True)
        ],
        "outputs": [port["name"] for port in output_ports],
    }


def _refuse_several(programs: Sequence[Path]) -> None:
    if len(programs) > 1:
        raise Problem(
            "bad_program",
            f"{printable(programs[0].name)} and {printable(programs[1].name)} are both programs: keep one.",
        )


def _match_side(name: str, tensors: Sequence[Tensor], ports: Sequence[Port], *, side: str) -> list[Port]:
    """Find the model's port for each of the program's tensors."""
    by_name = {port["name"]: port for port in ports}
    if len(tensors) != len(ports):
        program_names = ", ".join(printable(tensor.name, limit=30) for tensor in tensors[:8]) or "none"
        model_names = ", ".join(printable(name, limit=30) for name in list(by_name)[:8]) or "none"
        raise make_problem(
            name, f"has the {side}s {program_names} and the model has {model_names}: export both from one model"
        )
    is_by_name = {tensor.name for tensor in tensors} == by_name.keys()
    matched = [by_name[tensor.name] if is_by_name else port for tensor, port in zip(tensors, ports, strict=True)]
    for tensor, port in zip(tensors, matched, strict=True):
        if not _fits(tensor, port):
            theirs = f"{tensor.dtype}[{', '.join('?' if size is None else str(size) for size in tensor.sizes)}]"
            ours = f"{port['dtype']}[{', '.join(map(str, cast(Sequence[object], port['shape'] or ())))}]"
            complaint = (
                f"has the {side} {printable(tensor.name)} of {theirs} where the model has {printable(port['name'])} "
            )
            raise make_problem(name, f"{complaint}of {ours}: export both from one model")
    return matched


def _fits(tensor: Tensor, port: Port) -> bool:
    shape = port["shape"]
    if tensor.dtype != port["dtype"] or (shape is not None and len(shape) != len(tensor.sizes)):
        return False
    return shape is None or all(
        size is None or not isinstance(dim, int) or size == dim for size, dim in zip(tensor.sizes, shape, strict=True)
    )
