"""Opens the rounds of watches for a new release, a new version, the schedule, or a call.

The same cause never opens two rounds on one version. The functions for the tick return how many rounds they opened.
"""

import secrets
from collections.abc import Iterable
from itertools import groupby

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.alerts.models import Watch, WatchRound
from farm.alerts.selectors import releases
from farm.alerts.services.watches import check_release, next_due_at
from farm.alerts.states import Cause, RoundState
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.registry.models import Model, Version
from farm.registry.states import VersionState
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.pairs import list_steps
from farm.runs.selectors import previous_version


def open_release_rounds() -> int:
    """Open a round for the newest release on each watched model that has not had one; return how many.

    Only active watches with the trigger `on_release` count. Where the release changes two packages, the round measures
    only the next step, which changes one of them. A model gets no round before the package index has answered, without
    a ready version, or where the watch has measured that release or a later one.
    """
    count = 0
    for watch in Watch.objects.filter(is_active=True, on_release=True):
        # before the index has answered, the newest release of the farm's own table must not open rounds
        has_answer = releases.was_offered(watch.distribution, reference=watch.reference)
        new = releases.newest_release(watch) if has_answer else None
        if new is None:
            continue
        measured = set(watch.rounds.filter(key=_release_key(new)).values_list("version__model_id", flat=True))
        models = [model for model in releases.watched_models(watch) if model.pk not in measured]
        count += sum(_open_next_step(watch, model, new=new) for model in models)
    return count


def _open_next_step(watch: Watch, model: Model, *, new: str) -> bool:
    """Open a round for the next step to the release `new`, and say whether one was opened.

    Where two packages changed, each change is a separate step.
    """
    version = releases.newest_ready_version(model)
    if version is None or release_order(old := releases.last_release(watch, model)) >= release_order(new):
        return False
    for step in list_steps(old, new):
        if _open_round(watch, version, cause=Cause.RELEASE, key=_release_key(step), old=old, new=step) is not None:
            return True
        # this step has had its round; once that round is over, even without a result, take the next step
        if watch.rounds.filter(key=_release_key(step), version__model=model).exclude(state=RoundState.JUDGED).exists():
            return False
    return False


def _release_key(version: str) -> str:
    return f"release:{version}"


def open_version_rounds() -> int:
    """Open rounds for each watched model's newest version, if it was uploaded since the last call; return how many.

    Depending on the watch, one round compares releases on that version, and another one compares it with the version
    before. Only the newest ready one of several new versions gets rounds. Versions that were uploaded after one that is
    still being inspected wait for a later call. There is no round where the watch knows no later release than its
    reference, or where there is no version before. Versions of branches get none.
    """
    count = 0
    for watch in Watch.objects.filter(Q(on_version=True) | Q(compares_versions=True), is_active=True):
        models = releases.watched_models(watch)
        unseen = Version.objects.not_removed().on_main_line().filter(model__in=models, pk__gt=watch.seen_version)
        unseen = unseen.order_by("model_id", "number")

        # versions that were uploaded after one that is still being inspected wait
        states = (VersionState.READY, VersionState.REJECTED)
        first_waiting = min((version.pk for version in unseen if version.state not in states), default=None)
        inspected = [version for version in unseen if first_waiting is None or version.pk < first_waiting]

        # open rounds for the newest ready version of each model
        ready = [version for version in inspected if version.state == VersionState.READY]
        for _, versions in groupby(ready, key=lambda version: version.model_id):
            newest = [*versions][-1]
            if watch.on_version:
                count += _compare_releases_on(watch, newest)
            if watch.compares_versions:
                count += _compare_with_previous_version(watch, newest)

        # do not look at these versions again
        if inspected:
            last_seen = max(version.pk for version in inspected)
            Watch.objects.filter(pk=watch.pk, seen_version__lt=last_seen).update(seen_version=last_seen)
    return count


def _compare_releases_on(watch: Watch, version: Version) -> bool:
    """Open a round that compares the latest release with the reference on a new version; False where none is opened."""
    new = _find_latest_release(watch, version)
    if new == watch.reference:
        return False
    key = f"version:{version.pk}"
    return _open_round(watch, version, cause=Cause.VERSION, key=key, old=watch.reference, new=new) is not None


def _compare_with_previous_version(watch: Watch, version: Version) -> bool:
    """Open a round that compares a new version with the one before it; False where none is opened."""
    base = previous_version(version)
    if base is None:
        return False
    key, sides = f"versions:{version.pk}", {"old": str(base.number), "new": str(version.number)}
    return _open_round(watch, version, cause=Cause.VERSION, key=key, **sides, base=base) is not None


def open_scheduled_rounds() -> int:
    """Open rounds of the watches whose scheduled time has come; return how many.

    The watch's next time is set first. A model gets no round without a ready version, or where the latest release is
    the reference. The latest is the one measured last or, if the watch has `on_release` and it is later, the newest.
    """
    count = 0
    due = Watch.objects.filter(is_active=True, next_at__lte=timezone.now()).exclude(schedule="")
    for watch in due:
        # a conditional UPDATE, so that one of several workers opens the rounds
        mine = Watch.objects.filter(pk=watch.pk, next_at=watch.next_at)
        if mine.update(next_at=next_due_at(watch.schedule)) and watch.next_at is not None:
            count += _open_round_of_each_model(watch, key=f"schedule:{watch.next_at:%Y-%m-%dT%H:%M}")
    return count


def _open_round_of_each_model(watch: Watch, *, key: str) -> int:
    count = 0
    for version in filter(None, map(releases.newest_ready_version, releases.watched_models(watch))):
        new = _find_latest_release(watch, version)
        if new != watch.reference:
            watch_round = _open_round(watch, version, cause=Cause.SCHEDULE, key=key, old=watch.reference, new=new)
            count += watch_round is not None
    return count


def call_watch(
    *, watch: Watch, by: User, candidate: str = "", baseline: str = "", versions: Iterable[Version] = ()
) -> list[WatchRound]:
    """Open rounds because a person or a pipeline asks for them, and return them.

    They compare the releases `candidate` (by default the newest one) and `baseline` (by default the pinned reference)
    on `versions` (by default the newest ready version of each model). An inactive watch may be called too. Raises
    NotAllowed without the right to run in the team, Invalid for an unknown release, for two equal ones or for a version
    that is not watched, and Conflict where no model has a ready version.
    """
    if not can_write(by, team=watch.team):
        raise NotAllowed(f"You can view the watches of team “{watch.team.name}” but not run them.")
    old = check_release(watch.distribution, baseline) if baseline else watch.reference
    new = check_release(watch.distribution, candidate) if candidate else releases.newest_release(watch) or old
    if old == new:
        raise Invalid(f"Both sides are {new}: name another candidate or baseline.", code="same_release")
    models, chosen = releases.watched_models(watch), list(versions)
    model_ids = {model.pk for model in models}
    if foreign := [version for version in chosen if version.model_id not in model_ids]:
        raise Invalid(f"{foreign[0]} is not watched by “{watch.name}”.", code="not_watched")
    key = f"call:{secrets.token_hex(8)}"
    opened = [
        _open_round(watch, version, cause=Cause.CALL, key=key, old=old, new=new)
        for version in chosen or filter(None, map(releases.newest_ready_version, models))
    ]
    rounds = [watch_round for watch_round in opened if watch_round is not None]
    if not rounds:
        raise Conflict(f"No model of “{watch.name}” has a version ready to measure.", code="nothing_to_measure")
    return rounds


def _find_latest_release(watch: Watch, version: Version) -> str:
    """Find the later of the release that the watch measured last and, where it follows releases, the newest one."""
    measured = releases.last_release(watch, version.model)
    newest = releases.newest_release(watch) if watch.on_release else None
    return max((measured, newest or measured), key=release_order)


def _open_round(
    watch: Watch, version: Version, *, cause: Cause, key: str, old: str, new: str, base: Version | None = None
) -> WatchRound | None:
    """Open a round; return None where the cause `key` already has a round on this version.

    `base` is a version to compare `version` with; both are then measured with the latest release for the watch.
    """
    pinned = watch.reference if base is None else _find_latest_release(watch, version)
    try:
        with transaction.atomic():
            return WatchRound.objects.create(
                watch=watch, version=version, base=base, cause=cause, key=key, old=old, new=new, pinned=pinned
            )
    except IntegrityError:
        return None
