"""Looking for releases on the package index through pip, whose settings name mirrors, proxies and certificates.

Those of ONNX Runtime Web are on the npm registry that the farm fetches them from.
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
from farm.registry.services import fetch_index_versions, list_npm_releases
from farm.rules.runtimes import indexes, pairs, web
from farm.rules.runtimes.distributions import BUILDS_ALONE
from farm.rules.runtimes.listings import PIP_ENVIRONMENT, PIP_WORDS, Listing, read_listing
from farm.rules.runtimes.order import is_prerelease
from farm.rules.runtimes.releases import NEWEST, Known, unknown_sentence
from farm.runs.services import read_matrix
from farm.runs.services.run_plans import Declared

# where somebody asks for an unknown release, the index is asked again after this time
BELIEVED_S = 600
log = logging.getLogger(__name__)

# of the tick, and of a request that waits for the index
TIMEOUT_S, REQUEST_TIMEOUT_S = 90.0, 15.0
_ADDRESS = re.compile(r"\S+://\S+")


class IndexProblem(Exception):
    """Why the index could not be asked, in one sentence without the index's address."""


def look_for_due_releases() -> int:
    """Ask the index for each watched package that was not asked for within INDEX_POLL_S; returns how many releases are
    new.

    Packages of watches that wait for no release are among them, because a pipeline that calls such a watch names
    releases that the farm has to know. So is `onnxruntime`, whose newest release is measured where none is named.
    """
    if settings.INDEX_POLL_S <= 0:
        return 0
    watched = Watch.objects.filter(is_active=True).values_list("distribution", "reference").order_by().distinct()
    wanted = {
        package for distribution, reference in watched for package in pairs.changing_packages(distribution, reference)
    }
    wanted.add(NEWEST.distribution)
    every_s = settings.INDEX_POLL_S
    names = list(package_indexes().values_list("name", flat=True))
    _forget_all_but(names)
    keys = sorted(wanted | {f"{build}@{name}" for build in wanted & BUILDS_ALONE for name in names})
    return sum(look_for_releases(key) for key in keys if _is_my_turn(key, every_s=every_s))


def find_releases_for_matrix(declared: Declared) -> Known:
    """Find the releases to plan a matrix with, as `find_releases`. Raises Invalid where the matrix cannot be read."""
    matrix = read_matrix(declared)
    values = [*matrix.axes.get("runtime", ()), *(rule.get("runtime") for rule in matrix.include)]
    return find_releases(value for value in values if isinstance(value, Runtime))


def find_releases(runtimes: Iterable[Runtime]) -> Known:
    """Return all known releases. Where one of `runtimes` is unknown, the index is asked first, at most once in
    BELIEVED_S. `silence` of the result says why it could not be asked."""
    known = list_known_releases()
    unknown = [runtime for runtime in runtimes if unknown_sentence(runtime, extra=known.releases)]
    wanted = sorted({key for asked in unknown for key in _keys_of(asked)})
    if not wanted or settings.INDEX_POLL_S <= 0:
        return known
    for distribution in wanted:
        # whom the tick just now asks is asked here too: a plan cannot wait for the answer of somebody else
        if _is_my_turn(distribution, every_s=BELIEVED_S) or _is_being_asked(distribution):
            look_for_releases(distribution, timeout_s=REQUEST_TIMEOUT_S)
    problems = IndexLook.objects.filter(distribution__in=wanted).exclude(problem="").values_list("problem", flat=True)
    return list_known_releases().model_copy(update={"silence": " ".join(problems)})


def _keys_of(runtime: Runtime) -> Sequence[str]:
    """Return what to ask the index for about a release: its packages, or its package at the index that it names."""
    name = indexes.split_index(runtime.version)[1]
    if not name:
        return pairs.changing_packages(runtime.distribution, runtime.version)
    return [f"{runtime.distribution}@{name}"] if package_indexes().filter(name=name).exists() else ()


def _forget_all_but(names: Iterable[str]) -> None:
    """Mark the releases of indexes that an admin removed as gone."""
    rows = Release.objects.filter(is_gone=False, version__contains="at.")
    gone = [row.pk for row in rows if indexes.split_index(row.version)[1] not in {"", *names}]
    Release.objects.filter(pk__in=gone).update(is_gone=True)


def look_for_releases(distribution: str, *, timeout_s: float = TIMEOUT_S) -> int:
    """Ask the index now and keep its releases; returns how many are new. What went wrong is kept for the pages.

    `distribution`: a package, followed by `@NAME` for the index of that name.
    """
    package, _, name = distribution.partition("@")
    try:
        if name:
            offered, problem = _list_offered(name, package, timeout_s=timeout_s)
            count = keep_releases(package, offered, index=name)
        else:
            found = list_offered(distribution, timeout_s=timeout_s)
            count, problem = keep_releases(distribution, found.offered, yanked=found.yanked), ""
    except IndexProblem as raised:
        count, problem = 0, str(raised)
        log.warning("%s", raised)
    IndexLook.objects.update_or_create(
        distribution=distribution,
        defaults={"looked_at": timezone.now(), "is_being_asked": False, "problem": problem[:500]},
    )
    return count


def _is_my_turn(distribution: str, *, every_s: float) -> bool:
    """Claim the look by one conditional UPDATE, so that one of several workers asks."""
    IndexLook.objects.get_or_create(distribution=distribution)
    is_due = Q(looked_at=None) | Q(looked_at__lt=Now() - timedelta(seconds=every_s))
    mine = IndexLook.objects.filter(is_due, distribution=distribution).update(looked_at=Now(), is_being_asked=True)
    return bool(mine)


def _is_being_asked(distribution: str) -> bool:
    """Say whether another worker's question has no answer yet; one that died is forgotten after its time."""
    since = Now() - timedelta(seconds=TIMEOUT_S)
    return IndexLook.objects.filter(distribution=distribution, is_being_asked=True, looked_at__gt=since).exists()


def list_offered(distribution: str, *, timeout_s: float = TIMEOUT_S) -> Listing:
    """List the versions that have a file for this Python and platform, with pre-releases, and the yanked ones. For the
    build for browsers, list those on npm. Raises IndexProblem."""
    if distribution == web.DISTRIBUTION:
        return _ask_npm()
    command = [sys.executable, *PIP_WORDS, distribution]
    environment = os.environ | PIP_ENVIRONMENT
    try:
        asked = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False, stdin=None
        )
    except subprocess.TimeoutExpired:
        raise IndexProblem(f"The package index did not answer for {distribution} within {timeout_s:.0f} s.") from None
    except OSError as problem:
        raise IndexProblem(f"pip could not be started to ask for {distribution}: {problem.strerror}.") from problem
    found = read_listing(asked.stdout)
    if found is None:
        raise IndexProblem(f"The package index gives no releases of {distribution}: {_essential(asked.stderr)}")
    return found


def _list_offered(name: str, package: str, *, timeout_s: float) -> tuple[tuple[str, ...], str]:
    index = package_indexes().filter(name=name).first()
    if index is None:
        raise IndexProblem(f"This farm has no package index {name}.")
    try:
        return fetch_index_versions(index, package, timeout_s=timeout_s)
    except (indexes.IndexProblem, DownloadError) as problem:
        raise IndexProblem(f"The index {name} gives no releases of {package}: {problem}") from problem


def _ask_npm() -> Listing:
    try:
        found = list_npm_releases()
    except ReasonedError as problem:
        raise IndexProblem(str(problem)) from problem
    taken_back = {version: why for version, why in found.items() if why}
    return Listing(tuple(version for version in found if version not in taken_back), taken_back)


def keep_releases(
    distribution: str, versions: Iterable[str], *, yanked: Mapping[str, str] = MappingProxyType({}), index: str = ""
) -> int:
    """Keep what an index offers now, what it no longer offers, and what it yanked by its reason; returns how many are
    new. `index`: its name, empty for the usual one."""
    now = set(versions)
    with transaction.atomic():
        rows = Release.objects.filter(distribution=distribution)
        known = rows.values_list("version", flat=True)
        before = {version for version in known if indexes.split_index(version)[1] == index}
        new = [
            Release(distribution=distribution, version=version, is_prerelease=is_prerelease(version))
            for version in sorted(now - before)
        ]
        Release.objects.bulk_create(new, ignore_conflicts=True)
        rows.filter(version__in=before - now, is_gone=False).update(is_gone=True)
        rows.filter(version__in=before & now, is_gone=True).update(is_gone=False, is_yanked=False)
        for version, why in yanked.items():
            taken_back = {"is_gone": True, "is_yanked": True, "yanked_because": why}
            is_early = {"is_prerelease": is_prerelease(version)}
            rows.update_or_create(
                version=version,
                defaults=taken_back,
                create_defaults={"distribution": distribution, **is_early, **taken_back},
            )
    return len(new)


def _essential(text: str) -> str:
    """Return the last line in which pip says what was wrong, without addresses, which may hold passwords."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("ERROR")] or text.splitlines()[-1:]
    reason = _ADDRESS.sub("(address)", lines[-1].removeprefix("ERROR:").strip()) if lines else "pip said nothing"
    return reason[:300].rstrip(".") + "."
