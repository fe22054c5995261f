"""With which releases the newest runs measured, and where."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, Max

from farm.accounts.selectors import Anyone
from farm.runs.models import Block, Cell, Run
from farm.runs.states import RunState

# newest finished runs that are looked through
RUNS = 200


@dataclass
class Measured:
    """What the newest runs measured with one release."""

    runs: int
    models: int
    last_at: datetime | None
    nodes: list[str] = field(default_factory=list)


def measured_with(user: Anyone, distribution: str) -> dict[str, Measured]:
    """By version, over the newest finished runs that the user may see."""
    finished = Run.objects.visible_to(user).filter(state=RunState.FINISHED).order_by("-pk")
    newest = list(finished.values_list("pk", flat=True)[:RUNS])
    prefix = f"{distribution}=="
    cells = Cell.objects.filter(run__in=newest, runtime__startswith=prefix).order_by().values("runtime")
    models = Count("run__version__model", distinct=True)
    grouped = cells.annotate(runs=Count("run", distinct=True), models=models, last=Max("run__finished_at"))
    found = {row["runtime"].removeprefix(prefix): Measured(row["runs"], row["models"], row["last"]) for row in grouped}
    for version, nodes in _nodes(newest, prefix).items():
        if version in found:
            found[version].nodes = sorted(nodes)
    return found


def _nodes(runs: list[int], prefix: str) -> dict[str, set[str]]:
    blocks = Block.objects.filter(run__in=runs, node__isnull=False, arms__cell__runtime__startswith=prefix)
    found: dict[str, set[str]] = defaultdict(set)
    for runtime, node in blocks.order_by().values_list("arms__cell__runtime", "node__name").distinct():
        found[str(runtime).removeprefix(prefix)].add(node)
    return found
