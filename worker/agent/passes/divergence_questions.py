"""Questions about arms of a measured block: where the outputs of one part from its reference, or from another arm's."""

import shutil
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from farm.contract.blocks import BlockOrder
from farm.contract.divergence import DivergenceDocument, DivergenceOrder, DivergenceReport
from farm.contract.reasons import Reason, ReasonCode, ReasonedError
from farm.rules.quality.looks import Search
from farm.rules.quality.parity import preset_between, preset_for
from worker.agent.kit.environment import StorePart
from worker.agent.passes import divergence
from worker.agent.passes.arms import PreparedArm
from worker.agent.passes.launches import Launcher
from worker.agent.passes.looks import Looker

ANSWER = "divergence.json"
# for one question, whatever the model does: other blocks wait for the machine
ONE_S = 600.0


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the questions of a block need: its arms made ready or refused, where to work, and who searches."""

    ready: Sequence[PreparedArm]
    refused: dict[int, Reason]
    launcher: Launcher
    folder: Path
    store: StorePart
    search: Search


def answers(order: BlockOrder, asked: Asked) -> Iterator[DivergenceReport]:
    """A report for each question of the order, in its order."""
    for number, question in enumerate(order.divergences):
        folder = asked.folder / f"divergence-{number}"
        try:
            yield _answer(question, asked, folder)
        except ReasonedError as problem:
            yield _report(question, reason=problem.reason)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _answer(question: DivergenceOrder, asked: Asked, folder: Path) -> DivergenceReport:
    ready = {arm.arm: arm for arm in asked.ready}
    wanted = [question.arm, *([question.against] if question.against is not None else [])]
    missing = [number for number in wanted if number not in ready]
    if missing:
        text = f"Arm {missing[0]} could not be prepared again on this node."
        known = Reason(code=ReasonCode.ARTIFACT_UNAVAILABLE, text=text)
        return _report(question, reason=asked.refused.get(missing[0], known))
    out = folder / "part"
    out.mkdir(parents=True)
    document = divergence.diverge(_question(question, ready, asked=asked, folder=folder))
    digest = asked.store(question.arm, _packed(document, out)) if document.found is not None else None
    return _report(question, document=document, part_sha256=digest)


def _question(
    question: DivergenceOrder, ready: dict[int, PreparedArm], *, asked: Asked, folder: Path
) -> divergence.Question:
    arm = ready[question.arm]
    other = ready[question.against] if question.against is not None else None
    cell = arm.order.cell
    preset = preset_between(other.order.cell, cell) if other is not None else preset_for(cell.recipe.precision)
    work = folder / "looks"
    work.mkdir()
    against = Looker(asked.launcher, other, preset.tolerance) if other is not None else None
    return divergence.Question(
        folder=arm.source.parent,
        main=arm.order.source.main,
        inputs=arm.inputs,
        candidate=Looker(asked.launcher, arm, preset.tolerance),
        search=asked.search,
        against=against,
        reference=str(divergence.side_of(against)) if against is not None else unoptimised(),
        out=folder / "part",
        work_dir=work,
        variant=arm.model.parent if arm.is_variant else None,
        preset=preset,
        ends_at=time.monotonic() + ONE_S,
    )


def unoptimised() -> str:
    """The reference that this machine makes, in words."""
    return f"onnxruntime=={version('onnxruntime')}, CPU, no optimisations"


def _packed(document: DivergenceDocument, part: Path) -> Path:
    """The part's files and the answer as one zip, beside the part."""
    (part / ANSWER).write_text(document.to_json())
    packed = part.with_suffix(".zip")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(part.iterdir()):
            archive.write(path, path.name)
    return packed


def _report(
    question: DivergenceOrder,
    *,
    reason: Reason | None = None,
    document: DivergenceDocument | None = None,
    part_sha256: str | None = None,
) -> DivergenceReport:
    return DivergenceReport(
        arm=question.arm, against=question.against, reason=reason, document=document, part_sha256=part_sha256
    )
