"""Which releases exist, as far as this farm knows."""

from typing import TypedDict

from farm.alerts.models import Release
from farm.rules.runtimes.order import is_prerelease, release_order
from farm.rules.runtimes.releases import ONNXRUNTIME


def published(distribution: str, *, with_prereleases: bool = False) -> list[str]:
    """Versions in release order: what the package index offers; the farm's own table until it was asked."""
    rows = Release.objects.filter(distribution=distribution)
    offered = list(rows.filter(is_gone=False).values_list("version", flat=True))
    if not offered and not rows.exists() and distribution == "onnxruntime":
        offered = list(ONNXRUNTIME)
    kept = [version for version in offered if with_prereleases or not is_prerelease(version)]
    return sorted(kept, key=release_order)


def newest(distribution: str, *, with_prereleases: bool = False) -> str | None:
    """The newest of them; None when none is known."""
    found = published(distribution, with_prereleases=with_prereleases)
    return found[-1] if found else None


def was_offered(distribution: str) -> bool:
    """Whether the package index ever answered for the distribution."""
    return Release.objects.filter(distribution=distribution).exists()


class Known(TypedDict):
    """What planning is told beyond the farm's own table; see `farm.runs.services.plan_run`."""

    releases: list[str]
    yanked: dict[str, str]


def for_planning() -> Known:
    """Every release that the package index was seen to offer, and those that it took back."""
    rows = list(Release.objects.all())
    return {
        "releases": [str(row) for row in rows],
        "yanked": {str(row): row.yanked_because for row in rows if row.is_yanked},
    }


def yanked(distribution: str) -> dict[str, str]:
    """Releases of a distribution that the index took back, as `distribution==version`, and why."""
    rows = Release.objects.filter(distribution=distribution, is_yanked=True)
    return {str(row): row.yanked_because for row in rows}


def known(distribution: str) -> list[str]:
    """Every release that the index ever had, as `distribution==version`.

    A yanked one is among them: a watch that is pinned to it may go on, as installers take what is pinned.
    """
    return [str(row) for row in Release.objects.filter(distribution=distribution)]
