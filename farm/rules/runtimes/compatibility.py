"""Finds which of the known releases load a model.

A row is measured if a node gave the model to that very release. Otherwise it is derived from the table of operator sets
and IR versions. A measured row takes precedence over a derived one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from farm.contract.reasons import Reason
from farm.rules.runtimes import opsets, releases
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.order import release_order


@dataclass(frozen=True, slots=True)
class Stamps:
    """The operator sets and the IR version of a model, which decide the releases that load it."""

    imports: Mapping[str, int]
    ir_version: int
    custom_domains: tuple[str, ...] = ()
    # domains of `imports` that no node uses
    unused: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: ModelFacts) -> "Stamps":
        return cls(model.opsets, model.ir_version, model.custom_domains, model.unused_opsets)

    def tidy(self) -> "Stamps":
        """Return the stamps of a tidied variant: without unused operator sets, and with an IR version no newer than
        the default operator set needs. Where all operator sets are unused, they stay."""
        imports = {domain: version for domain, version in self.imports.items() if domain not in self.unused}
        natural = opsets.ir_of_opset(imports.get("", 0))
        return Stamps(imports or self.imports, min(self.ir_version, natural), self.custom_domains)


@dataclass(frozen=True, slots=True)
class Row:
    """Whether one release loads the model. One with `is_untried` does not count as loading it; a release newer than the
    table that nobody tried does where the newest one in the table loads it."""

    version: str
    # why it does not load; None where it does
    reason: Reason | None
    # whether a runner of this release was given the model
    is_measured: bool = False
    # whether a variant with tidied stamps would load
    tidied: bool = False
    # how many nodes a trace counted; None where there is none
    executed_nodes: int | None = None
    # whether the newest traced release ran another number of nodes, because it fused others
    differs: bool = False
    # whether nobody tried this release, and the newest one that was tried refuses the model: then nobody knows
    is_untried: bool = False

    @property
    def loads(self) -> bool:
        return self.reason is None and not self.is_untried

    def sentence(self) -> str:
        """Say in the table whether the release loads the model, or why it does not."""
        if self.is_untried:
            return "not known: no machine has tried what it loads"
        if self.reason is None:
            return f"loads, but with different fusions: {self.executed_nodes} nodes run" if self.differs else "loads"
        way_out = " A variant converted to another opset loads." if self.tidied else ""
        return f"{self.reason.text}{way_out}"

    @property
    def basis(self) -> str:
        """What the row rests on: `measured`, `derived` from the table or what was observed, or `untried`."""
        if self.is_untried:
            return "untried"
        return "measured" if self.is_measured else "derived"


def compatibility_rows(
    stamps: Stamps,
    *,
    more: Iterable[str] = (),
    executed: Mapping[str, int] | None = None,
    measured: Mapping[str, Reason | None] | None = None,
    observed: opsets.ObservedLoads = opsets.NOTHING,
) -> list[Row]:
    """Return a row for every known release, every one in `more` and every measured one, the oldest first.

    `measured` maps releases that were given the model to the reason why they refused it, or to None where it loaded.
    `executed` maps releases to the number of nodes that a trace counted. `observed` is what releases newer than the
    table were seen to load.
    """
    nodes, reasons = executed or {}, measured or {}
    versions = sorted({*releases.ONNXRUNTIME, *more, *reasons}, key=release_order)
    newest_nodes = next((nodes[version] for version in reversed(versions) if version in nodes), None)
    rows = []
    for version in versions:
        reason = reasons[version] if version in reasons else _find_refusal(stamps, version, observed)
        rows.append(
            Row(
                version=version,
                reason=reason,
                is_measured=version in reasons,
                is_untried=version not in reasons and _is_untried(stamps, version, observed),
                tidied=reason is not None and _find_refusal(stamps.tidy(), version, observed) is None,
                executed_nodes=nodes.get(version),
                differs=version in nodes and nodes[version] != newest_nodes,
            )
        )
    return rows


def find_oldest_loading(rows: Sequence[Row]) -> str | None:
    return next((row.version for row in rows if row.loads), None)


def verdict_sentence(rows: Sequence[Row]) -> str:
    """Say in one sentence from which release on the model loads, on which newer ones not or not known to, and how that
    is known; or that no release loads it. The rows have to stand oldest first, as `compatibility_rows` returns them."""
    oldest = find_oldest_loading(rows)
    if oldest is None:
        return "No known release of ONNX Runtime loads this model as it is."
    start = [row.version for row in rows].index(oldest)
    failing = [row.version for row in rows[start:] if not row.loads]
    exceptions = f", but not on {', '.join(failing)}" if failing else ""
    measured = sum(row.is_measured for row in rows)
    basis = "derived from its opsets and IR version, not measured"
    if measured:
        basis = f"{measured} of {len(rows)} releases were measured"
    return f"Loads on ONNX Runtime {oldest} and newer{exceptions} ({basis})."


def table_as_plain(rows: Sequence[Row]) -> dict[str, object]:
    """Return the table as plain values, for programs."""
    return {
        "sentence": verdict_sentence(rows),
        "lowest": find_oldest_loading(rows),
        "rows": [
            {
                "version": row.version,
                "loads": row.loads,
                "basis": row.basis,
                "code": row.reason.code.value if row.reason is not None else None,
                "text": row.sentence(),
                "loads_as_variant": row.tidied,
                "executed_nodes": row.executed_nodes,
                "fusions_differ": row.differs,
            }
            for row in rows
        ],
    }


def group_by_answer(rows: Sequence[Row]) -> list[tuple[str, str, Row]]:
    """Join neighbouring releases with the same answer: for each range, in the order of the rows, the first version, the
    last, and the row of the last."""
    ranges: list[tuple[str, str, Row]] = []
    for row in rows:
        first = row.version
        if ranges and _make_key(ranges[-1][2]) == _make_key(row):
            first = ranges.pop()[0]
        ranges.append((first, row.version, row))
    return ranges


def _find_refusal(stamps: Stamps, version: str, observed: opsets.ObservedLoads) -> Reason | None:
    return opsets.refusal(stamps.imports, stamps.ir_version, stamps.custom_domains, version, observed)


def _is_untried(stamps: Stamps, version: str, observed: opsets.ObservedLoads) -> bool:
    """Whether nobody tried the release, and the newest release in the table refuses the model."""
    limits = opsets.limits_of(version, observed)
    newest = "{}.{}".format(*opsets.NEWEST)
    return limits is not None and limits.is_assumed and _find_refusal(stamps, newest, opsets.NOTHING) is not None


def _make_key(row: Row) -> Collection[object]:
    # a reason's sentence names the release itself, so its code and limits speak for a range
    limits = opsets.limits_of(row.version)
    reason = row.reason and (row.reason.code, row.reason.text if row.is_measured else limits)
    return (reason, row.basis, row.tidied, row.differs and row.executed_nodes)
