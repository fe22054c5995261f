"""Finds the nodes that make outputs differ between runtimes, for `bench --diverge`."""

from pathlib import Path

from rich.console import Console

from farm.contract.document import Document
from farm.contract.document_cells import Cell, EngineParity
from farm.rules.matrices import matrix as matrices
from farm.rules.presenting import parities
from onnxfarm.commands import diverge
from onnxfarm.here.divergence import DivergenceRequest

# searched for at most this many pairs, because each takes about thirty short processes
MAX_PAIRS = 3


def add_divergent_nodes(
    document: Document, *, model: Path, inputs: Path | None, home: Path, console: Console
) -> Document:
    """Return the document with the first divergent node of each pair of runtimes whose outputs differ.

    The nodes are searched for on this machine, and only for those of the first MAX_PAIRS pairs that name a command for
    it; the other pairs stay unchanged. If the search finds no node, its name is empty. Raises Usage and Infrastructure.
    """
    changed_pairs: dict[tuple[str, str], EngineParity] = {}
    for old, new, pair in parities.find_changed_outputs(document)[:MAX_PAIRS]:
        if pair.command:
            divergence = diverge.search_first_divergence(
                _make_request(old, new, model=model, inputs=inputs, seed=document.seed),
                home=home,
                out=None,
                console=console,
            )
            node = divergence.found.node if divergence.found is not None else ""
            changed_pairs[new.id, old.id] = pair.model_copy(update={"node": node, "divergence": divergence.sentence})
    cells = []
    for cell in document.cells:
        engines = [changed_pairs.get((cell.id, pair.cell), pair) for pair in cell.engines]
        cells.append(cell.model_copy(update={"engines": engines}))
    return document.model_copy(update={"cells": cells})


def _make_request(old: Cell, new: Cell, *, model: Path, inputs: Path | None, seed: int) -> DivergenceRequest:
    threads = str(new.threads)
    # the same seed, batch and shapes give the same generated inputs as in the cells
    return DivergenceRequest(
        model=model,
        candidate=matrices.from_options(
            None, runtime=str(new.runtime), provider=new.provider, precision=new.precision, threads=threads
        ),
        against=matrices.from_options(None, runtime=str(old.runtime), threads=threads),
        inputs=inputs,
        batch=None if inputs is not None else new.batch,
        shapes=new.shapes,
        fills={fed.name: fed.fill for fed in new.inputs if fed.fill},
        seed=seed,
    )
