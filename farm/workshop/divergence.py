"""The first divergent node of a model: orders to the workshop between runs of the candidate. Imports no onnx.

What a candidate is does not matter here: a runtime, a provider, an optimisation level, or a variant that keeps its
tensors' names. The caller runs it and compares its outputs with a reference; this module decides what to look at next.
The reference is the CPU without optimisations, or whatever the caller says (`refer`), such as another runtime.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from farm.contract.reasons import ReasonCode
from farm.contract.reports import OutputParity
from farm.rules.quality.divergence import FirstDifference, Graph, GraphNode, inputs_from_outside
from farm.rules.quality.looks import CandidateError, Divergence, Look, Sides
from farm.workshop import arrays, confined, replies
from farm.workshop.confined import R

_RUN_S = 120.0
_MAX_STEPS = 12
# a part is made smaller by leaving one node out at a time; so many looks at most
_MAX_TRIMS = 24
# of the values that a part reads: a child wrote them, and this process, which may be a node's agent, reads them
_MAX_BYTES = 2 << 30


def first_divergence(
    bundle_dir: Path, main: str, *, inputs: Path, work_dir: Path, sides: Sides, variant_dir: Path | None = None
) -> Divergence | None:
    """Bisects the model's graph; None when the candidate's outputs agree after all.

    `bundle_dir` holds the original, which the reference is made from, and `variant_dir` what the candidate runs when
    that is a variant of it: then only tensors that both have are looked at, and the cut is one of the original.
    A tensor that is looked at becomes an output, which can itself change what a runtime fuses around it: so the node
    named is where the difference appears, and the cut around it grows until it shows the difference by itself.
    Raises WorkshopError, CandidateError when the whole model does not run, and whatever else the sides raise.
    """
    bundles = _Bundles(bundle_dir, main, variant_dir)
    search = _Search(bundles, inputs=inputs, work_dir=work_dir, sides=sides)
    worst = search.worst_output()
    if worst is None:
        return None
    found = search.graph.find_first_difference(worst.name, agrees=search.agrees, visible=search.visible)
    return search.cut_out(found, parity=worst)


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
        self.graph, self._outputs, self._stored = self._read(bundles.original)
        self.visible = _made(self.graph)
        if bundles.variant is not None:
            self.visible &= _made(self._read(bundles.variant)[0])

    def _read(self, folder: Path) -> tuple[Graph, list[str], set[str]]:
        facts = self._order("list_graph", {}, folder=folder, as_a=replies.Graph)
        nodes = [GraphNode(node.name, node.op_type, node.inputs, node.outputs) for node in facts.nodes]
        return Graph(nodes), list(facts.outputs), set(facts.stored)

    def worst_output(self) -> OutputParity | None:
        """The output of the whole model that differs, the first in order of execution; None when all agree."""
        look = self._look([name for name in self._outputs if name in self.visible])
        differing = {output.name: output for output in self._sides.find_failing_outputs(look, inside=False)}
        self._differing |= differing
        order = [name for node in self.graph.nodes for name in node.outputs if name in differing]
        return differing[order[0]] if order else None

    def agrees(self, tensor: str) -> bool:
        """One look inside. A tensor that cannot be compared counts as agreeing: it accuses nobody."""
        try:
            differing = self._sides.find_failing_outputs(self._look([tensor]))
        except (CandidateError, confined.WorkshopError):
            return True
        self._differing |= {output.name: output for output in differing}
        return not differing

    def cut_out(self, found: FirstDifference, *, parity: OutputParity) -> Divergence:
        """The smallest part around the tensor that shows a difference by itself."""
        cut = self._grown(found.tensor)
        if cut.seen is not None:
            cut = self._trimmed(cut)
        return Divergence(
            tensor=found.tensor,
            node=found.node,
            part=tuple(node.name or node.outputs[0] for node in cut.part),
            folder=cut.look.folder,
            main=cut.look.main,
            inputs=cut.look.inputs,
            reference=cut.look.reference,
            parity=parity,
            tensor_parity=self._differing[found.tensor],
            part_parity=cut.seen,
            looks=found.seen,
        )

    def _grown(self, tensor: str) -> "_Cut":
        """The first part that shows a difference, growing step by step; the largest tried where none does."""
        cut: _Cut | None = None
        part: tuple[GraphNode, ...] = ()
        for steps in range(_MAX_STEPS):
            wider = self.graph.nodes_around(tensor, steps)
            if wider == part or (cut is not None and (cut.seen is not None or self._bundles.variant is not None)):
                break
            part = wider
            cut = self._tried(part) or cut
        # the whole graph reads only what the model is given
        return cut or self._tried(self.graph.nodes) or self._refuse(tensor)

    def _trimmed(self, cut: "_Cut") -> "_Cut":
        """The part without the nodes that the difference does not need, the outer ones tried first."""
        places = {node: self.graph.nodes.index(node) for node in cut.part}
        middle = sum(places.values()) / len(places)
        for node in sorted(cut.part, key=lambda own: -abs(places[own] - middle))[:_MAX_TRIMS]:
            fewer = tuple(other for other in cut.part if other != node)
            smaller = self._tried(fewer) if fewer else None
            cut = smaller if smaller is not None and smaller.seen is not None else cut
        return cut

    def _tried(self, part: tuple[GraphNode, ...]) -> "_Cut | None":
        """None where the part reads what no array holds, a sequence for example, or does not run by itself."""
        try:
            look = self._cut(part)
            # a variant's part is not run: its tensors are the original's only at the border
            seen = self._sides.find_failing_outputs(look) if look is not None and self._bundles.variant is None else []
        except (CandidateError, confined.WorkshopError):
            return None
        return _Cut(part, look, seen[0] if seen else None) if look is not None else None

    def _look(self, tensors: list[str]) -> Look:
        look = self._expose(tensors, of=self._bundles.original)
        if self._bundles.variant is not None:
            ran = self._expose(tensors, of=self._bundles.variant, with_reference=False)
            look = replace(look, folder=ran.folder)
        return look

    def _expose(self, tensors: Sequence[str], *, of: Path, with_reference: bool = True) -> Look:
        payload = {"tensors": list(tensors)}
        return self._write("expose_tensors", payload, of=of, inputs=self._inputs, with_reference=with_reference)

    def _refuse(self, tensor: str) -> NoReturn:
        text = f"No part of the model around {tensor} runs by itself, so none was cut out."
        raise confined.WorkshopError(ReasonCode.NOT_SUPPORTED, text)

    def _cut(self, part: tuple[GraphNode, ...]) -> Look | None:
        """The part as a model of its own, fed with the reference's values of what it reads."""
        read = inputs_from_outside(part, self._stored)
        inside = [name for name in read if name in _made(self.graph)]
        values = _values(self._inputs)
        if inside:
            values |= _values(self._expose(inside, of=self._bundles.original).reference)
        if not set(read) <= values.keys():
            return None
        inputs = arrays.write_npz(self._folder() / "inputs.npz", {name: values[name] for name in read})
        places = [self.graph.nodes.index(node) for node in part]
        payload = {"places": places, "tensors": self.graph.outputs_leaving(part)}
        return self._write("cut_nodes", payload, of=self._bundles.original, inputs=inputs)

    def _write(
        self, function: str, payload: Mapping[str, object], *, of: Path, inputs: Path, with_reference: bool = True
    ) -> Look:
        folder, refer = self._folder(), self._sides.refer
        order = {**payload, "inputs": str(inputs), "with_reference": with_reference and refer is None}
        self._order(function, order, folder=of, as_a=replies.Done, out=folder, reads=[inputs])
        look = Look(folder=folder, main=self._bundles.main, inputs=inputs, reference=folder / "reference.npz")
        if with_reference and refer is not None:
            refer(look)
        return look

    def _folder(self) -> Path:
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
        as_a: type[R],
        out: Path | None = None,
        reads: Sequence[Path] = (),
    ) -> R:
        self._sides.check()
        place = confined.Place(bundle_dir=folder, main=self._bundles.main, reads=reads, out_dir=out)
        order = {**payload, "out": str(out) if out else ""}
        # dozens of looks, each less work than the imports of a fresh interpreter
        return confined.ask_child(
            f"subgraphs:{function}", order, place=place, timeout_s=_RUN_S, as_a=as_a, is_one_of_many=True
        )


@dataclass(frozen=True)
class _Cut:
    """A part of the graph as a model of its own; `seen`: the output that differs, None when none does."""

    part: tuple[GraphNode, ...]
    look: Look
    seen: OutputParity | None


def _made(graph: Graph) -> set[str]:
    return {name for node in graph.nodes for name in node.outputs if name}


def _values(path: Path, *, limit_bytes: int = _MAX_BYTES) -> arrays.Arrays:
    """Arrays that a child wrote. Raises WorkshopError where they are none, or more than this process may hold."""
    try:
        return arrays.read_npz(path, limit_bytes=limit_bytes)
    except arrays.ArraysError as problem:
        text = f"The values at the ends of the part cannot be read: {problem}"
        raise confined.WorkshopError(ReasonCode.GARBLED, text) from problem
