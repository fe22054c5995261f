"""Finds the first divergent node of a cell: a search chooses tensors, and this machine's runtimes compute them.

The search chooses each tensor by the result of the one before, so it runs on the node. The program that starts the
agent passes it in (`farm.rules.quality.looks`).
"""

import shutil
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from farm.contract import divergence as doc
from farm.contract.blocks import BlockOrder
from farm.contract.divergence import DivergenceDocument, DivergenceOrder, DivergenceReport
from farm.contract.reasons import Reason, ReasonCode, ReasonedError
from farm.contract.reports import OutputParity
from farm.rules.cells.commands import diverge_command
from farm.rules.quality.looks import CandidateError, Divergence, Look, Refer, Search, Sides
from farm.rules.quality.parity import FP32, Preset, judge, preset_between, preset_for
from worker.agent.installation.environment import StorePart
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Launcher, make_garbled_reason
from worker.agent.measurement.tensor_comparison import TensorComparer, TensorComparisonError

INPUTS, REFERENCE = "inputs.npz", "reference.npz"
ANSWER = "divergence.json"
# the time limit of a question, because other blocks wait for the machine
QUESTION_S = 600.0
REPEATED_OTHERWISE = " Run again, that part did not show it: the difference comes and goes."


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question: at which tensor of a model do two sides, the candidate and the reference, first differ?"""

    # the model's folder, and the name of the .onnx in it
    folder: Path
    main: str
    inputs: Path
    candidate: TensorComparer
    search: Search
    # the name of the side whose outputs are the reference, in words
    reference: str
    # the folder for the part of the model that shows the difference
    out: Path
    work_dir: Path
    # the side whose outputs are the reference; None: the CPU without optimisations
    against: TensorComparer | None = None
    # the folder of the model that the candidate runs, where it is another
    variant: Path | None = None
    preset: Preset = FP32
    # the moment of time.monotonic() at which the search is given up
    ends_at: float = float("inf")


def find_divergence(question: Question) -> doc.DivergenceDocument:
    """Find the first tensor at which the candidate differs, and write the part of the model that shows it to `out`.

    Return a document without `found` where the sides agree on every output; nothing is written then. Raises
    ReasonedError where the search refuses the model, and TensorComparisonError where a side cannot be run or the time
    is over.
    """
    try:
        return _search_and_describe(question)
    except CandidateError as problem:
        cause = problem.__cause__
        reason = cause.reason if isinstance(cause, TensorComparisonError) else make_garbled_reason(str(problem))
        raise TensorComparisonError(reason) from problem


def _search_and_describe(question: Question) -> doc.DivergenceDocument:
    def compare(look: Look) -> list[doc.TensorLook]:
        with _mark_candidate_errors():
            return question.candidate.compare(look.folder / look.main, inputs=look.inputs, reference=look.reference)

    divergence = question.search(
        question.folder,
        question.main,
        inputs=question.inputs,
        work_dir=question.work_dir,
        sides=Sides(
            compare=compare,
            refer=_make_refer(question.against) if question.against is not None else None,
            preset=question.preset,
            check=lambda: _stop_if_late(question),
        ),
        variant_dir=question.variant,
    )
    side = make_side(question.candidate)
    fields = {
        "schema": doc.SCHEMA,
        "model": question.main,
        "candidate": side,
        "reference": question.reference,
        "atol": question.candidate.tolerance.atol,
        "rtol": question.candidate.tolerance.rtol,
    }
    if divergence is None:
        text = f"{side} agrees with {question.reference} on every output of {question.main}: nothing to look for."
        return doc.DivergenceDocument(**fields, sentence=text)
    part = _write_part(question, divergence)
    return doc.DivergenceDocument(
        **fields,
        sentence=divergence.sentence()
        + (REPEATED_OTHERWISE if divergence.part_parity is not None and not part.shows_it else ""),
        output=_make_look(divergence.parity),
        found=doc.FirstDivergence(
            tensor=divergence.tensor,
            node=divergence.node.name or divergence.tensor,
            op_type=divergence.node.op_type,
            look=_make_look(divergence.tensor_parity),
            part=part,
        ),
        seen=tuple(doc.Seen(tensor=tensor, agrees=agrees) for tensor, agrees in divergence.looks),
    )


def make_side(comparer: TensorComparer) -> doc.Side:
    cell = comparer.arm.order.cell
    return doc.Side(runtime=str(cell.runtime), provider=cell.provider, optimization=cell.session.optimization)


def _make_refer(comparer: TensorComparer) -> Refer:
    def refer(look: Look) -> None:
        with _mark_candidate_errors():
            comparer.store_outputs(look.folder / look.main, inputs=look.inputs, out=look.reference)

    return refer


def _stop_if_late(question: Question) -> None:
    if time.monotonic() > question.ends_at:
        text = f"Looking between the nodes of {question.main} took too long: ask with a smaller batch or shapes."
        raise TensorComparisonError(Reason(code=ReasonCode.TIMEOUT, text=text))


@contextmanager
def _mark_candidate_errors() -> Iterator[None]:
    """Turn a TensorComparisonError inside the `with` into CandidateError, after which a search goes on.

    One for a cancelled block is raised as it is.
    """
    try:
        yield
    except TensorComparisonError as problem:
        if problem.reason.code == ReasonCode.CANCELLED:
            raise
        raise CandidateError(problem.reason.text) from problem


def _write_part(question: Question, divergence: Divergence) -> doc.Part:
    """Write the part to `out`, and run it again from there, because only what that run shows is reported."""
    # the folder may have files of other looks; external data is named after the model
    names = [path.name for path in sorted(divergence.folder.iterdir()) if path.name.startswith(question.main)]
    for name in names:
        shutil.copyfile(divergence.folder / name, question.out / name)
    inputs = Path(shutil.copyfile(divergence.inputs, question.out / INPUTS))
    reference = Path(shutil.copyfile(divergence.reference, question.out / REFERENCE))
    shown = None
    if question.variant is None:
        again = question.candidate.compare(question.out / question.main, inputs=inputs, reference=reference)
        beyond = [look for look in again if judge((look,), question.preset).verdict == "fail"]
        shown = beyond[0] if beyond else None
    against = question.against.arm.order.cell.runtime if question.against is not None else None
    command = diverge_command(question.candidate.arm.order.cell, question.main, against=against, has_inputs=True)
    return doc.Part(
        nodes=divergence.part,
        main=question.main,
        shows_it=shown is not None,
        look=shown,
        files=(*names, INPUTS, REFERENCE),
        command=command if shown is not None else "",
    )


def _make_look(parity: OutputParity) -> doc.TensorLook:
    return parity if isinstance(parity, doc.TensorLook) else doc.TensorLook(**parity.model_dump())


@dataclass(frozen=True, kw_only=True)
class BlockQuestions:
    """What answering the questions of a block needs: its prepared and refused arms, a folder, and the search."""

    ready: Sequence[PreparedArm]
    refused: dict[int, Reason]
    launcher: Launcher
    folder: Path
    store: StorePart
    search: Search


def answer_questions(order: BlockOrder, questions: BlockQuestions) -> Iterator[DivergenceReport]:
    """Answer the order's questions in turn, and yield a report for each. A report without an answer has a reason.

    A question is answered when its report is asked for. Where a difference was found, the part of the model is stored
    first, even if that part does not show the difference when it runs again.
    """
    for number, question in enumerate(order.divergences):
        folder = questions.folder / f"divergence-{number}"
        report = DivergenceReport(arm=question.arm, against=question.against)
        try:
            yield report.model_copy(update=_answer_question(question, questions, folder))
        except ReasonedError as problem:
            yield report.model_copy(update={"reason": problem.reason})
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _answer_question(question: DivergenceOrder, questions: BlockQuestions, folder: Path) -> dict[str, object]:
    """Answer one question and return the fields of its report. Raises ReasonedError."""
    ready = {arm.arm: arm for arm in questions.ready}
    arms = [question.arm, *([question.against] if question.against is not None else [])]
    missing = [number for number in arms if number not in ready]
    if missing:
        text = f"Arm {missing[0]} could not be prepared again on this node."
        unavailable = Reason(code=ReasonCode.ARTIFACT_UNAVAILABLE, text=text)
        return {"reason": questions.refused.get(missing[0], unavailable)}
    out = folder / "part"
    out.mkdir(parents=True)
    document = find_divergence(_make_question(question, ready, questions=questions, folder=folder))
    digest = questions.store(question.arm, _pack_part(document, out)) if document.found is not None else None
    return {"document": document, "part_sha256": digest}


def _make_question(
    question: DivergenceOrder, ready: dict[int, PreparedArm], *, questions: BlockQuestions, folder: Path
) -> Question:
    arm = ready[question.arm]
    other = ready[question.against] if question.against is not None else None
    cell = arm.order.cell
    preset = preset_between(other.order.cell, cell) if other is not None else preset_for(cell.recipe.precision)
    work = folder / "looks"
    work.mkdir()
    against = TensorComparer(questions.launcher, other, preset.tolerance) if other is not None else None
    return Question(
        folder=arm.source.parent,
        main=arm.order.source.main,
        inputs=arm.inputs,
        candidate=TensorComparer(questions.launcher, arm, preset.tolerance),
        search=questions.search,
        against=against,
        reference=str(make_side(against)) if against is not None else describe_unoptimised(),
        out=folder / "part",
        work_dir=work,
        variant=arm.model.parent if arm.is_variant else None,
        preset=preset,
        ends_at=time.monotonic() + QUESTION_S,
    )


def describe_unoptimised() -> str:
    """Name the reference that is used without another side: this agent's ONNX Runtime without optimisations.

    Raises PackageNotFoundError where the agent has no ONNX Runtime.
    """
    return f"onnxruntime=={version('onnxruntime')}, CPU, no optimisations"


def _pack_part(document: DivergenceDocument, part: Path) -> Path:
    """Write the answer into the folder of the part, zip the folder, and return the path of the zip."""
    (part / ANSWER).write_text(document.to_json())
    packed = part.with_suffix(".zip")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(part.iterdir()):
            archive.write(path, path.name)
    return packed
