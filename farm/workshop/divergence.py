"""Finds the first node of a model whose output differs between a candidate and a reference. Imports no onnx.

A candidate is a runtime, a provider, an optimisation level, or a variant that keeps its tensors' names. The workshop
writes models that expose inner tensors, and the caller runs the candidate on them and compares the outputs; this module
decides which tensors to compare next. The reference is the CPU without optimisations, or what the caller's `refer`
makes, such as the outputs of another runtime.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from farm.contract.reasons import ReasonCode
from farm.contract.reports import OutputParity
from farm.rules.quality.divergence import FirstDifference, Graph, GraphNode, inputs_of_part
from farm.rules.quality.looks import CandidateError, Divergence, Look, Sides
from farm.workshop import arrays, confined, replies
from farm.workshop.confined import Answer

_RUN_S = 120.0
# a part around a node grows in at most this many steps
_MAX_STEPS = 12
# it is then made smaller by leaving out one node at a time, this many times at most
_MAX_TRIMS = 24
# limit of the values that a part reads, which a child wrote and this process reads
_MAX_BYTES = 2 << 30


def find_first_divergence(
    bundle_dir: Path, main: str, *, inputs: Path, work_dir: Path, sides: Sides, variant_dir: Path | None = None
) -> Divergence | None:
    """Bisect the model's graph for the first tensor that differs, and cut out the part that shows it.

    Return None if the candidate's outputs agree after all. `bundle_dir` holds the original, from which the reference is
    made. `variant_dir` holds the model that the candidate runs if that is a variant: then only tensors of both are
    compared, and the part is cut from the original. A compared tensor becomes an output, which can change what a
    runtime fuses around it, so the part around the node grows until it shows the difference by itself. Raises
    WorkshopError, CandidateError if the whole model does not run, and whatever the sides raise.
    """
    bundles = _Bundles(bundle_dir, main, variant_dir)
    search = _Search(bundles, inputs=inputs, work_dir=work_dir, sides=sides)
    worst = search.find_first_differing_output()
    if worst is None:
        return None
    difference = search.graph.find_first_difference(worst.name, agrees=search.agrees_at, visible=search.visible)
    return search.cut_smallest_part(difference, parity=worst)


@dataclass(frozen=True)
class _Bundles:
    original: Path
    main: str
    variant: Path | None


class _Search:
    def __init__(self, bundles: _Bundles, *, inputs: Path, work_dir: Path, sides: Sides) -> None:
        self._bundles, self._inputs, self._work_dir, self._sides = bundles, inputs, work_dir, sides
        self._count = 0
        self._differing: dict[str, OutputParity] = {}
        self._listed = self._list_graph(bundles.original)
        self.graph = _make_graph(self._listed)
        # the tensors that both sides compute
        self.visible = _list_made_tensors(self.graph)
        if bundles.variant is not None:
            self.visible &= _list_made_tensors(_make_graph(self._list_graph(bundles.variant)))

    def _list_graph(self, folder: Path) -> replies.Graph:
        return self._order("list_graph", {}, folder=folder, expects=replies.Graph)

    def find_first_differing_output(self) -> OutputParity | None:
        """Compare the whole model's outputs and return the first in order of execution that differs, if any."""
        look = self._expose_on_both_sides([name for name in self._listed.outputs if name in self.visible])
        differing = {output.name: output for output in self._sides.find_failing_outputs(look, are_intermediate=False)}
        self._differing |= differing
        order = [name for node in self.graph.nodes for name in node.outputs if name in differing]
        return differing[order[0]] if order else None

    def agrees_at(self, tensor: str) -> bool:
        """Compare one tensor of both sides; a tensor that cannot be compared counts as agreeing."""
        try:
            differing = self._sides.find_failing_outputs(self._expose_on_both_sides([tensor]))
        except (CandidateError, confined.WorkshopError):
            return True
        self._differing |= {output.name: output for output in differing}
        return not differing

    def cut_smallest_part(self, difference: FirstDifference, *, parity: OutputParity) -> Divergence:
        """Cut out the smallest part around the tensor that shows a difference by itself."""
        cut = self._grow_part(difference.tensor)
        if cut.differing is not None:
            cut = self._trim_part(cut)
        return Divergence(
            tensor=difference.tensor,
            node=difference.node,
            part=tuple(node.name or node.outputs[0] for node in cut.part),
            folder=cut.look.folder,
            main=cut.look.main,
            inputs=cut.look.inputs,
            reference=cut.look.reference,
            parity=parity,
            tensor_parity=self._differing[difference.tensor],
            part_parity=cut.differing,
            looks=difference.compared,
        )

    def _grow_part(self, tensor: str) -> "_Cut":
        """Grow a part step by step until it shows a difference; return the largest one tried if none does."""
        cut: _Cut | None = None
        part: tuple[GraphNode, ...] = ()
        for steps in range(_MAX_STEPS):
            wider = self.graph.nodes_around(tensor, steps)
            is_enough = cut is not None and (cut.differing is not None or self._bundles.variant is not None)
            if is_enough or wider == part:
                break
            part = wider
            cut = self._try_part(part) or cut
        # as a last resort, the whole graph, which reads only the model's inputs
        cut = cut or self._try_part(self.graph.nodes)
        if cut is None:
            text = f"No part of the model around {tensor} runs by itself, so none was cut out."
            raise confined.WorkshopError(ReasonCode.NOT_SUPPORTED, text)
        return cut

    def _trim_part(self, cut: "_Cut") -> "_Cut":
        """Drop nodes that the difference does not need, the outer ones first."""
        indices = {node: self.graph.nodes.index(node) for node in cut.part}
        middle = sum(indices.values()) / len(indices)
        for node in sorted(cut.part, key=lambda outer: -abs(indices[outer] - middle))[:_MAX_TRIMS]:
            fewer = tuple(other for other in cut.part if other != node)
            smaller = self._try_part(fewer) if fewer else None
            if smaller is not None and smaller.differing is not None:
                cut = smaller
        return cut

    def _try_part(self, part: tuple[GraphNode, ...]) -> "_Cut | None":
        """Cut out the part and compare it; None if it reads a sequence or the like, or does not run by itself."""
        try:
            look = self._cut_part(part)
            if look is None:
                return None
            # a variant's part is not run: its tensors are the original's only at the border
            differing = self._sides.find_failing_outputs(look) if self._bundles.variant is None else []
        except (CandidateError, confined.WorkshopError):
            return None
        return _Cut(part, look, differing[0] if differing else None)

    def _expose_on_both_sides(self, tensors: list[str]) -> Look:
        look = self._expose(tensors, of=self._bundles.original)
        if self._bundles.variant is not None:
            look_at_variant = self._expose(tensors, of=self._bundles.variant, with_reference=False)
            look = replace(look, folder=look_at_variant.folder)
        return look

    def _expose(self, tensors: Sequence[str], *, of: Path, with_reference: bool = True) -> Look:
        payload = {"tensors": list(tensors)}
        return self._write_model("expose_tensors", payload, of=of, inputs=self._inputs, with_reference=with_reference)

    def _cut_part(self, part: tuple[GraphNode, ...]) -> Look | None:
        """Write the part as a separate model, whose inputs are the values that the reference has there.

        Return None if a value that the part reads is not a plain tensor.
        """
        names = inputs_of_part(part, self._listed.stored)
        inside = [name for name in names if name in _list_made_tensors(self.graph)]
        values = _read_values(self._inputs)
        if inside:
            values |= _read_values(self._expose(inside, of=self._bundles.original).reference)
        if not set(names) <= values.keys():
            return None
        inputs = arrays.write_npz(self._make_folder() / "inputs.npz", {name: values[name] for name in names})
        places = [self.graph.nodes.index(node) for node in part]
        payload = {"places": places, "tensors": self.graph.outputs_of_part(part)}
        return self._write_model("cut_nodes", payload, of=self._bundles.original, inputs=inputs)

    def _write_model(
        self, function: str, payload: Mapping[str, object], *, of: Path, inputs: Path, with_reference: bool = True
    ) -> Look:
        folder, refer = self._make_folder(), self._sides.refer
        order = {**payload, "inputs": str(inputs), "with_reference": with_reference and refer is None}
        self._order(function, order, folder=of, expects=replies.FileReply, out=folder, reads=[inputs])
        look = Look(folder=folder, main=self._bundles.main, inputs=inputs, reference=folder / "reference.npz")
        if with_reference and refer is not None:
            refer(look)
        return look

    def _make_folder(self) -> Path:
        self._count += 1
        folder = self._work_dir / f"look-{self._count}"
        folder.mkdir()
        return folder

    def _order(
        self,
        function: str,
        payload: Mapping[str, object],
        *,
        folder: Path,
        expects: type[Answer],
        out: Path | None = None,
        reads: Sequence[Path] = (),
    ) -> Answer:
        self._sides.check()
        files = confined.ChildFiles(bundle_dir=folder, main=self._bundles.main, reads=reads, out_dir=out)
        order = {**payload, "out": str(out) if out else ""}
        # a search gives dozens of orders, each of which takes less time than the imports of a fresh interpreter
        return confined.ask_child(
            f"subgraphs:{function}", order, files=files, timeout_s=_RUN_S, expects=expects, keep_alive=True
        )


@dataclass(frozen=True)
class _Cut:
    """A part of the graph as a separate model."""

    part: tuple[GraphNode, ...]
    look: Look
    # the first output that differs; None if none does
    differing: OutputParity | None


def _make_graph(listed: replies.Graph) -> Graph:
    return Graph([GraphNode(node.name, node.op_type, node.inputs, node.outputs) for node in listed.nodes])


def _list_made_tensors(graph: Graph) -> set[str]:
    return {name for node in graph.nodes for name in node.outputs if name}


def _read_values(path: Path, *, limit_bytes: int = _MAX_BYTES) -> arrays.Arrays:
    """Read arrays that a child wrote. Raises WorkshopError if the file is no `.npz` or is too large."""
    try:
        return arrays.read_npz(path, limit_bytes=limit_bytes)
    except arrays.ArraysError as problem:
        text = f"The values at the ends of the part cannot be read: {problem}"
        raise confined.WorkshopError(ReasonCode.GARBLED, text) from problem
