"""Creates, changes and removes watches; each of these is written to the audit log."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypedDict, Unpack, cast

from croniter import CroniterError, croniter
from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from pydantic import ValidationError

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_write
from farm.accounts.services import record
from farm.alerts.models import Channel, Watch
from farm.alerts.services import index
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.contract.cells import Runtime
from farm.contract.texts import strip_pydantic_prefix
from farm.registry.models import Model, Version
from farm.rules.changes.watch_rounds import Rule
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import explain_unpairable
from farm.rules.runtimes import distributions, plugins, releases
from farm.rules.runtimes.allowances import package_names
from farm.rules.runtimes.distributions import WATCHED, RuntimeProblem, normalise_version
from farm.rules.runtimes.nearest import choice_sentence
from farm.runs.services import read_matrix
from farm.runs.services.run_plans import Declared

# watches of a team
MAX_WATCHES = 200
# boolean settings, and all settings that may be changed later (with the same checks as in a new watch)
FLAGS = ("on_release", "on_version", "with_prereleases", "compares_versions", "is_active")
CHANGEABLE = ("matrix", "rule", "reference", "schedule", *FLAGS)


class Changes(TypedDict, total=False):
    """Settings of a watch that can be changed. A missing one keeps its value, or has its default in a new watch."""

    matrix: Declared
    rule: Mapping[str, object] | Rule | None
    reference: str
    schedule: str
    on_release: bool
    on_version: bool
    with_prereleases: bool
    compares_versions: bool
    is_active: bool
    channels: Iterable[Channel]


class WatchSettings(Changes, total=False):
    """All settings of a watch: those that can be changed, and two that stay as they are."""

    label: str
    distribution: str


def create_watch(
    *,
    team: Team,
    by: User,
    name: str,
    watched: Iterable[Model] = (),
    **watch_settings: Unpack[WatchSettings],
) -> Watch:
    """Create a watch. `reference` has to be given, and `watched`, `label` or both.

    Without `distribution` it watches `onnxruntime`, and without `matrix` it measures the default matrix. Raises
    NotAllowed without the right to run in the team, Invalid for a wrong setting, Conflict for a name that is taken or
    where the team has MAX_WATCHES.
    """
    _check_may_write(team, by)
    name = _check_name(team, name)
    models, label = list(watched), watch_settings.pop("label", "")
    distribution = watch_settings.pop("distribution", "onnxruntime")
    channels = watch_settings.pop("channels", ())
    _check_models(team, models, label)
    _check_distribution(distribution)
    changeable = cast(Changes, {"matrix": None, "rule": None, "reference": "", **watch_settings})
    columns = _read_columns(changeable, distribution=distribution)
    with transaction.atomic():
        watch = Watch.objects.create(
            team=team,
            name=name,
            created_by=by,
            label=label.strip(),
            distribution=distribution,
            # existing versions are not new to the watch
            seen_version=Version.objects.aggregate(newest=Max("pk"))["newest"] or 0,
            **columns,
        )
        watch.watched.set(models)
        watch.channels.set(_check_channels(team, channels))
        record(verb="watch created", subject=name, actor=by, team=team)
    return watch


def change_watch(*, watch: Watch, by: User, **changes: Unpack[Changes]) -> Watch:
    """Change some of CHANGEABLE, or `channels`, which replace the present ones; what is not named stays.

    A matrix with `pre` sets `with_prereleases`, as in a new watch. Raises NotAllowed without the right to run in the
    team, and Invalid for a wrong setting, or one that stays as it is.
    """
    _check_may_write(watch.team, by)
    channels = changes.pop("channels", None)
    columns = _read_columns(changes, distribution=watch.distribution)
    with transaction.atomic():
        for field, value in columns.items():
            setattr(watch, field, value)
        watch.save(update_fields=[*columns])
        if channels is not None:
            watch.channels.set(_check_channels(watch.team, channels))
        record(verb="watch changed", subject=watch.name, actor=by, team=watch.team, facts={"changed": [*changes]})
    return watch


def remove_watch(*, watch: Watch, by: User) -> None:
    """Delete a watch with its rounds and alerts; its runs stay.

    Raises NotAllowed without the right to run in the team.
    """
    _check_may_write(watch.team, by)
    record(verb="watch removed", subject=watch.name, actor=by, team=watch.team)
    watch.delete()


def check_release(distribution: str, version: str) -> str:
    """Return the version of a release in its normal form.

    `version` may have the distribution in front (`onnxruntime==1.31.0`). The version of a plug-in may name the ONNX
    Runtime that is installed with it, as `0.2.0+onnxruntime==1.30.0`. Where the plug-in needs one and `version` names
    none, the newest that its range allows is added. The package index is asked where the farm does not know the
    release. Raises Invalid, with the nearest release, where it stays unknown or was yanked.
    """
    runtime = _parse_release(distribution, version.strip().removeprefix(f"{distribution}=="))
    known_releases = index.find_releases([runtime])
    sentence = releases.unknown_sentence(runtime, extra=known_releases.releases, yanked=known_releases.yanked)
    if sentence is not None:
        raise Invalid(f"{sentence} {known_releases.silence}".strip(), code="unknown_runtime")
    return runtime.version


def _parse_release(distribution: str, version_text: str) -> Runtime:
    if version := normalise_version(distribution, version_text):
        version_text = version
    elif "+" not in version_text:
        raise Invalid(f"“{version_text[:40]}” is not a version: write it like 1.29.0.", code="unknown_runtime")
    try:
        return distributions.parse_runtime(f"{distribution}=={version_text}", allowed=settings.ALLOWED_PACKAGES)
    except RuntimeProblem as problem:
        raise Invalid(str(problem), code="unknown_runtime") from problem


def next_due_at(schedule: str, *, after: datetime | None = None) -> datetime | None:
    """Find the next time of a schedule (five fields of cron, UTC) after `after` or now; None for an empty schedule.

    Raises CroniterError for a text that is no schedule.
    """
    if not schedule:
        return None
    due_at: datetime = croniter(schedule, after or timezone.now()).get_next(datetime)
    return due_at


def _check_may_write(team: Team, user: User) -> None:
    if not can_write(user, team=team):
        raise NotAllowed(f"You can view the watches of team “{team.name}” but not change them.")


def _check_name(team: Team, name: str) -> str:
    name = name.strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise Invalid("A watch's name has 1 to 100 printable characters.", code="bad_name")
    if Watch.objects.filter(team=team, name=name).exists():
        raise Conflict(f"There is already a watch “{name}” in team “{team.name}”.", code="name_taken")
    if Watch.objects.filter(team=team).count() >= MAX_WATCHES:
        raise Conflict(f"Team “{team.name}” has {MAX_WATCHES} watches; remove some.", code="too_many")
    return name


def _check_models(team: Team, models: list[Model], label: str) -> None:
    foreign = [model.name for model in models if model.team_id != team.pk]
    if foreign:
        raise Invalid(f"The model {foreign[0]} is not of team “{team.name}”.", code="foreign_model")
    if not models and not label.strip():
        raise Invalid("A watch needs at least one model, or a label of the registry.", code="no_models")
    if len(label.strip()) > 100:
        raise Invalid("A label has at most 100 characters.", code="bad_label")


def _check_distribution(distribution: str) -> None:
    if distribution in package_names(settings.ALLOWED_PACKAGES) or distribution in WATCHED:
        return
    if plugins.third_party_plugin(distribution) is not None:
        raise Invalid(distributions.not_allowed_sentence(distribution), code="unknown_runtime")
    raise Invalid(choice_sentence("distribution", distribution, WATCHED), code="unknown_runtime")


def _read_columns(changes: Changes, *, distribution: str) -> dict[str, object]:
    """Check settings and return the columns that store them. Raises Invalid."""
    if unknown := next((key for key in changes if key not in CHANGEABLE), None):
        raise Invalid(choice_sentence("setting of a watch", unknown, CHANGEABLE), code="unknown_setting")
    columns: dict[str, object] = {key: bool(value) for key, value in changes.items() if key in FLAGS}
    if "matrix" in changes:
        declared = _read_watch_matrix(changes["matrix"])
        # the choice of pre-releases is stored in a column of the watch instead
        columns["matrix"] = replace(declared, pre=False).as_plain()
        columns |= {"with_prereleases": True} if declared.pre else {}
    if "rule" in changes:
        columns["rule_json"] = _read_rule(changes["rule"]).as_stored
    if "reference" in changes:
        columns["reference"] = check_release(distribution, changes["reference"])
    if "schedule" in changes:
        schedule = _read_schedule(changes["schedule"] or "")
        columns |= {"schedule": schedule, "next_at": next_due_at(schedule)}
    return columns


def _read_watch_matrix(declared: Declared) -> Matrix:
    """Check a watch's matrix, which may have no runtime axis; for None, take the default one without its runtimes."""
    if declared is None:
        declaration = matrices.default_matrix().as_plain()
        declaration["matrix"].pop("runtime", None)
        return read_matrix(declaration)
    matrix = read_matrix(declared)
    if matrix.models:
        raise Invalid(
            "A watch compares releases, and versions where it is told to compare each with the one before: leave "
            "`models` out of its matrix.",
            code="matrix",
        )
    rules = [*matrix.include, *matrix.exclude]
    if "runtime" in matrix.axes or any("runtime" in rule for rule in rules):
        raise Invalid(
            "A watch sets the runtimes by itself: leave `runtime` out of its matrix, and give the pinned release as "
            "its reference.",
            code="matrix",
        )
    if (sentence := explain_unpairable(matrix)) is not None:
        raise Invalid(sentence, code="matrix")
    return matrix


def _read_rule(rule: Mapping[str, object] | Rule | None) -> Rule:
    if isinstance(rule, Rule):
        return rule
    try:
        return Rule.model_validate(dict(rule or {}))
    except ValidationError as problem:
        first = problem.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise Invalid(
            f"The rule's {field} cannot be used: {strip_pydantic_prefix(first['msg'])}.", code="rule"
        ) from None


def _read_schedule(text: str) -> str:
    text = " ".join(text.split())
    if not text:
        return ""
    try:
        croniter(text).get_next()  # raises for a day that never comes, such as 31 April
    except (CroniterError, ValueError):
        is_bad = True
    else:
        is_bad = len(text.split()) != 5
    if is_bad:
        raise Invalid(
            f"The schedule {text[:60]!r} is not five fields of cron: write it like `0 3 * * 1`, Mondays at 3:00 UTC.",
            code="schedule",
        )
    return text


def _check_channels(team: Team, channels: Iterable[Channel]) -> list[Channel]:
    checked = list(channels)
    if any(channel.team_id != team.pk for channel in checked):
        raise Invalid(f"A channel is not of team “{team.name}”.", code="foreign_channel")
    return checked
