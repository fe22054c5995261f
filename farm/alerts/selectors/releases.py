"""Lists the releases that this farm knows, and those that a watch measures.

Where two packages are watched together, a version names both; see `farm.rules.runtimes.pairs`. "Published" versions are
those that the package index offers now. `newest_release` is the newest published one that the watch may measure, or
None.
"""

from django.conf import settings

from farm.alerts.models import Alert, Release, Watch, WatchRound
from farm.alerts.states import Cause, RoundOutcome, RoundState
from farm.contract.cells import Runtime
from farm.registry.models import Model, Version
from farm.registry.states import VersionState
from farm.rules.runtimes import pairs, plugins
from farm.rules.runtimes.allowances import allowed_range
from farm.rules.runtimes.order import is_prerelease, release_order
from farm.rules.runtimes.releases import NEWEST, ONNXRUNTIME, Known

# outcomes of rounds that measured their release
_MEASURED = (
    RoundOutcome.ALERT,
    RoundOutcome.UNCONFIRMED,
    RoundOutcome.UNDECIDED,
    RoundOutcome.NEWS,
    RoundOutcome.QUIET,
)
# how many good releases of open alerts are measured too, so that these alerts can be resolved
MAX_BASELINES = 2
MAX_CHOICES = 40


def list_published(distribution: str, *, with_prereleases: bool = False) -> list[str]:
    """List the versions that the package index offers, the oldest first; yanked and removed ones are left out.

    Before the index has answered for `onnxruntime`, the farm's own table of its releases is used.
    """
    rows = Release.objects.filter(distribution=distribution)
    offered = list(rows.filter(is_gone=False).values_list("version", flat=True))
    if not offered and not rows.exists() and distribution == "onnxruntime":
        offered = list(ONNXRUNTIME)
    versions = [version for version in offered if with_prereleases or not is_prerelease(version)]
    return sorted(versions, key=release_order)


def find_newest(distribution: str, *, reference: str, with_prereleases: bool = False) -> str | None:
    """Find the newest published version; None where there is none.

    Where the reference names two packages, the version names both.
    """
    versions = list_published(distribution, with_prereleases=with_prereleases)
    if not pairs.is_pair(reference) or not versions:
        return versions[-1] if versions else None
    cores = _list_cores(distribution, with_prereleases=with_prereleases)
    return pairs.newest_pair(reference, owns=versions, cores=cores)


def list_between(distribution: str, *, good: str, bad: str) -> list[str]:
    """List, the oldest first, the versions for a bisection from `good` to `bad`, these two included.

    Where both name two packages, these are the pairs from one to the other. Otherwise they are all published stable
    versions, also those outside of the range, which the bisection ignores.
    """
    versions = list_published(distribution)
    if pairs.is_pair(good) and pairs.is_pair(bad):
        return pairs.list_pairs_between(good, bad, owns=versions, cores=_list_cores(distribution))
    return sorted({*versions, good, bad}, key=release_order)


def list_choices(distribution: str, *, reference: str, with_prereleases: bool = False) -> list[str]:
    """List the MAX_CHOICES newest published versions that a watch may name, the newest first.

    Where its reference names two packages, each version names both: every version of one with every version of the
    other that it allows.
    """
    versions = list_published(distribution, with_prereleases=with_prereleases)
    if pairs.is_pair(reference):
        cores = _list_cores(distribution, with_prereleases=with_prereleases)
        versions = [plugins.join_pair(version, core) for version in versions for core in cores]
    return versions[::-1][:MAX_CHOICES]


def _list_cores(distribution: str, *, with_prereleases: bool = False) -> list[str]:
    offered = list_published(pairs.CORE, with_prereleases=with_prereleases)
    return pairs.select_cores(allowed_range(distribution, settings.ALLOWED_PACKAGES), offered)


def was_offered(distribution: str, *, reference: str) -> bool:
    """Say whether the package index ever offered a release of the distribution.

    Where the reference names two packages, it must have offered both of them.
    """
    packages = pairs.changing_packages(distribution, reference)
    rows = Release.objects.filter(distribution__in=packages)
    return rows.values("distribution").order_by("distribution").distinct().count() == len(packages)


def list_known_releases() -> Known:
    """Return every release that the package index ever offered, those that it yanked, and the newest of ONNX Runtime.

    Where the index offers no stable one, `newest` comes from the farm's own table. `newest_pre` is the newest of stable
    ones and pre-releases alike; None where the index offers none.
    """
    rows = list(Release.objects.all())
    offered = [row for row in rows if row.distribution == NEWEST.distribution and not row.is_gone]
    offered.sort(key=lambda row: release_order(row.version))
    stable = [row.runtime for row in offered if not row.is_prerelease]
    return Known(
        releases=tuple(row.runtime for row in rows),
        yanked={row.runtime: row.yanked_because for row in rows if row.is_yanked},
        newest=stable[-1] if stable else NEWEST,
        newest_pre=offered[-1].runtime if offered else None,
    )


def list_ever_offered(distribution: str) -> list[Runtime]:
    """List every release of a distribution, and of ONNX Runtime itself, that the index ever offered, in no order.

    Yanked releases are included, because installers still accept them where a watch is pinned to one.
    """
    return [row.runtime for row in Release.objects.filter(distribution__in={distribution, pairs.CORE})]


def watched_models(watch: Watch) -> list[Model]:
    """Return the models that the watch names and those of its team with its label, by name, without deleted ones."""
    models = {model.pk: model for model in watch.watched.all() if model.removed_at is None}
    if watch.label:
        # JSON lists cannot be searched alike in every database, and a team's models are few
        labelled = [
            model for model in Model.objects.not_removed().filter(team=watch.team_id) if watch.label in model.labels
        ]
        models |= {model.pk: model for model in labelled}
    return sorted(models.values(), key=lambda model: model.name)


def newest_ready_version(model: Model) -> Version | None:
    """Find the newest version that inspection accepted, without deleted ones and those of branches."""
    ready = Version.objects.not_removed().on_main_line().filter(model=model, state=VersionState.READY)
    return ready.order_by("-number").first()


def last_release(watch: Watch, model: Model) -> str:
    """Return the new release of the model's last judged round of this watch; before the first one, the reference.

    Rounds that a person or a pipeline called, rounds that compare versions of the model, and rounds that measured
    nothing do not count.
    """
    rounds = WatchRound.objects.filter(
        watch=watch, version__model=model, state=RoundState.JUDGED, outcome__in=_MEASURED, compared__gt=0
    ).exclude(cause=Cause.CALL)
    rounds = rounds.filter(base=None)
    return rounds.order_by("-judged_at").values_list("new", flat=True).first() or watch.reference


def newest_release(watch: Watch) -> str | None:
    return find_newest(watch.distribution, reference=watch.reference, with_prereleases=watch.with_prereleases)


def baselines(watch: Watch, model: Model) -> list[str]:
    """Return the good releases of a model's unsettled alerts, those of the newest alerts first, MAX_BASELINES at most.

    Alerts that the farm could not measure are left out.
    """
    rows = Alert.objects.open_or_acknowledged().filter(watch=watch, model=model, distribution=watch.distribution)
    return list(dict.fromkeys(rows.exclude(node="").order_by("-pk").values_list("good", flat=True)))[:MAX_BASELINES]
