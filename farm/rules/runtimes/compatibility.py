"""Which releases load a model, for each known one: what a deployment's health check needs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from farm.contract.reasons import Reason
from farm.rules.runtimes import opsets, releases


@dataclass(frozen=True, slots=True)
class Stamps:
    """What of a model decides where it loads. `unused`: domains of `imports` that no node uses."""

    imports: Mapping[str, int]
    ir_version: int
    custom_domains: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def tidied(self) -> "Stamps":
        """The stamps after a variant's tidying: unused operator sets left out, the IR version as low as they need."""
        kept = {domain: version for domain, version in self.imports.items() if domain not in self.unused}
        natural = opsets.natural_ir(kept.get("", 0))
        return Stamps(kept or self.imports, min(self.ir_version, natural), self.custom_domains)


@dataclass(frozen=True, slots=True)
class Row:
    """One release. `reason` is None when it loads; `tidied` when only a variant with tidied stamps does.

    `executed_nodes`: what a trace counted on this release, None where none was taken; `differs`: another count than on
    the newest release traced, so that its fusions are others.
    """

    version: str
    reason: Reason | None
    tidied: bool = False
    executed_nodes: int | None = None
    differs: bool = False

    def sentence(self) -> str:
        """What stands in the table."""
        if self.reason is None:
            return f"loads, but its fusions differ: {self.executed_nodes} nodes run" if self.differs else "loads"
        way = " A variant with an opset of its own loads, its stamps put in order." if self.tidied else ""
        return f"{self.reason.text}{way}"


def table(stamps: Stamps, *, more: Iterable[str] = (), executed: Mapping[str, int] | None = None) -> list[Row]:
    """A row for every known release and `more` (learnt from nodes), oldest first."""
    counted = executed or {}
    versions = sorted({*releases.ONNXRUNTIME, *more}, key=releases.numbers)
    newest = next((counted[version] for version in reversed(versions) if version in counted), None)
    rows = []
    for version in versions:
        reason = _refusal(stamps, version)
        rows.append(
            Row(
                version=version,
                reason=reason,
                tidied=reason is not None and _refusal(stamps.tidied(), version) is None,
                executed_nodes=counted.get(version),
                differs=version in counted and counted[version] != newest,
            )
        )
    return rows


def lowest(rows: Sequence[Row]) -> str | None:
    """The oldest release that loads the model as it is; None when none does."""
    return next((row.version for row in rows if row.reason is None), None)


def in_ranges(rows: Sequence[Row]) -> list[tuple[str, str, Row]]:
    """Neighbouring releases of which the same is to be said: first, last, and one row that speaks for them."""
    ranges: list[tuple[str, str, Row]] = []
    for row in rows:
        same = ranges and _says(ranges[-1][2]) == _says(row)
        ranges[-1:] = [(ranges[-1][0], row.version, row)] if same else [*ranges[-1:], (row.version, row.version, row)]
    return ranges


def _refusal(stamps: Stamps, version: str) -> Reason | None:
    return opsets.refusal(stamps.imports, stamps.ir_version, stamps.custom_domains, version)


def _says(row: Row) -> Collection[object]:
    # a reason's sentence names the release itself, so its code and limits speak for a range
    limits = opsets.limits_of(row.version)
    return (row.reason and row.reason.code, row.reason and limits, row.tidied, row.differs and row.executed_nodes)
