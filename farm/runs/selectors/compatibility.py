"""Finds which releases of ONNX Runtime load a version: by its runs, else by its opsets and IR version."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, Max

from farm.accounts.selectors import Anyone
from farm.contract.cells import Runtime
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.fleet.selectors import runtimes_on_nodes
from farm.registry.models import Version
from farm.registry.selectors import model_facts
from farm.rules.runtimes import compatibility
from farm.rules.runtimes.compatibility import Row, Stamps
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION
from farm.runs.models import Arm, Cell, CellDocument, Run
from farm.runs.states import RunState

CPU = "CPUExecutionProvider"
# reasons for which a release does not load a model
NOT_LOADED = (ReasonCode.MODEL_NOT_LOADED, ReasonCode.OPSET_TOO_NEW, ReasonCode.IR_TOO_NEW, ReasonCode.CUSTOM_DOMAIN)
# how many of the newest finished runs are read
MAX_RUNS = 100


def compatibility_of(version: Version) -> list[Row]:
    """List every known release, the oldest first, with whether it loads the version.

    Releases of the default distribution on nodes that may measure the version are included. Cells of every version with
    the same files count as measured, if they measured it as uploaded, on the CPU provider of that distribution. Raises
    Conflict until inspection has accepted the version.
    """
    # what the file says
    facts = model_facts(version)
    unused = (version.inspection or {}).get("unused_opsets") or ()
    stamps = Stamps(facts.opsets, facts.ir_version, facts.custom_domains, tuple(unused))

    # what nodes and runs have shown
    installed, observed = runtimes_on_nodes(team=version.model.team, uploader=version.uploaded_by)
    releases = [release for runtime in installed if (release := _read_release(runtime))]
    measured, executed = _find_measured_releases(version), _count_executed_nodes(version)
    return compatibility.compatibility_rows(
        stamps, more=releases, measured=measured, executed=executed, observed=observed
    )


def _find_measured_releases(version: Version) -> dict[str, Reason | None]:
    """Map each release with a cell to why it did not load the model; None if a cell of it ran."""
    cells = Cell.objects.filter(run__version__artifact=version.artifact_id, beside=None, arms__isnull=False)
    rows = cells.filter(provider=CPU, precision="fp32", opset="as-is")
    reasons: dict[str, Reason | None] = {}
    for cell in rows.distinct().order_by("pk").only("runtime", "status", "reason_code", "reason_text"):
        release = _read_release(cell.runtime)
        if release and cell.status == CellStatus.DONE:
            reasons[release] = None
        elif release and cell.reason_code in NOT_LOADED:
            reasons.setdefault(release, cell.reason)
    return reasons


def _count_executed_nodes(version: Version) -> dict[str, int]:
    """Count the graph nodes in the trace of the newest cell of each release, with all optimisations.

    Copies between layouts are left out, unless a cell is so old that its trace does not tell them apart.
    """
    rows = CellDocument.objects.filter(
        arm__status=CellStatus.DONE,
        arm__cell__run__version__artifact=version.artifact_id,
        arm__cell__beside=None,
        arm__cell__provider=CPU,
        arm__cell__precision="fp32",
        arm__cell__opset="as-is",
        arm__cell__spec_json__session__optimization="all",
    )
    newest = rows.order_by().values("arm__cell__runtime").annotate(last=Max("pk")).values("last")
    bodies = CellDocument.objects.filter(pk__in=newest).values_list("arm__cell__runtime", "body")
    cells = {release: json.loads(body) for runtime, body in bodies if (release := _read_release(runtime))}
    traced = {release: cell for release, cell in cells.items() if cell.get("providers")}
    counts: dict[str, int] = {}
    tells_copies_apart = all(cell.get("executed") for cell in traced.values())
    for release, cell in traced.items():
        if tells_copies_apart:
            counts[release] = sum(sum(by_operator.values()) for by_operator in cell["executed"].values())
        else:
            counts[release] = sum(share["nodes"] for share in cell["providers"])
    return {release: count for release, count in counts.items() if count}


def _read_release(runtime: str) -> str | None:
    parsed = Runtime.of(runtime)
    return parsed.version if parsed.distribution == DEFAULT_DISTRIBUTION else None


@dataclass
class ReleaseUse:
    """The use of a release in the newest finished runs: how many runs and models, when last, and on which nodes.

    `last_at` is when the newest of these runs finished. The nodes are sorted by name, without deleted ones.
    """

    runs: int
    models: int
    last_at: datetime | None
    nodes: list[str] = field(default_factory=list)


def measurements_by_version(user: Anyone, distribution: str) -> dict[str, ReleaseUse]:
    """Sum up, by version of the distribution, the measurements of the newest finished runs that the user may see.

    At most MAX_RUNS runs are read; versions that measured nothing in them are left out.
    """
    finished = Run.objects.visible_to(user).filter(state=RunState.FINISHED).order_by("-pk")
    newest = list(finished.values_list("pk", flat=True)[:MAX_RUNS])
    prefix = f"{distribution}=="
    cells = Cell.objects.filter(run__in=newest, runtime__startswith=prefix, status=CellStatus.DONE)
    by_runtime = cells.order_by().values("runtime")
    models = Count("run__version__model", distinct=True)
    grouped = by_runtime.annotate(runs=Count("run", distinct=True), models=models, last=Max("run__finished_at"))
    nodes, uses = _list_nodes(newest, prefix), {}
    for row in grouped:
        version = row["runtime"].removeprefix(prefix)
        uses[version] = ReleaseUse(row["runs"], row["models"], row["last"], sorted(nodes.get(version, ())))
    return uses


def _list_nodes(runs: list[int], prefix: str) -> dict[str, set[str]]:
    arms = Arm.objects.filter(block__run__in=runs, cell__runtime__startswith=prefix, status=CellStatus.DONE)
    nodes = arms.filter(block__node__isnull=False).order_by().values_list("cell__runtime", "block__node__name")
    by_version: dict[str, set[str]] = defaultdict(set)
    for runtime, node in nodes.distinct():
        by_version[str(runtime).removeprefix(prefix)].add(node)
    return by_version
