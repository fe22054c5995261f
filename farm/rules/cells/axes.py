"""The axes of a cell: what one can be told from another by, how a value of each reads, and what goes without saying.

One entry an axis, in the order in which pages, tables and sentences go through them. Everything that shows, names,
sorts or compares cells reads them here. How a matrix file writes an axis stands in `farm.rules.matrices.axes`. Pure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from packaging.version import Version

from farm.contract.document import Cell
from farm.rules.cells.numbers import counted
from farm.rules.cells.recipes import precision_words
from farm.rules.runtimes import distributions, providers
from farm.rules.runtimes.order import release_order


class _Said:
    """In place of a default: no value of this axis goes without saying."""


SAID: Final = _Said()


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis.

    `name` is its key in a matrix, where a matrix has it, and the first of `fields`, the keys of a document's cell that
    hold it. `value` is what a cell has, `short` its text under `heading`, `label` its text on its own. `order` sorts
    values. `default` goes without saying. `is_setting`: part of what is measured, not of where.
    """

    name: str
    heading: str
    value: Callable[[Cell], Any]
    label: Callable[[Cell], str]
    short: Callable[[Cell], str]
    order: Callable[[Cell], Any]
    default: Any = SAID
    fields: tuple[str, ...] = ()
    is_setting: bool = True

    def is_default(self, cell: Cell) -> bool:
        """Whether the cell's value goes without saying."""
        return bool(self.value(cell) == self.default)


def pairs(entries: Mapping[str, Any]) -> str:
    """Names with their values, as the command line takes them: `height=8 width=8`."""
    return " ".join(f"{name}={value}" for name, value in sorted(entries.items()))


def runtime_name(requirement: str) -> str:
    """A runtime's short name: `onnxruntime==1.31.1` is `1.31.1`, another distribution keeps its own part."""
    distribution, _, version = requirement.partition("==")
    own = distribution.removeprefix(distributions.DEFAULT_DISTRIBUTION).strip("-")
    return f"{own} {version}".strip() if version else requirement


def version_key(requirement: str) -> tuple[bool, str, Version, str]:
    """Sorts requirements by distribution, then by version number: 1.9 before 1.31."""
    distribution, _, version = requirement.partition("==")
    return (distribution != distributions.DEFAULT_DISTRIBUTION, distribution, release_order(version), version)


def session_name(cell: Cell) -> str:
    """The name of a cell's session set; its settings where it has none."""
    return str(cell.session.get("name") or pairs(cell.session) or "default")


def _axis(name: str, heading: str, **parts: Any) -> Axis:
    """An axis whose texts and order follow from its value, but for the `parts` given."""
    value = parts.pop("value", lambda cell: getattr(cell, name))
    short = parts.pop("short", lambda cell: "" if value(cell) is None else str(value(cell)))
    texts = {"label": short, "order": value, "fields": (name,)} | parts
    return Axis(name=name, heading=heading, value=value, short=short, **texts)


AXES: tuple[Axis, ...] = (
    _axis("model", "Model", short=lambda c: c.model or c.model_sha256[:12], fields=("model_sha256",)),
    _axis("hardware", "Hardware", is_setting=False),
    _axis(
        "node",
        "Node",
        label=lambda c: c.node or "no node",
        order=lambda c: c.node or "",
        default=None,
        is_setting=False,
    ),
    _axis("provider", "Provider", short=lambda c: providers.title(c.provider), order=lambda c: c.provider),
    _axis(
        "provider_options",
        "Provider options",
        short=lambda c: pairs(c.provider_options),
        label=lambda c: pairs(c.provider_options) or "default options",
        order=lambda c: sorted(c.provider_options.items()),
        default={},
    ),
    _axis(
        "batch",
        "Batch",
        short=lambda c: "–" if c.batch is None else str(c.batch),
        label=lambda c: "no batch" if c.batch is None else f"batch {c.batch}",
        order=lambda c: c.batch or 0,
        default=None,
    ),
    _axis(
        "shapes",
        "Shapes",
        short=lambda c: pairs(c.shapes),
        label=lambda c: pairs(c.shapes) or "default shapes",
        order=lambda c: sorted(c.shapes.items()),
        default={},
    ),
    _axis(
        "precision",
        "Precision",
        short=lambda c: precision_words(c.precision, c.recipe),
        order=lambda c: ("fp32" not in c.precision, c.precision, c.recipe),
        fields=("precision", "recipe"),
    ),
    _axis(
        "opset",
        "Opset",
        label=lambda c: f"opset {c.opset}" if c.opset else "opset unknown",
        order=lambda c: c.opset or 0,
        default="as-is",
    ),
    _axis("threads", "Threads", label=lambda c: counted(c.threads, "thread")),
    _axis("optimization", "Optimization", label=lambda c: f"optimization {c.optimization}", default="all"),
    _axis("session", "Session", value=session_name, label=lambda c: f"session {session_name(c)}", default="default"),
    _axis("concurrency", "Concurrency", label=lambda c: counted(c.concurrency, "stream"), default=1),
    _axis("runtime", "Runtime", short=lambda c: runtime_name(c.runtime), order=lambda c: version_key(c.runtime)),
)
BY_NAME: Mapping[str, Axis] = {axis.name: axis for axis in AXES}
