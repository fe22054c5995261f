"""What changed in placement between two cells: deterministic, so no statistics.

Compared by the model's own nodes: a node that another provider executes, a fusion that is gone or new, copies between
host and device that were added.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol


class Executed(Protocol):
    """An executed node of a trace: the contract's Operator and the document's OperatorTime alike."""

    @property
    def node(self) -> str: ...
    @property
    def covers(self) -> Iterable[str]: ...
    @property
    def op_type(self) -> str: ...
    @property
    def provider(self) -> str: ...


Kind = Literal["moved", "fusion_gone", "fusion_new", "copies"]


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """One difference. `is_worse`: more copies, a fusion gone, or a node that fell back to the CPU."""

    kind: Kind
    nodes: tuple[str, ...]
    before: str
    after: str
    is_worse: bool

    def sentence(self) -> str:
        """The difference for people."""
        named = ", ".join(self.nodes[:3]) + (f" and {len(self.nodes) - 3} more" if len(self.nodes) > 3 else "")
        if self.kind == "copies":
            return f"{self.after} copies between host and device an inference, {self.before} before."
        if self.kind == "moved":
            return f"{named} moved from {self.before} to {self.after}."
        verb = "no longer runs fused as" if self.kind == "fusion_gone" else "now runs fused as"
        return f"{named} {verb} {self.before if self.kind == 'fusion_gone' else self.after}."


CPU = "CPUExecutionProvider"


def placement_changes(
    old: Iterable[Executed], new: Iterable[Executed], *, copies: tuple[int, int] = (0, 0)
) -> list[PlacementChange]:
    """Differences from `old` to `new`; `copies` are those of old and new. Nodes that change alike are one entry."""
    before, after = _by_own_node(old), _by_own_node(new)
    groups: dict[tuple[Kind, str, str], list[str]] = {}
    for node in before.keys() & after.keys():
        for key in _differences(before[node], after[node]):
            groups.setdefault(key, []).append(node)
    changes = [
        PlacementChange(kind=kind, nodes=tuple(sorted(nodes)), before=a, after=b, is_worse=_is_worse(kind, after=b))
        for (kind, a, b), nodes in sorted(groups.items())
    ]
    if copies[0] != copies[1]:
        changes.append(PlacementChange("copies", (), str(copies[0]), str(copies[1]), is_worse=copies[1] > copies[0]))
    return changes


def _by_own_node(executed: Iterable[Executed]) -> dict[str, Executed]:
    return {own: operator for operator in executed for own in (operator.node, *operator.covers)}


def _differences(old: Executed, new: Executed) -> list[tuple[Kind, str, str]]:
    found: list[tuple[Kind, str, str]] = []
    if old.provider != new.provider:
        found.append(("moved", old.provider, new.provider))
    was_fused, is_fused = bool(tuple(old.covers)), bool(tuple(new.covers))
    if was_fused and not is_fused:
        found.append(("fusion_gone", old.op_type, new.op_type))
    if is_fused and not was_fused:
        found.append(("fusion_new", old.op_type, new.op_type))
    return found


def _is_worse(kind: Kind, *, after: str) -> bool:
    return kind == "fusion_gone" or (kind == "moved" and after == CPU)
