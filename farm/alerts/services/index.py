"""Looks for releases on the package index through pip, whose settings name mirrors, proxies and certificates.

Releases of ONNX Runtime Web come from the npm registry, and builds of ONNX Runtime also from the indexes that an admin
added.
"""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from farm.alerts.models import IndexLook, Release, Watch
from farm.alerts.selectors.releases import list_known_releases
from farm.base.downloads import DownloadError
from farm.contract.cells import Runtime
from farm.contract.reasons import ReasonedError
from farm.registry.selectors import package_indexes
from farm.registry.services import OfferedVersions, fetch_index_versions, list_npm_releases
from farm.rules.runtimes import indexes, pairs, web
from farm.rules.runtimes.distributions import BUILDS_ALONE
from farm.rules.runtimes.listings import PIP_ENVIRONMENT, PIP_WORDS, Listing, read_listing
from farm.rules.runtimes.order import is_prerelease
from farm.rules.runtimes.releases import NEWEST, Known, unknown_sentence
from farm.runs.services import read_matrix
from farm.runs.services.run_plans import Declared

# seconds after which the index is asked again where somebody names an unknown release
TRUSTED_S = 600
log = logging.getLogger(__name__)

# how long the index may take, in the tick and in a request that waits for it
TIMEOUT_S, REQUEST_TIMEOUT_S = 90.0, 15.0
_ADDRESS = re.compile(r"\S+://\S+")


class IndexProblem(Exception):
    """The reason, in one sentence, why the index gave no answer. It does not hold the index's address."""


def poll_due_indexes() -> int:
    """Ask the index for each watched package once in INDEX_POLL_S seconds; return how many releases are new.

    Active watches without a trigger for releases count too, because the pipelines that call them name releases.
    `onnxruntime` is always asked for, because its newest release is measured where a matrix names none. Added indexes
    are asked for its builds too, and releases of indexes that were removed are marked as gone. With INDEX_POLL_S at 0,
    nothing is asked or marked.
    """
    if settings.INDEX_POLL_S <= 0:
        return 0
    watched = Watch.objects.filter(is_active=True).values_list("distribution", "reference").order_by().distinct()
    packages = {
        package for distribution, reference in watched for package in pairs.changing_packages(distribution, reference)
    }
    packages.add(NEWEST.distribution)
    names = list(package_indexes().values_list("name", flat=True))
    _mark_removed_indexes_gone(names)
    keys = sorted(packages | {f"{build}@{name}" for build in packages & BUILDS_ALONE for name in names})
    return sum(fetch_releases(key) for key in keys if _claim_poll(key, every_s=settings.INDEX_POLL_S))


def find_releases_for_matrix(declared: Declared) -> Known:
    """Return all known releases for planning a matrix; ask the index first where the matrix names an unknown one.

    See `find_releases`. Releases that only `exclude` names are not asked for. Raises Invalid where the matrix cannot be
    read.
    """
    matrix = read_matrix(declared)
    values = [*matrix.axes.get("runtime", ()), *(rule.get("runtime") for rule in matrix.include)]
    return find_releases(value for value in values if isinstance(value, Runtime))


def find_releases(runtimes: Iterable[Runtime]) -> Known:
    """Return all known releases; where one of `runtimes` is unknown, ask the index first, at most once in TRUSTED_S.

    If the index does not answer, `silence` of the result says why; nothing is raised. With INDEX_POLL_S at 0, nothing
    is asked.
    """
    releases = list_known_releases()
    unknown = [runtime for runtime in runtimes if unknown_sentence(runtime, extra=releases.releases)]
    keys = sorted({key for runtime in unknown for key in _list_index_keys(runtime)})
    if not keys or settings.INDEX_POLL_S <= 0:
        return releases
    for key in keys:
        # ask even while another process asks, because a plan cannot wait for its answer
        if _claim_poll(key, every_s=TRUSTED_S) or _is_being_asked(key):
            fetch_releases(key, timeout_s=REQUEST_TIMEOUT_S)
    problems = IndexLook.objects.filter(distribution__in=keys).exclude(problem="").values_list("problem", flat=True)
    return list_known_releases().model_copy(update={"silence": " ".join(problems)})


def _list_index_keys(runtime: Runtime) -> Sequence[str]:
    """List the keys of a release for `fetch_releases`: its packages, or its package at the index that it names."""
    name = indexes.split_index(runtime.version)[1]
    if not name:
        return pairs.changing_packages(runtime.distribution, runtime.version)
    return [f"{runtime.distribution}@{name}"] if package_indexes().filter(name=name).exists() else ()


def _mark_removed_indexes_gone(names: Iterable[str]) -> None:
    """Mark the releases of indexes other than `names`, which an admin removed, as gone."""
    rows = Release.objects.filter(is_gone=False, version__contains="at.")
    gone = [row.pk for row in rows if indexes.split_index(row.version)[1] not in {"", *names}]
    Release.objects.filter(pk__in=gone).update(is_gone=True)


def fetch_releases(distribution: str, *, timeout_s: float = TIMEOUT_S) -> int:
    """Ask the index now, and store its releases or the problem for pages to show; return how many releases are new.

    `distribution` is a package, followed by `@NAME` for the added index of that name. A problem is not raised; where
    the index gave no list, it is logged too, and the answer is 0.
    """
    package, _, name = distribution.partition("@")
    try:
        if name:
            offered, problem = _list_offered_by_index(name, package, timeout_s=timeout_s)
            count = store_releases(package, offered, index=name)
        else:
            listing = list_offered(distribution, timeout_s=timeout_s)
            count, problem = store_releases(distribution, listing.offered, yanked=listing.yanked), ""
    except IndexProblem as raised:
        count, problem = 0, str(raised)
        log.warning("%s", raised)
    IndexLook.objects.update_or_create(
        distribution=distribution,
        defaults={"looked_at": timezone.now(), "is_being_asked": False, "problem": problem[:500]},
    )
    return count


def _claim_poll(distribution: str, *, every_s: float) -> bool:
    """Claim the question by one conditional UPDATE, so that one of several workers asks it."""
    IndexLook.objects.get_or_create(distribution=distribution)
    is_due = Q(looked_at=None) | Q(looked_at__lt=Now() - timedelta(seconds=every_s))
    rows = IndexLook.objects.filter(is_due, distribution=distribution)
    return bool(rows.update(looked_at=Now(), is_being_asked=True))


def _is_being_asked(distribution: str) -> bool:
    """Say whether another worker waits for an answer; a question older than TIMEOUT_S does not count."""
    since = Now() - timedelta(seconds=TIMEOUT_S)
    return IndexLook.objects.filter(distribution=distribution, is_being_asked=True, looked_at__gt=since).exists()


def list_offered(distribution: str, *, timeout_s: float = TIMEOUT_S) -> Listing:
    """List the versions, with pre-releases, that have a file for this Python and platform, and the yanked ones.

    They are in the order of the index. Those of ONNX Runtime Web come from npm, for any platform and without regard to
    `timeout_s`. Raises IndexProblem where the index does not answer, or where pip lists none.
    """
    if distribution == web.DISTRIBUTION:
        return _list_offered_by_npm()
    command = [sys.executable, *PIP_WORDS, distribution]
    environment = os.environ | PIP_ENVIRONMENT
    try:
        pip = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False, stdin=None
        )
    except subprocess.TimeoutExpired:
        raise IndexProblem(f"The package index did not answer for {distribution} within {timeout_s:.0f} s.") from None
    except OSError as problem:
        raise IndexProblem(f"pip could not be started to ask for {distribution}: {problem.strerror}.") from problem
    listing = read_listing(pip.stdout)
    if listing is None:
        raise IndexProblem(f"The package index gives no releases of {distribution}: {_extract_reason(pip.stderr)}")
    return listing


def _list_offered_by_index(name: str, package: str, *, timeout_s: float) -> OfferedVersions:
    index = package_indexes().filter(name=name).first()
    if index is None:
        raise IndexProblem(f"This farm has no package index {name}.")
    try:
        return fetch_index_versions(index, package, timeout_s=timeout_s)
    except (indexes.IndexProblem, DownloadError) as problem:
        raise IndexProblem(f"The index {name} gives no releases of {package}: {problem}") from problem


def _list_offered_by_npm() -> Listing:
    try:
        reasons = list_npm_releases()
    except ReasonedError as problem:
        raise IndexProblem(str(problem)) from problem
    yanked = {version: reason for version, reason in reasons.items() if reason}
    return Listing(tuple(version for version in reasons if version not in yanked), yanked)


def store_releases(
    distribution: str, versions: Iterable[str], *, yanked: Mapping[str, str] = MappingProxyType({}), index: str = ""
) -> int:
    """Store the releases that an index offers, and mark those that it dropped; return how many are new.

    `yanked` maps versions to the index's reasons. `index` is the name of the index, empty for the default one. Yanked
    releases are not counted, even if they are new.
    """
    offered = set(versions)
    with transaction.atomic():
        rows = Release.objects.filter(distribution=distribution)
        stored = rows.values_list("version", flat=True)
        before = {version for version in stored if indexes.split_index(version)[1] == index}
        new = [
            Release(distribution=distribution, version=version, is_prerelease=is_prerelease(version))
            for version in sorted(offered - before)
        ]
        Release.objects.bulk_create(new, ignore_conflicts=True)
        rows.filter(version__in=before - offered, is_gone=False).update(is_gone=True)
        rows.filter(version__in=before & offered, is_gone=True).update(is_gone=False, is_yanked=False)
        for version, reason in yanked.items():
            changes = {"is_gone": True, "is_yanked": True, "yanked_because": reason}
            identity = {"distribution": distribution, "is_prerelease": is_prerelease(version)}
            rows.update_or_create(version=version, defaults=changes, create_defaults=identity | changes)
    return len(new)


def _extract_reason(text: str) -> str:
    """Return the last line in which pip says what was wrong, without addresses, which may hold passwords."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("ERROR")] or text.splitlines()[-1:]
    reason = _ADDRESS.sub("(address)", lines[-1].removeprefix("ERROR:").strip()) if lines else "pip said nothing"
    return reason[:300].rstrip(".") + "."
