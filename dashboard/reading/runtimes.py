"""Which release of ONNX Runtime is where: version × provider × node, installed or on demand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard import numbers, words
from farm.rules.runtimes import opsets, providers
from farm.rules.runtimes.order import release_order

if TYPE_CHECKING:
    from farm.fleet.models import Node

# nodes that a place names; further ones are counted
NAMED = 4
CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Place:
    """One release with one provider. `installed`: nodes that have it, by name and page; `more`: further such nodes.

    `on_demand`: nodes on which the provider is proven and that would install the release when a block asks.
    """

    installed: Sequence[tuple[str, str]]
    more: int
    on_demand: int


@dataclass(frozen=True)
class Row:
    """One release. `opset`: the newest it loads; `is_gone`: installed, but the index does not offer it any more."""

    version: str
    opset: str
    is_gone: bool
    places: Sequence[Place]


@dataclass(frozen=True)
class Board:
    """One distribution. `columns`: the providers that its builds carry and a node has proven."""

    distribution: str
    columns: Sequence[str]
    rows: Sequence[Row]
    headline: str


def distributions(nodes: Iterable["Node"], known: Iterable[str]) -> list[str]:
    """The distributions that there is something to say of, plain onnxruntime first."""
    nodes = list(nodes)
    installed = {requirement.partition("==")[0] for node in nodes for requirement in node.runtimes}
    proven = {name for node in nodes for name in node.providers if name != CPU}
    carrying = {one for entry in providers.PROVIDERS if entry.name in proven for one in entry.packages}
    names = {"onnxruntime", *installed, *carrying, *known}
    return sorted(names, key=lambda name: (name != "onnxruntime", name))


def board(distribution: str, *, nodes: Sequence["Node"], offered: Sequence[str]) -> Board:
    """Every release of a distribution that is offered or installed, the newest first."""
    columns = _columns(distribution, nodes)
    prefix = f"{distribution}=="
    installed = {one.removeprefix(prefix) for node in nodes for one in node.runtimes if one.startswith(prefix)}
    versions = sorted({*offered, *installed}, key=release_order, reverse=True)
    rows = [
        Row(
            version,
            str(opsets.max_opset(version) or "unknown"),
            bool(offered) and version not in offered,
            [_place(prefix + version, name, nodes) for name in columns],
        )
        for version in versions
    ]
    return Board(distribution, [words.provider(name) for name in columns], rows, _headline(versions, installed, nodes))


def _columns(distribution: str, nodes: Sequence["Node"]) -> list[str]:
    proven = {name for node in nodes for name in node.providers}
    carried = [entry.name for entry in providers.PROVIDERS if distribution in entry.packages]
    return [name for name in carried if name in proven or name == CPU]


def _place(requirement: str, provider: str, nodes: Sequence["Node"]) -> Place:
    able = [node for node in nodes if provider in node.providers]
    having = [node for node in able if requirement in node.runtimes]
    named = [(node.name, reverse("dashboard:node", args=[node.pk])) for node in having[:NAMED]]
    return Place(named, max(0, len(having) - NAMED), len(able) - len(having))


def _headline(versions: Sequence[str], installed: set[str], nodes: Sequence["Node"]) -> str:
    if not versions:
        return "No release is known"
    newest = versions[0]
    having = f"{len(installed)} of {numbers.count(len(versions), 'release')} installed somewhere"
    return f"{having}; the newest is {newest}" if nodes else f"{numbers.count(len(versions), 'release')} known, no node"


def index_words(look: tuple[datetime | None, str] | None, *, every_s: float) -> str:
    """When the package index was asked last, and what went wrong."""
    if every_s <= 0:
        return "This farm does not query the package index. It shows the releases it knows, and those on nodes."
    if look is None or look[0] is None:
        return "The package index has not been queried yet. This happens once a watch follows this distribution."
    asked = f"The package index was last queried at {look[0]:%Y-%m-%d %H:%M} UTC."
    return f"{asked} That failed: {look[1]}" if look[1] else asked


def chosen(wanted: str, known: Sequence[str]) -> str:
    """The distribution that the address names; the first one where there is none of that name."""
    return wanted if wanted in known else known[0]
