"""Collects the newest measurement of each cell of a model on each node."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from farm.accounts.selectors import Anyone
from farm.base.grouping import group_by
from farm.contract.document_cells import Accuracy
from farm.contract.document_cells import Cell as CellPart
from farm.contract.reports import Facts
from farm.fleet.models import Node
from farm.fleet.selectors.nodes import name_or_removed
from farm.registry.models import Model
from farm.rules.presenting.hardware import MeasuredSetting
from farm.rules.presenting.lines import is_disturbed
from farm.rules.reporting import accuracies
from farm.rules.runtimes import providers
from farm.runs.models import Arm, CellDocument, Run
from farm.runs.selectors.cells import add_compared_figures
from farm.runs.states import FOLLOW_UPS

# how many of the newest arms are considered, and how many of their documents are read
MAX_ARMS = 20_000
MAX_PLACES = 1_000
# how many earlier measurements are read of each cell, in case that the newest was disturbed
MAX_EARLIER = 2


class _Place(NamedTuple):
    """A measured arm, before its document is read."""

    arm: int
    name: str
    digest: str
    run: int
    version: int
    node: int | None
    at: datetime | None


def measured_across(user: Anyone, model: Model) -> list[MeasuredSetting]:
    """Collect the newest measurement of each cell of each version on each node, MAX_PLACES at most.

    Where other programs disturbed it, one of the MAX_EARLIER before it that they did not disturb takes its place.
    Versions and nodes alternate in the list, each with its newest measurement first. Versions of branches, and runs
    that the farm started to confirm or explain something, are left out; so are A/A twins, cells of other versions than
    the run's, and all but the newest MAX_ARMS arms. The lost accuracy of a cell is that against an
    earlier version, or without one, against the FP32 cell of its version and runtime on any node, since all nodes judge
    the same samples.
    """
    candidates = _find_newest(user, model)
    arms = [place.arm for places in candidates for place in places]
    bodies = dict(CellDocument.objects.filter(arm__in=arms).values_list("arm", "body"))
    parts = {arm: CellPart.model_validate_json(body) for arm, body in bodies.items()}
    measured = [[place for place in places if place.arm in parts] for places in candidates]
    places = [
        next((place for place in known if not is_disturbed(parts[place.arm])), known[0]) for known in measured if known
    ]
    rows = Node.objects.filter(pk__in={place.node for place in places}).only("name", "facts_json", "owner", "host")
    nodes = {node.pk: node for node in rows}
    cells = _compare_accuracies(places, [parts[place.arm] for place in places])
    pairs = zip(places, cells, strict=True)
    return add_compared_figures([_make_measured(place, cell, nodes.get(place.node or 0)) for place, cell in pairs])


def _find_newest(user: Anyone, model: Model) -> list[list[_Place]]:
    """List the newest arms of each cell of each version on each node, at most 1 + MAX_EARLIER of each, newest first."""
    runs = Run.objects.visible_to(user).filter(version__model=model, version__branch="").exclude(reason__in=FOLLOW_UPS)
    arms = Arm.objects.filter(block__run__in=runs, cell__beside=None, twin_of=None, status="done").order_by("-pk")
    rows = arms.values_list(
        "pk", "name", "cell__digest", "block__run", "block__run__version__number", "block__node", "block__ended_at"
    )
    newest: dict[tuple[str, int, int | None], list[_Place]] = defaultdict(list)
    for row in rows[:MAX_ARMS]:
        place = _Place(*row)
        newest[place.digest, place.version, place.node].append(place)
    return _alternate([places[: 1 + MAX_EARLIER] for places in newest.values()])


def _alternate(candidates: Iterable[list[_Place]]) -> list[list[_Place]]:
    """Choose MAX_PLACES at most, alternating between versions and nodes, so that none hides the others."""
    counts: dict[tuple[int, int | None], int] = {}
    ranked = []
    for places in candidates:
        version_and_node = places[0].version, places[0].node
        rank = counts[version_and_node] = counts.get(version_and_node, 0) + 1
        ranked.append((rank, places))
    return [places for _, places in sorted(ranked, key=lambda pair: pair[0])[:MAX_PLACES]]


def _compare_accuracies(places: Sequence[_Place], cells: Sequence[CellPart]) -> list[CellPart]:
    """Give each cell the accuracy that it lost against its FP32 cell, or an earlier version on the same data."""
    compared = accuracies.compare_across_runs(cells)
    versions = group_by(range(len(places)), lambda at: places[at].version)
    fp32_accuracies: dict[int, Accuracy] = {}
    for at, cell in enumerate(compared):
        if cell.precision == "fp32" and cell.accuracy is not None and cell.accuracy.value is not None:
            fp32_accuracies.setdefault(places[at].version, cell.accuracy)
    for version, indices in versions.items():
        earlier = accuracies.drop_lossy(
            fp32_accuracies[number] for number in sorted(fp32_accuracies) if number < version
        )
        changed = accuracies.compare_versions([compared[at] for at in indices], earlier)
        for at, cell in zip(indices, changed, strict=True):
            compared[at] = cell
    return compared


def _make_measured(place: _Place, cell: CellPart, node: Node | None) -> MeasuredSetting:
    return MeasuredSetting(
        run=place.run,
        version=place.version,
        node=name_or_removed(node),
        machine=_name_machine(cell, node.facts if node else None),
        at=place.at,
        cell=cell,
        device=node.device if node else "",
    )


def _name_machine(cell: CellPart, facts: Facts | None) -> str:
    """Name the accelerator that computed the cell, or the processor where its provider has none; empty if unknown."""
    entry = providers.find(cell.provider)
    device = cell.provider_facts.get("device", "")
    if device or facts is None:
        return device
    if entry is not None and providers.needs_devices(entry, cell.provider_options) and facts.gpus:
        return ", ".join(facts.gpus)
    return facts.cpu_model or facts.arch
