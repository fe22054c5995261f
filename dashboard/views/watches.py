"""The pages of the list of watches, of a watch with its rounds, and of its form, and the actions on a watch. A refusal
that belongs to no field of the form is shown at `name`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render

from dashboard.reading import alerts as alert_reading
from dashboard.reading import file_rows
from dashboard.reading import watches as reading
from dashboard.views import lists, trends
from dashboard.views.access import action, form_page, page, read_fields, signed_in_user, team_choice
from dashboard.views.lists import Row, make_page
from farm.accounts.selectors import can_write, team_to_write
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import pages
from farm.alerts.selectors.channels import channels_visible_to
from farm.alerts.selectors.releases import list_choices, list_known_releases, watched_models
from farm.alerts.services import causes
from farm.alerts.services import watches as services
from farm.alerts.states import OPEN_ALERTS
from farm.base.refusals import Invalid, Missing, NotAllowed, Refusal
from farm.contract.numbers import is_row_number
from farm.registry.selectors import models_visible_to, newest_version_states
from farm.registry.states import VersionState
from farm.rules.changes.watch_rounds import Rule
from farm.rules.findings.kinds import KEYS
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix_text import write_text
from farm.rules.runtimes.allowances import package_names
from farm.rules.runtimes.distributions import WATCHED
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.accounts.models import User
    from farm.alerts.models import Watch


LIMITS = {name: field.title for name, field in Rule.model_fields.items() if field.title}
# fields of the form that are attributes of a watch with the same names
TEXTS = ("name", "label", "distribution", "reference", "schedule")
FLAGS = ("on_release", "on_version", "with_prereleases", "compares_versions")
# fields that can be changed after the watch was created
SETTINGS = ("matrix", "reference", "schedule", *FLAGS)
FIELD_OF_CODE = {
    **dict.fromkeys(("bad_name", "name_taken", "too_many"), "name"),
    **dict.fromkeys(("not_found", "not_allowed", "team_not_named"), "team"),
    **{"no_models": "models", "foreign_model": "models", "bad_label": "label", "foreign_channel": "channels"},
    **{"unknown_runtime": "reference", "matrix": "matrix", "schedule": "schedule"},
}
ROUNDS_SHOWN = 30
ALERTS_SHOWN = 10
MODELS_OFFERED = 100


# the typed values of the form, by field: `models` and `channels` are row numbers as texts, `limits` are in percent
Typed = dict[str, Any]


def empty_form() -> Typed:
    """Make the values of the form of a new watch: the default matrix without runtimes, all kinds of change, and the
    newest known release as reference."""
    plain = matrices.default_matrix().as_plain()
    plain["matrix"].pop("runtime", None)
    return {
        "name": "", "label": "", "team": "", "distribution": "onnxruntime", "reference":
        list_known_releases().newest.version, "matrix": write_text(plain), "schedule": "", "models": [], "channels": [],
        "kinds": list(KEYS), "on_release": True, "on_version": True, "with_prereleases": False, "compares_versions":
        False, "limits": _format_percents(Rule()), }  # fmt: skip


def fill_form(watch: "Watch") -> Typed:
    """Make the values of the form of an existing watch."""
    return {
        **{name: getattr(watch, name) for name in (*TEXTS, *FLAGS)},
        "team": watch.team.name,
        "matrix": write_text(watch.matrix),
        "models": [str(model.pk) for model in watch.watched.all()],
        "channels": [str(channel.pk) for channel in watch.channels.all()],
        "kinds": list(watch.rule.kinds),
        "limits": _format_percents(watch.rule),
    }


def read_form(post: QueryDict) -> Typed:
    """Read the form as it was typed. Nothing is checked; only NUL bytes are removed. Missing fields are empty, and
    missing ticks False."""
    texts = {name: str(post.get(name, "")).replace("\x00", "") for name in (*TEXTS, "team", "matrix", *LIMITS)}
    return {
        **{name: texts[name] for name in (*TEXTS, "team", "matrix")},
        **{name: bool(post.get(name)) for name in FLAGS},
        **{name: post.getlist(name) for name in ("models", "channels", "kinds")},
        "limits": {name: texts[name] for name in LIMITS},
    }


def _format_percents(rule: Rule) -> dict[str, str]:
    return {name: f"{100 * getattr(rule, name):g}" for name in LIMITS}


def parse_rule(given: Typed) -> dict[str, float | list[str]]:
    """Parse the rule for the service, with limits as fractions. Unknown kinds are dropped. Raises Invalid, with the
    field as its code, where no kind is left and for a limit that is no percentage from 0 to 10000."""
    kinds: list[str] = [kind for kind in given["kinds"] if kind in KEYS]
    if not kinds:
        raise Invalid("Select at least one kind of change: otherwise the watch would never alert.", code="kinds")
    return {"kinds": kinds, **{name: _parse_fraction(name, text) for name, text in given["limits"].items()}}


def _parse_fraction(name: str, text: str) -> float:
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0.0 <= percent <= 10_000.0:
        raise Invalid(f"“{text[:20]}” is not a valid limit: enter a percentage from 0 to 10000.", code=name)
    return percent / 100.0


def field_of_refusal(refusal: Refusal) -> str:
    return FIELD_OF_CODE.get(refusal.code) or (refusal.code if refusal.code in (*LIMITS, "kinds") else "name")


@page
def watches(request: HttpRequest) -> HttpResponse:
    """Show a page of the watches of the reader's teams, by name, each with a sentence and its last result. `as` asks
    for a file instead, of all pages but at most lists.MAX_ROWS rows."""
    rows = selectors.watches_visible_to(signed_in_user(request)).order_by("name", "pk")
    if lists.wants_file(request):
        return lists.render_file(request, "watches", rows[: lists.MAX_ROWS], file_rows.watch_row)
    page_of_watches = make_page(request, rows)
    rounds, opened = pages.last_rounds(page_of_watches), pages.open_alerts_by_watch(page_of_watches)
    queries = pages.list_index_looks()
    lines = [
        reading.make_line(watch, rounds=rounds.get(watch.pk, []), alerts=opened.get(watch.pk, []), queries=queries)
        for watch in page_of_watches
    ]
    alerts = [alert for listed in opened.values() for alert in listed]
    counts = reading.write_headline(lines)
    context = {
        "headline": alert_reading.write_headline(alerts, len(alerts)) if alerts else counts,
        "because": counts if alerts else "",
        "watches": page_of_watches,
        "lines": lines,
    }
    return render(request, "dashboard/watches.html", context)


@page
def watch(request: HttpRequest, watch_id: int) -> HttpResponse:
    return _render_watch(request, selectors.watch(signed_in_user(request), watch_id))


def _render_watch(request: HttpRequest, row: "Watch", *, status: int = 200, **more: object) -> HttpResponse:
    alerts = list(pages.alerts_of_watch(row))
    opened = [alert for alert in alerts if alert.state in OPEN_ALERTS]
    last = reading.find_status(pages.last_rounds([row]).get(row.pk, []), opened)
    may_write = can_write(signed_in_user(request), team=row.team)
    models, rounds = watched_models(row), list(selectors.rounds_of(row)[:ROUNDS_SHOWN])
    context = {
        "watch": row,
        "what": reading.describe_watch(row),
        "next": reading.describe_next_start(row, pages.list_index_looks()),
        "last": last,
        "judged": max(((seen.judged_at, seen.new) for seen in rounds if seen.judged_at), default=None),
        "rule": row.rule.describe_kinds(),
        "models": models,
        "rounds": reading.make_rounds_table(rounds),
        "alert_table": alert_reading.make_table(alerts[:ALERTS_SHOWN], writable=[row.team_id] if may_write else []),
        "figure": trends.draw_watch(row)[0],
        "matrix_text": write_text(row.matrix),
        "may_write": may_write,
        "releases": list_choices(row.distribution, reference=row.reference, with_prereleases=row.with_prereleases),
        **more,
    }
    return render(request, "dashboard/watch.html", context, status=status)


@form_page
def new(request: HttpRequest) -> HttpResponseBase:
    """Show the form of a new watch; `model` in the address selects a model. A POST creates the watch and redirects to
    it, or shows the form again with the typed values and what is wrong. Models and channels that the reader may not see
    are ignored."""
    if request.method != "POST":
        wanted = request.GET.get("model", "")
        given = empty_form()
        given["models"] = [wanted] if wanted.isdecimal() else []
        return _render_form(request, given)
    given, user = read_form(request.POST), signed_in_user(request)
    try:
        team = team_to_write(user, name=given["team"])
        made = services.create_watch(
            team=team,
            by=user,
            name=given["name"],
            watched=_select_rows(models_visible_to(user), given["models"]),
            label=given["label"],
            distribution=given["distribution"],
            channels=_select_rows(channels_visible_to(user), given["channels"]),
            rule=parse_rule(given),
            **{name: given[name] for name in SETTINGS},
        )
    except Refusal as refusal:
        return _render_form(request, given, errors={field_of_refusal(refusal): str(refusal)}, status=refusal.status)
    messages.success(request, f"Watch “{made.name}” was created.")
    return redirect("dashboard:watch", watch_id=made.pk)


@form_page
def edit(request: HttpRequest, watch_id: int) -> HttpResponseBase:
    """Show the form of an existing watch. A POST saves it and redirects to the watch, or shows the form again with the
    typed values and what is wrong. Only channels, the rule and SETTINGS can be changed; other models would interrupt
    the series."""
    user = signed_in_user(request)
    row = selectors.watch(user, watch_id)
    if request.method != "POST":
        return _render_form(request, fill_form(row), watch=row)
    given = read_form(request.POST)
    try:
        channels = _select_rows(channels_visible_to(user), given["channels"])
        settable = {name: given[name] for name in SETTINGS}
        services.change_watch(watch=row, by=user, channels=channels, rule=parse_rule(given), **settable)
    except Refusal as refusal:
        errors = {field_of_refusal(refusal): str(refusal)}
        return _render_form(request, given, watch=row, errors=errors, status=refusal.status)
    messages.success(request, f"“{row.name}” was saved.")
    return redirect("dashboard:watch", watch_id=watch_id)


def _select_rows(rows: QuerySet[Row], ids: list[str]) -> list[Row]:
    return list(rows.filter(pk__in=[int(text) for text in ids if is_row_number(text)]))


def _render_form(
    request: HttpRequest,
    given: Typed,
    *,
    watch: "Watch | None" = None,
    errors: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    user, errors = signed_in_user(request), errors or {}
    context = {
        "watch": watch,
        "typed": given,
        "errors": errors,
        "team_choice": team_choice(user, typed=given["team"]),
        **_list_offered_models(user, given["models"]),
        "channels": list(channels_visible_to(user)),
        "distributions": (*WATCHED, *sorted(package_names(settings.ALLOWED_PACKAGES) - {*WATCHED})),
        "kinds": reading.list_kinds(),
        "noisy": reading.name_noisy_kinds(),
        "limits": [(name, title, given["limits"][name], errors.get(name)) for name, title in LIMITS.items()],
        "releases": list_choices(
            given["distribution"], reference=given["reference"], with_prereleases=given["with_prereleases"]
        ),
    }
    return render(request, "dashboard/watch_form.html", context, status=status)


def _list_offered_models(user: "User", ticked: list[str]) -> dict[str, object]:
    """Make the context of the models to choose from, by name: the ticked models and the newest others that were not
    rejected. `further`: how many models are not offered."""
    every = models_visible_to(user)
    chosen = _select_rows(every, ticked)
    newest = list(every.order_by("-pk")[:MODELS_OFFERED])
    states = newest_version_states(newest)
    fit = [model for model in newest if states.get(model.pk) != VersionState.REJECTED]
    shown = {model.pk: model for model in [*chosen, *fit]}
    further = every.count() - len(shown) if len(newest) == MODELS_OFFERED else 0
    return {"models": sorted(shown.values(), key=lambda model: model.name), "further": further}


@action
def run_now(request: HttpRequest, watch_id: int) -> HttpResponseBase:
    """Order rounds of a watch now, of the release `candidate` against `baseline`; where these are empty, of the newest
    release against the reference. Redirects to the watch. A refusal is shown at its field, but NotAllowed is raised."""
    user = signed_in_user(request)
    row = selectors.watch(user, watch_id)
    given = read_fields(request, ("candidate", "baseline"))
    try:
        rounds = causes.call_watch(watch=row, by=user, candidate=given["candidate"], baseline=given["baseline"])
    except NotAllowed:
        # such readers see no form in which to show the refusal
        raise
    except Refusal as refusal:
        field = "baseline" if given["baseline"] and given["baseline"] in str(refusal) else "candidate"
        return _render_watch(request, row, status=refusal.status, errors={field: str(refusal)}, typed=given)
    done = f"{numbers.counted(len(rounds), 'round')} ordered: {rounds[0].old} → {rounds[0].new}."
    messages.success(request, done)
    return redirect("dashboard:watch", watch_id=watch_id)


@action
def order(request: HttpRequest, watch_id: int, what: str) -> HttpResponseBase:
    """Carry out `pause`, `resume` or `remove` on a watch. Redirects to the watch, or after `remove`, which deletes its
    alerts and keeps its runs, to the list of watches. Refusals are raised. Raises Missing for any other action."""
    user = signed_in_user(request)
    row = selectors.watch(user, watch_id)
    if what not in ("pause", "resume", "remove"):
        raise Missing(f"Unknown action “{what}”.", hint="See the watch's page for available actions.")
    if what == "remove":
        services.remove_watch(watch=row, by=user)
        messages.success(request, f"“{row.name}” was removed with its alerts; its runs are kept.")
        return redirect("dashboard:watches")
    services.change_watch(watch=row, by=user, is_active=what == "resume")
    done = "is resumed" if what == "resume" else "is paused"
    messages.success(request, f"“{row.name}” {done}.")
    return redirect("dashboard:watch", watch_id=watch_id)
