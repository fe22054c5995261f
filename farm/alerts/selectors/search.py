"""Searches by typed words for everything that has a page: models, versions, runs, nodes, alerts and watches."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from django.db.models import Q

from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, Watch
from farm.contract.numbers import is_row_number
from farm.fleet.selectors import nodes_without_logs
from farm.registry.selectors import models_visible_to, versions_visible_to
from farm.runs.selectors import runs_for_lists
from farm.runs.selectors.runs import shown_states

# hits of each kind of page
MAX_HITS = 8
# characters of a text that are searched for
MAX_TEXT = 100
NUMBERED = re.compile(r"(?:(run|alert)\s*)?#?(\d{1,18})", re.IGNORECASE)
# shorter digests would match many versions
DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{6,64})", re.IGNORECASE)


class Hit(NamedTuple):
    """A page that was found."""

    # run, alert, model, version, node or watch
    kind: str
    name: str
    # a few words that help to recognise the page
    about: str
    path: str


def search_everything(user: Anyone, text: str) -> list[Hit]:
    """Find pages that the user may see, at most MAX_HITS of each kind; [] for an empty text.

    Runs and alerts are found by their number, versions by the first six or more digits of a digest, and models, nodes
    and watches by a part of their name in any case. The hits come in this order; hits by a part of a name are sorted by
    name.
    """
    wanted = text.replace("\x00", "").strip()[:MAX_TEXT]
    if not wanted:
        return []
    return [
        hit
        for find in (_find_by_number, _find_by_digest, _find_models, _find_nodes, _find_watches)
        for hit in islice(find(user, wanted), MAX_HITS)
    ]


def _find_by_number(user: Anyone, text: str) -> Iterator[Hit]:
    match = NUMBERED.fullmatch(text)
    if match is None or not is_row_number(match[2]):
        return
    kind, number = (match[1] or "").lower(), int(match[2])
    if kind in ("", "run"):
        for run in runs_for_lists(user).filter(pk=number):
            yield Hit("run", f"run {run.pk}", f"{run.version}, {shown_states([run])[run.pk]}", f"/runs/{run.pk}/")
    if kind in ("", "alert"):
        for alert in Alert.objects.visible_to(user).filter(pk=number).select_related("model"):
            yield Hit("alert", f"alert {alert.pk}", f"{alert.model}, {alert.state}", f"/alerts/{alert.pk}/")


def _find_by_digest(user: Anyone, text: str) -> Iterator[Hit]:
    """Find versions by the beginning of the digest of their bundle or of any file in it."""
    match = DIGEST.fullmatch(text)
    if match is None:
        return
    start = match[1].lower()
    fits = Q(artifact__sha256__startswith=start) | Q(artifact__files__blob__sha256__startswith=start)
    versions = versions_visible_to(user).filter(fits).distinct().defer("inspection").prefetch_related(None)
    for version in versions[:MAX_HITS]:
        path = f"/models/{version.model_id}/?version={version.number}"
        yield Hit("version", str(version), f"digest {version.artifact.sha256[:12]}", path)


def _find_models(user: Anyone, text: str) -> Iterator[Hit]:
    for model in models_visible_to(user).filter(name__icontains=text).order_by("name", "pk")[:MAX_HITS]:
        about = ", ".join([model.team.name, *model.labels])
        yield Hit("model", model.name, about, f"/models/{model.pk}/")


def _find_nodes(user: Anyone, text: str) -> Iterator[Hit]:
    for node in nodes_without_logs(user).filter(name__icontains=text).order_by("name", "pk")[:MAX_HITS]:
        yield Hit("node", node.name, f"{node.state}, {node.health}", f"/fleet/{node.pk}/")


def _find_watches(user: Anyone, text: str) -> Iterator[Hit]:
    for watch in Watch.objects.visible_to(user).filter(name__icontains=text).order_by("name", "pk")[:MAX_HITS]:
        yield Hit("watch", watch.name, f"{watch.distribution}, against {watch.reference}", f"/watches/{watch.pk}/")
