"""One run of thousands of cells: started and concluded by the services, its blocks ended with made-up numbers."""

import json
import random
from typing import Any

from django.utils import timezone

from dashboard.reading.cell import list_open_cells
from farm.accounts.models import User
from farm.contract.base import digest_json
from farm.contract.cells import CellSpec
from farm.contract.reasons import CellStatus
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.planning.blocks import TWIN
from farm.runs.models import Arm, Attempt, Block, Comparison, Report, Run
from farm.runs.selectors.compared_versions import collect_model_facts
from farm.runs.services import conclude_runs
from farm.runs.services.endings import finish_run_if_over
from farm.runs.states import AttemptState, BlockState
from tests.bench.seeded.runs import Copier, Template
from tests.bench.seeded.writing import Writer, fast
from tests.integration.dashboard import rows

RUNTIMES = ["1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.1"]
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
# 5 runtimes × 2 precisions × 5 numbers of threads
CELLS_A_PAIR = 50


def quick_node(node: Node) -> rows.MadeUpNode:
    """A made-up node whose inferences are so short that its reports are believed within the second."""

    class Quick(rows.MadeUpNode):
        def _p50_ms(self, spec: CellSpec) -> float:
            return super()._p50_ms(spec) / 200

    return Quick(node)


def matrix_of(cells: int) -> dict[str, Any]:
    """A matrix of about so many cells, at most 5,000."""
    pairs = max(1, cells // CELLS_A_PAIR)
    batches = BATCHES[: min(10, pairs)]
    shapes = [{"sequence": 32 * (1 + place)} for place in range(max(1, pairs // len(batches)))]
    axes = {"runtime": RUNTIMES, "precision": ["fp32", "int8-dynamic"], "threads": [1, 2, 4, 8, 16]}
    return {"budget": "quick", "matrix": {**axes, "batch": batches, "shapes": shapes}}


def start(version: Version, by: User, cells: int) -> Run:
    """The run as it is before anybody measures it."""
    return rows.begin_run(version, by, matrix=matrix_of(cells))


def end(run: Run, node: Node, template: Template, writer: Writer, dice: random.Random) -> Run:
    """Ends every block of a started run, and the run."""
    copier = Copier(writer, dice)
    with fast():
        for block in run.blocks.all():
            _end_block(block, run, node, template, writer, copier)
        writer.flush()
        now = timezone.now()
        arms = Arm.objects.filter(block__run=run)
        arms.update(status=CellStatus.DONE)
        run.cells.update(status=CellStatus.DONE)
        run.blocks.update(state=BlockState.DONE, rounds=8, attempt=1, node=node, leased_at=now, ended_at=now)
    finish_run_if_over(run)
    run.refresh_from_db()
    while not Run.objects.get(pk=run.pk).is_concluded:
        conclude_runs()
    run.refresh_from_db()
    return run


def _end_block(block: Block, run: Run, node: Node, template: Template, writer: Writer, copier: Copier) -> None:
    token = digest_json([block.pk, "large"])
    ended = {"state": AttemptState.DONE, "ended_at": timezone.now()}
    attempt = writer.add(Attempt(block=block, number=1, node=node, token_digest=token, **ended))
    facts = template.facts[0]
    writer.add(Report(attempt=attempt, kind="facts", digest=facts.digest, body=facts.body))
    arms = list(block.arms.select_related("cell").order_by("number"))
    planned, _ = list_open_cells([(block.state, block.plan)], known=set(), models=collect_model_facts(run.versions))
    sample = next(iter(template.bodies))
    for arm, one in zip(arms, planned, strict=True):
        body = copier.numbers(template.bodies[sample], 1.0 + 0.1 * (one.batch or 1))
        named = one.model_dump(mode="json", exclude={"samples_ms", "operators"}, exclude_none=True)
        body |= {**{key: value for key, value in named.items() if key in NAMED}, "node": node.name}
        copier.write_numbers(arm, body, template.documents[sample].operators)
    model = next(iter(template.comparisons))
    for pair in block.plan.comparisons:
        said = {"axis": pair.axis, "baseline": arms[pair.baseline].name, "candidate": arms[pair.candidate].name}
        body = copier.judged({**template.compared[model.pk], **said})
        figures = {"axis": body["axis"], "verdict": body["verdict"], "is_tested": body["axis"] != TWIN}
        sides = {"baseline": arms[pair.baseline], "candidate": arms[pair.candidate]}
        text = json.dumps(body, separators=(",", ":"))
        writer.add(Comparison(run=run, block=block, **sides, **figures, body=text, operators=model.operators))


# what tells a cell apart from the sample whose numbers it has
NAMED = (
    "id", "digest", "block", "model", "model_sha256", "opset", "runtime", "provider", "batch", "shapes", "precision",
    "threads", "session", "optimization", "concurrency", "hardware", "twin_of",
)  # fmt: skip
