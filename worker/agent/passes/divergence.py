"""The first divergent node of one cell: a search chooses what to look at, this machine's runtimes are looked at.

The difference shows on the node alone, and what to look at next depends on what it showed; so the search runs here, and
whatever started the agent handed it in (`farm.rules.quality.looks`).
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farm.contract import divergence as doc
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import OutputParity
from farm.rules.cells.commands import diverge_command
from farm.rules.quality.looks import CandidateError, Divergence, Look, Refer, Search, Sides
from farm.rules.quality.parity import FP32, Preset, judge
from worker.agent.passes.launches import garbled
from worker.agent.passes.looks import Looker, LookFailedError

INPUTS, REFERENCE = "inputs.npz", "reference.npz"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A model (`folder`, `main`), its `inputs`, and the `variant` folder that the candidate runs where it is another.

    `search`: how it is answered. `against`: the side whose outputs are the reference; without one it is the CPU without
    optimisations, which `reference` names. `out`: where the part that shows the difference is written.
    """

    folder: Path
    main: str
    inputs: Path
    candidate: Looker
    search: Search
    reference: str
    out: Path
    work_dir: Path
    against: Looker | None = None
    variant: Path | None = None
    preset: Preset = FP32
    # time.monotonic() at which the search is given up
    ends_at: float = float("inf")


def diverge(question: Question) -> doc.DivergenceDocument:
    """Where candidate and reference part. Raises ReasonedError: the search's, or that a side could not be asked."""
    try:
        return _answered(question)
    except CandidateError as problem:
        raise LookFailedError(_reason_of(problem)) from problem


def _answered(asked: Question) -> doc.DivergenceDocument:
    found = asked.search(
        asked.folder,
        asked.main,
        inputs=asked.inputs,
        work_dir=asked.work_dir,
        sides=Sides(
            compare=lambda look: _compared(asked.candidate, look),
            refer=_refer(asked.against) if asked.against is not None else None,
            preset=asked.preset,
            check=lambda: _stop_if_late(asked),
        ),
        variant_dir=asked.variant,
    )
    side = side_of(asked.candidate)
    known = {
        "schema": doc.SCHEMA,
        "model": asked.main,
        "candidate": side,
        "reference": asked.reference,
        "atol": asked.candidate.tolerance.atol,
        "rtol": asked.candidate.tolerance.rtol,
    }
    if found is None:
        text = f"{side} agrees with {asked.reference} on every output of {asked.main}: nothing to look for."
        return doc.DivergenceDocument(**known, sentence=text)
    part = _kept(asked, found)
    return doc.DivergenceDocument(
        **known,
        sentence=_sentence(found, part),
        output=_as_look(found.parity),
        found=doc.FirstDivergence(
            tensor=found.tensor,
            node=found.node.name or found.tensor,
            op_type=found.node.op_type,
            look=_as_look(found.tensor_parity),
            part=part,
        ),
        seen=tuple(doc.Seen(tensor=tensor, agrees=agrees) for tensor, agrees in found.looks),
    )


def side_of(looker: Looker) -> doc.Side:
    """A side in words."""
    cell = looker.arm.order.cell
    return doc.Side(runtime=str(cell.runtime), provider=cell.provider, optimization=cell.session.optimization)


def _compared(looker: Looker, look: Look) -> list[doc.TensorLook]:
    with _as_candidate():
        return looker.compare(look.folder / look.main, inputs=look.inputs, reference=look.reference)


def _refer(looker: Looker) -> Refer:
    def refer(look: Look) -> None:
        with _as_candidate():
            looker.keep(look.folder / look.main, inputs=look.inputs, out=look.reference)

    return refer


def _stop_if_late(asked: Question) -> None:
    if time.monotonic() > asked.ends_at:
        text = f"Looking between the nodes of {asked.main} took too long: ask with a smaller batch or shapes."
        raise LookFailedError(Reason(code=ReasonCode.TIMEOUT, text=text))


@contextmanager
def _as_candidate() -> Iterator[None]:
    """A side that cannot run a part is no reason to stop; one that was cancelled is."""
    try:
        yield
    except LookFailedError as problem:
        if problem.reason.code == ReasonCode.CANCELLED:
            raise
        raise CandidateError(problem.reason.text) from problem


def _reason_of(problem: CandidateError) -> Reason:
    cause = problem.__cause__
    return cause.reason if isinstance(cause, LookFailedError) else garbled(str(problem))


def _kept(asked: Question, found: Divergence) -> doc.Part:
    """The part written to `out`, and run once more from there: only what that run shows is said."""
    # the folder may hold the looks' other files; external data stands beside the model
    names = [path.name for path in sorted(found.folder.iterdir()) if path.name.startswith(asked.main)]
    for name in names:
        shutil.copyfile(found.folder / name, asked.out / name)
    inputs = Path(shutil.copyfile(found.inputs, asked.out / INPUTS))
    reference = Path(shutil.copyfile(found.reference, asked.out / REFERENCE))
    shown = None
    if asked.variant is None:
        again = asked.candidate.compare(asked.out / asked.main, inputs=inputs, reference=reference)
        beyond = [look for look in again if judge((look,), asked.preset).verdict == "fail"]
        shown = beyond[0] if beyond else None
    return doc.Part(
        nodes=found.part,
        main=asked.main,
        shows_it=shown is not None,
        look=shown,
        files=(*names, INPUTS, REFERENCE),
        command=_command(asked) if shown is not None else "",
    )


def _sentence(found: Divergence, part: doc.Part) -> str:
    if found.part_parity is not None and not part.shows_it:
        return f"{found.sentence()} Run again, that part did not show it: the difference comes and goes."
    return found.sentence()


def _command(asked: Question) -> str:
    """The command line that shows it again from the written files."""
    against = asked.against.arm.order.cell.runtime if asked.against is not None else None
    return diverge_command(asked.candidate.arm.order.cell, asked.main, against=against, has_inputs=True)


def _as_look(parity: OutputParity) -> doc.TensorLook:
    return parity if isinstance(parity, doc.TensorLook) else doc.TensorLook(**parity.model_dump())
