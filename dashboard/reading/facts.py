"""The strip of facts below a headline: what was measured, where, when and by whom. `timing_fact` names the calls by
which cells were timed, without those of runtimes that have only one way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from dashboard import axes
from farm.contract.cells import NO_POLICY, SessionSettings
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.reasons import CellStatus
from farm.fleet.states import NodeHealth
from farm.rules.cells.axes import FIELD_AXES
from farm.rules.presenting import parities
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.runtimes import engines, web
from farm.rules.wording import numbers, titles

if TYPE_CHECKING:
    from farm.fleet.models import Node

NO_NODE = "none"
REFUSED = CellStatus.REFUSED.value


@dataclass(frozen=True)
class Fact:
    """A fact of the strip. `copy`: the whole text where `text` is only its beginning; `is_name`: the text is an
    identifier; `at`: a time that is shown in place of the text; `state`: a state that is shown, with its sign, in place
    of the text; `note`: explains the fact's name on hover. A fact with none of these three is not known
    (`is_known`)."""

    name: str
    text: str = ""
    href: str = ""
    copy: str = ""
    is_name: bool = False
    at: datetime | None = None
    state: str = ""
    note: str = ""

    @property
    def is_known(self) -> bool:
        return bool(self.text or self.at or self.state)


def _distinct(cells: Sequence[Cell], name: str, *, most: int = 4) -> str:
    axis = axes.BY_NAME[name]
    return ", ".join(_shorten_list([place[0] for place in axes.places(cells, [axis])], most=most))


def _shorten_list(labels: list[str], *, most: int) -> list[str]:
    return labels if len(labels) <= most else [*labels[: most - 1], f"{len(labels) - most + 1} more"]


def _digests_fact(cells: Sequence[Cell]) -> Fact:
    """Make the fact of the model file's digest, or of several digests with the names of their models. It is called the
    upload's where variants ran, whose own files have other digests."""
    found = {cell.model_sha256: cell.model for cell in cells}
    if len(found) == 1:
        sha256, are_variants = cells[0].model_sha256, any(cell.recipe for cell in cells)
        name = "Upload digest" if are_variants else "Model file digest"
        return Fact(name, sha256[:12], copy=sha256, is_name=True)
    named = [f"{name} {sha256[:12]}".strip() for sha256, name in found.items()]
    return Fact("Model file digests", ", ".join(_shorten_list(named, most=4)), is_name=True)


def provider_fact(cells: Sequence[Cell]) -> Fact:
    """Make the fact that lists the requested providers and, where others ran, those too. A refused cell counts as ran
    on `refused`. At most three different texts are shown; “not measured” where nothing ran."""
    ran = {cell.id: tuple(cell.active_providers) or ((REFUSED,) if cell.status == REFUSED else ()) for cell in cells}
    pairs = dict.fromkeys((_list_requested(cell), ran[cell.id]) for cell in cells if ran[cell.id])
    texts = [
        names if requested == active else f"{names} → {', '.join(map(titles.provider, active))}"
        for requested, active in pairs
        if (names := ", ".join(map(titles.provider, requested)))
    ]
    return Fact("Provider asked → ran", "; ".join(_shorten_list(texts, most=3)) or numbers.NOT_MEASURED)


def timing_fact(cells: Iterable[Cell]) -> Fact:
    return Fact("Timed by", _distinct([cell for cell in cells if engines.engine_of(cell.runtime).has_calls], "call"))


def _list_requested(cell: Cell) -> tuple[str, ...]:
    """List the requested providers, or the policy by which ONNX Runtime chose."""
    if cell.policy != NO_POLICY:
        return (f"policy {cell.policy}",)
    return tuple(cell.requested_providers or [cell.provider])


def list_run_facts(document: Document) -> list[Fact]:
    """List the facts of a whole run without those that have no text; empty for a run without cells. A/A twins do not
    count. Refused cells count only for digest, opset and providers, unless all cells are refused."""
    cells = list_planned_cells(document.cells)
    if not cells:
        return []
    ran = [cell for cell in cells if cell.status.value != "refused"] or cells
    nodes = sorted({cell.node for cell in ran if cell.node})
    facts = [
        _digests_fact(cells),
        Fact("Opset", ", ".join(sorted({str(cell.opset) for cell in cells if cell.opset}))),
        Fact("ONNX Runtime", _distinct(ran, "runtime"), is_name=True),
        provider_fact(cells),
        Fact("Batch", _distinct(ran, "batch").replace("batch ", "")),
        Fact("Precision", _distinct(ran, "precision")),
        Fact("Threads", ", ".join(str(n) for n in sorted({cell.threads for cell in ran}))),
        timing_fact(ran),
        Fact("Node", ", ".join(nodes) or NO_NODE),
        Fact("Budget", f"{document.budget}, seed {document.seed}"),
    ]
    return [fact for fact in facts if fact.text]


def add_nodes(facts: Iterable[Fact], measuring: Iterable[str]) -> list[Fact]:
    """Add the names of the nodes that measure now to the fact `Node` of an open run; other facts stay unchanged."""
    busy = set(measuring) - {""}

    def node(known: str) -> str:
        return ", ".join(sorted({*known.split(", "), *busy} - {NO_NODE}))

    return [replace(fact, text=node(fact.text)) if busy and fact.name == "Node" else fact for fact in facts]


def list_cell_facts(cell: Cell) -> list[Fact]:
    """List the facts of one cell without those that have no text. The workload is listed in full, but of the other
    settings only those that differ from their default."""
    own = [axes.BY_NAME[axis.name] for axis in FIELD_AXES if axis.name not in ("threads", "optimization", "call")]
    asked = axes.BY_NAME["precision"].label(cell)
    executed = f"{asked} asked, {cell.executed_precision} executed" if parities.ran_in_other_precision(cell) else asked
    facts = [
        _digests_fact([cell]),
        Fact("Runtime", str(cell.runtime), is_name=True),
        Fact("Release", "unpinned: this farm knows no digest of it" if web.is_unpinned(cell.runtime) else ""),
        Fact("Opset", str(cell.opset) if cell.opset else "unknown"),
        Fact("Batch", str(cell.batch) if cell.batch is not None else "no batch"),
        Fact("Shapes", axes.BY_NAME["shapes"].short(cell)),
        Fact("Precision", executed),
        Fact("Threads", str(cell.threads)),
        Fact("Optimization", cell.optimization),
        timing_fact([cell]),
        *(Fact(axis.heading, axis.short(cell)) for axis in own if not axis.is_default(cell)),
        Fact("Provider options", axes.BY_NAME["provider_options"].short(cell), is_name=True),
        Fact("Session", describe_session(cell)),
        Fact("Device", ", ".join(f"{name} {value}" for name, value in sorted(cell.provider_facts.items()))),
        Fact("Engine", describe_engine(cell)),
        Fact("Node", cell.node or "none"),
    ]
    return [fact for fact in facts if fact.text]


def describe_engine(cell: Cell) -> str:
    """For a provider that compiles models, say how long it took to build the engine and to load it from the cache, and
    how large the engine is. Empty for other providers."""
    if cell.cached_session_ms is None:
        return ""
    first, again = (numbers.plain(value, unit="ms") for value in (cell.session_ms, cell.cached_session_ms))
    return f"built in {first}, from the cache in {again}, {numbers.size(cell.engine_bytes)}"


def describe_session(cell: Cell) -> str:
    """Describe a cell's session settings: the name of the set, and each setting that differs from its default."""
    usual = SessionSettings().model_dump(mode="json")
    own = [
        f"{key.replace('_', ' ')} {_format_value(value)}"
        for key, value in sorted(cell.session.items())
        if key != "name" and value != usual.get(key, value)
    ]
    name = str(cell.session.get("name") or "default")
    return f"{name}: {', '.join(own)}" if own else name


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ", ".join(f"{key}={entry}" for key, entry in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def list_node_facts(node: "Node") -> list[Fact]:
    """List the known facts of a node: its state, its owner, and its machine as the node last reported it."""
    reported = node.facts
    cores = f"{reported.physical_cores} physical, " if reported.physical_cores else ""
    facts = [
        Fact("State", state=node.state),
        Fact("Health", state="" if node.health == NodeHealth.ACTIVE else node.health),
        Fact("Seen", at=node.seen_at) if node.seen_at else Fact("Seen", "not yet"),
        Fact("Owner", f"{node.owner or 'nobody'}, {node.team}"),
        Fact("Fingerprint", node.fingerprint, is_name=True),
        Fact("Sandbox", node.sandbox),
        Fact("Processor", reported.cpu_model or "unknown"),
        Fact("Cores", f"{cores}{reported.logical_cores or 'unknown'} logical"),
        Fact("Memory", numbers.size(reported.memory_bytes)),
        Fact("Governor", reported.governor or "unknown"),
        Fact("System", f"{reported.os}, {reported.arch}{', emulated' if reported.is_emulated else ''}"),
        Fact("GPUs", ", ".join(reported.gpus)),
    ]
    return [fact for fact in facts if fact.is_known]


def list_self_test_facts(node: "Node") -> list[Fact]:
    """List the results of a node's last self-test with the golden model; empty before the first self-test."""
    test = node.self_test
    if test is None:
        return []
    facts = [
        Fact("Runtime", test.runtime or "", is_name=True),
        Fact("Largest difference", "" if test.max_abs is None else f"{test.max_abs:.2g}"),
        Fact(f"Least median of {test.launches} launches", f"{test.p50_ms:.3g} ms" if test.p50_ms else ""),
        Fact("First result", f"{node.self_test_ms:.3g} ms" if node.self_test_ms else ""),
    ]
    return [fact for fact in facts if fact.is_known]
