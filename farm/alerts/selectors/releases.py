"""Which releases exist, as far as this farm knows."""

from farm.alerts.models import Release
from farm.rules.narrowing import is_prerelease, release_order
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


def known(distribution: str) -> list[str]:
    """Every release that was ever offered, as `distribution==version`: what planning may be told of."""
    rows = Release.objects.filter(distribution=distribution)
    return [f"{distribution}=={version}" for version in rows.values_list("version", flat=True)]
