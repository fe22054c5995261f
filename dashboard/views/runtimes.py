"""The page of runtimes: the releases of ONNX Runtime that the fleet has or could install, by provider. Its old address
is redirected with its parameters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from dashboard.views import lists
from dashboard.views.access import page, signed_in_user
from farm.alerts.selectors.histories import read_history
from farm.alerts.selectors.pages import list_index_looks
from farm.alerts.selectors.releases import list_published
from farm.contract.cells import Runtime
from farm.fleet.selectors import collect_loads, nodes_without_logs
from farm.fleet.states import NodeHealth
from farm.rules.runtimes import opsets, providers
from farm.rules.runtimes.order import is_prerelease, release_order
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import Sign, sign_of
from farm.runs.selectors.compatibility import measurements_by_version

if TYPE_CHECKING:
    from farm.alerts.models import Watch
    from farm.alerts.selectors.histories import History, RaisedAlert
    from farm.fleet.models import Node
    from farm.runs.selectors.compatibility import ReleaseUse


# at most so many nodes are named, and the others counted
NAMED = 4
CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Place:
    """A release with a provider. `installed`: at most NAMED nodes that have it and the provider; `more`: how many
    further nodes do; `on_demand`: how many nodes have the provider proven and would install the release when a block
    needs it."""

    installed: Sequence["Node"]
    more: int
    on_demand: int


@dataclass(frozen=True)
class Row:
    """A release. `opset`: the newest that it loads; `is_gone`: the index no longer offers it; `places`: one for each
    column of the board; `yanked`: that the index withdrew it, with the reason, else empty; `use`: how runs used it,
    None without runs; `measured`: the same in words, how often and where; `outcomes`: of rounds of watches, with their
    number, without alerts; `alerts`: at most NAMED alerts about the release, with their signs; `references`: watches
    that have it as reference."""

    version: str
    opset: str
    is_gone: bool = False
    places: Sequence[Place] = ()
    yanked: str = ""
    seen_at: datetime | None = None
    use: "ReleaseUse | None" = None
    measured: str = ""
    outcomes: Sequence[Sign] = ()
    alerts: Sequence[tuple["RaisedAlert", Sign]] = ()
    references: Sequence["Watch"] = ()


@dataclass(frozen=True)
class Board:
    """The releases of a distribution. `columns`: the titles of the providers that its builds have and a node has
    proven; the CPU provider needs no proof."""

    distribution: str
    columns: Sequence[str]
    rows: Sequence[Row]
    headline: str


def list_distributions(nodes: Iterable["Node"], known: Iterable[str]) -> list[str]:
    """List the distributions that the page offers, always with plain onnxruntime first, then by name: those installed
    on a node, those that have a provider proven on a node (other than the CPU provider), and the `known` ones."""
    nodes = list(nodes)
    installed = {Runtime.of(text).distribution for node in nodes for text in node.runtimes}
    proven = {name for node in nodes for name in node.providers if name != CPU}
    carrying = {package for entry in providers.PROVIDERS if entry.name in proven for package in entry.packages}
    names = {"onnxruntime", *installed, *carrying, *known}
    return sorted(names, key=lambda name: (name != "onnxruntime", name))


def make_board(
    distribution: str,
    *,
    nodes: Sequence["Node"],
    published: Sequence[str],
    early: bool,
    history: "History",
    measured: Mapping[str, "ReleaseUse"],
) -> Board:
    """Make the board of a distribution: every release that is offered, installed, measured or has an alert, the newest
    first. `published`: the releases in the index, empty where they are not known, and then none counts as gone;
    `early`: its pre-releases are offered too."""
    offered = [version for version in published if early or not is_prerelease(version)]
    proven = {name for node in nodes for name in node.providers}
    carried = [entry.name for entry in providers.PROVIDERS if distribution in entry.packages]
    columns = [name for name in carried if name in proven or name == CPU]
    prefix = f"{distribution}=="
    observed = collect_loads(nodes)
    installed = {text.removeprefix(prefix) for node in nodes for text in node.runtimes if text.startswith(prefix)}
    versions = sorted({*offered, *installed, *measured, *history.alerts}, key=release_order, reverse=True)
    rows = [
        replace(
            _make_row(version, history, measured.get(version), observed),
            is_gone=bool(published) and version not in published,
            places=[_make_place(prefix + version, name, nodes) for name in columns],
        )
        for version in versions
    ]
    return Board(distribution, [titles.provider(name) for name in columns], rows, _headline(versions, installed, nodes))


def _make_row(version: str, history: "History", measured: "ReleaseUse | None", observed: opsets.ObservedLoads) -> Row:
    """Make the row of a release from the index, the watches and the runs; its places are added later."""
    known = history.index_entries.get(version)
    why = f": {known.yanked_because}" if known and known.yanked_because else ""
    counts = sorted(history.outcomes.get(version, {}).items())
    signs = [(sign_of(outcome), count) for outcome, count in counts if outcome != "alert"]
    raised = [(alert, sign_of(alert.state)) for alert in history.alerts.get(version, ())[:NAMED]]
    words = ""
    if measured:
        where = f" on {numbers.listed(measured.nodes)}" if measured.nodes else ""
        words = f"{numbers.counted(measured.runs, 'run')} of {numbers.counted(measured.models, 'model')}{where}"
    return Row(
        version,
        opset=str(opsets.max_opset(version, observed) or "unknown"),
        yanked=f"yanked{why}" if known and known.is_yanked else "",
        seen_at=known.seen_at if known else None,
        use=measured,
        measured=words,
        outcomes=[Sign(sign.mark, f"{sign.word} ({count})", sign.tone) for sign, count in signs],
        alerts=[
            (alert, Sign(sign.mark, f"{alert.model}, {sign.word}{as_in}", sign.tone))
            for alert, sign in raised
            for as_in in [f", as in {alert.found_in}" if alert.found_in else ""]
        ],
        references=[watch for watch in history.watches if watch.reference == version],
    )


def _make_place(requirement: str, provider: str, nodes: Sequence["Node"]) -> Place:
    able = [node for node in nodes if provider in node.providers]
    having = [node for node in able if requirement in node.runtimes]
    return Place(having[:NAMED], max(0, len(having) - NAMED), len(able) - len(having))


def _headline(versions: Sequence[str], installed: set[str], nodes: Sequence["Node"]) -> str:
    if not versions:
        return "No release is known"
    known = numbers.counted(len(versions), "release")
    if not nodes:
        return f"{known} known, no node"
    return f"{len(installed)} of {known} installed on a node; the newest is {versions[0]}"


def describe_index(look: tuple[datetime | None, str] | None, *, every_s: float) -> str:
    """Say when the package index was last queried, and what went wrong. `look`: the time and the problem of that query,
    None before the first; `every_s`: the seconds between queries, 0 where the farm does not query the index."""
    if every_s <= 0:
        return "This farm does not query the package index. It shows the releases it knows, and those on nodes."
    if look is None or look[0] is None:
        return "The package index has not been queried yet. This happens once a watch follows this distribution."
    asked = f"The package index was last queried at {look[0]:%Y-%m-%d %H:%M} UTC."
    return f"{asked} That failed: {look[1]}" if look[1] else asked


def make_file_row(row: Row, columns: Sequence[str]) -> lists.FileRow:
    """Make the row of a release in a file. For each provider it has the number of nodes on which the release is
    installed, and on which it would be when a block needs it."""
    values: dict[str, lists.Value] = {
        "release": row.version,
        "opset": row.opset,
        "is_gone": row.is_gone,
        "yanked": row.yanked,
        "first_seen": row.seen_at.isoformat() if row.seen_at else "",
        "runs": row.use.runs if row.use else 0,
        "alerts": len(row.alerts),
    }
    for name, place in zip(columns, row.places, strict=True):
        values[f"{name}: installed on"] = len(place.installed) + place.more
        values[f"{name}: on demand on"] = place.on_demand
    return values


@page
def runtimes(request: HttpRequest) -> HttpResponse:
    """Show the releases of a distribution by provider and node, without retired nodes: the distribution that the
    address names, else plain onnxruntime, also for an unknown name. Pre-releases are offered with `early=yes`. `as`
    asks for a file instead."""
    user = signed_in_user(request)
    nodes = list(nodes_without_logs(user).exclude(health=NodeHealth.RETIRED).order_by("name"))
    asked = list_index_looks()
    names = list_distributions(nodes, asked)
    wanted = request.GET.get("distribution", "")
    distribution = wanted if wanted in names else names[0]
    published, early = list_published(distribution, with_prereleases=True), request.GET.get("early") == "yes"
    history = read_history(user, distribution)
    measured = measurements_by_version(user, distribution)
    found = make_board(distribution, nodes=nodes, published=published, early=early, history=history, measured=measured)
    if lists.wants_file(request):
        name = f"runtimes-{distribution}"
        return lists.render_file(request, name, found.rows, lambda row: make_file_row(row, found.columns))
    context = {
        "board": found,
        "distributions": names,
        "early": early,
        "index": describe_index(asked.get(distribution), every_s=settings.INDEX_POLL_S),
        "watches": history.watches,
        "has_nodes": bool(nodes),
    }
    return render(request, "dashboard/runtimes.html", context)


@page
def redirect_runtimes(request: HttpRequest) -> HttpResponseBase:
    return redirect(f"{reverse('dashboard:runtimes')}?{request.GET.urlencode()}")
