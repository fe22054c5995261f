"""The page of a node: its machine and health, its work, the actions on it, its limits, and trials of providers."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.reading import facts
from dashboard.reading.ledgers import DAYS, describe_week, waiting_table, work_table, write_heading
from dashboard.reading.runs import link_run
from dashboard.views.access import action, carry_out, page, signed_in_user, split_names
from farm.base.grouping import group_by
from farm.base.refusals import Invalid, Missing, NotAllowed, Refusal
from farm.contract.reports import Facts
from farm.fleet import selectors, services
from farm.fleet.states import NodeHealth, Trials, TrialState
from farm.rules.comparing.margins import NoiseFloor
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_count, as_number, as_time
from farm.rules.wording import numbers
from farm.runs.selectors import Before, recent_node_states
from farm.runs.selectors.ledger import ledger
from farm.runs.selectors.queues import current_work, upcoming_blocks

if TYPE_CHECKING:
    from farm.accounts.models import User
    from farm.fleet.models import Node, Trial


NUMBER = re.compile(r"\d+(?:\.\d+)?")
TURBO = {None: numbers.NOT_MEASURED, True: "on", False: "off"}


def list_advice(facts: Facts, before: Sequence[Before]) -> list[str]:
    """List what the owner could do to get more precise measurements, each kind of advice once.

    A sentence is the newest of its kind, with the range of each number that varied, followed by the number of recent
    blocks before which the advice applied.
    `before`: what was read before each of the last blocks, the newest first. Where it is empty, the advice in `facts`,
    the node's last report, is returned.
    """
    if not before:
        return list(facts.advice)
    kinds = group_by((sentence for block in before for sentence in block.facts.advice), _find_kind)
    return [f"{_write_ranges(known)} {_describe_frequency(len(known), len(before))}" for known in kinds.values()]


def make_readings_table(before: Sequence[Before]) -> tuple[Table, list[str]]:
    """Make the table of what was read before each of a node's last blocks. Columns without any reading are left out.
    The second value lists their headings, which say what the machine does not report."""
    columns: tuple[Column[Before], ...] = (
        Column("Block", lambda read: replace(link_run(read.run), text=f"run {read.run}, {read.facts.block}")),
        Column("When", lambda read: as_time(read.at)),
        Number("load, 1 min", lambda read: _number_entry(read.facts.load_1m, 1)),
        Number(
            "other programs",
            lambda read: replace(as_number(read.facts.busy_share, numbers.share), share=read.facts.busy_share),
            "their share of the processor",
        ),
        Number("other runners", lambda read: _number_entry(read.facts.other_runners, 0)),
        Column("Governor", lambda read: Entry(read.facts.governor or numbers.NOT_MEASURED)),
        Column("Turbo", lambda read: Entry(TURBO[read.facts.turbo])),
        Number("°C", lambda read: _number_entry(read.facts.temperature_c, 0)),
    )
    every = Table.of("before", "What was read just before each block", columns, before)
    table = every.without_unmeasured()
    return table, [head.text for head in every.heads if head not in table.heads]


def _number_entry(value: float | None, decimals: int) -> Entry:
    return Entry() if value is None else Entry(numbers.fixed(value, decimals), value)


def _find_kind(sentence: str) -> str:
    """Reduce a sentence of advice to its kind: its first clause, with every number replaced by `#`."""
    first = sentence.partition(":")[0].replace("Another runner", "1 other runners")
    return NUMBER.sub("#", first)


def _write_ranges(sentences: Sequence[str]) -> str:
    """Write the first of sentences of one kind, with the range of each number of its first clause that varied."""
    first, colon, rest = sentences[0].partition(":")
    columns = zip(*(NUMBER.findall(sentence.partition(":")[0]) for sentence in sentences), strict=False)
    ranges = iter("–".join(sorted({min(column, key=float), max(column, key=float)}, key=float)) for column in columns)
    return f"{NUMBER.sub(lambda found: next(ranges, found[0]), first)}{colon}{rest}"


def _describe_frequency(count: int, blocks: int) -> str:
    if blocks == 1:
        return "Seen before its only block."
    return f"Seen before {'each' if count == blocks else count} of the last {blocks} blocks."


EVENTS_SHOWN = 50
TRIALS_SHOWN = 10
TRIAL_ANSWERS: dict[str, Callable[..., "Trial"]] = {"allow": services.allow_trial, "decline": services.decline_trial}
# answers that somebody may give now, each with the label of its button
Buttons = tuple[tuple[str, str], ...]
# the answers that the owner may give in each state of a trial
TRIAL_BUTTONS: dict[str, Buttons] = {
    TrialState.ASKED: (("allow", "Allow"), ("decline", "Decline")),
    TrialState.PENDING: (("decline", "Decline"),),
}
BLOCKS_SHOWN = 10
# the actions on a node, each with its service, the label of its button, and the end of the message when it is done
ORDERS: dict[str, tuple[Callable[..., object], str, str]] = {
    "approve": (services.approve, "Approve", "approved"),
    "drain": (services.drain, "Drain", "draining"),
    "resume": (services.resume, "Resume", "taking blocks again"),
    "revoke": (services.revoke, "Retire", "retired"),
}
# the actions that each health allows
ORDERS_OF = {
    NodeHealth.PENDING: ("approve", "revoke"),
    NodeHealth.ACTIVE: ("drain", "revoke"),
    NodeHealth.DRAINING: ("resume", "revoke"),
    NodeHealth.QUARANTINED: ("resume", "revoke"),
}
GIB = 1024**3
MAX_DIGITS = 12
# number fields: name, unit, and the minimum and maximum in that unit that `NodeSettings` allows
NUMBERS = {
    "minutes": ("maximum block length", "minutes", 0.5, 1440),
    "temperature": ("maximum CPU temperature", "°C", 30, 120),
    "cache": ("model cache", "GiB", 1, 2**20),
    "runtimes": ("runtime cache", "GiB", 1, 2**20),
}
FIELDS = ("hours", "timezone", *NUMBERS, "tags", "teams", "trials")
FIELD_OF_CODE = {"bad_tag": "tags", "not_found": "teams"}
Shown = dict[str, str]


def fill_form(node: "Node") -> Shown:
    """Make the texts of the form from the node's limits, in minutes, °C and GiB. The temperature is empty where no
    limit is set."""
    limits = node.settings
    return {
        "is_paused": "yes" if limits.is_paused else "",
        "hours": limits.hours,
        "timezone": limits.timezone,
        "minutes": f"{limits.max_block_s / 60:g}",
        "temperature": "" if limits.max_temperature_c is None else f"{limits.max_temperature_c:g}",
        "cache": f"{limits.cache_bytes / GIB:g}",
        "runtimes": f"{limits.runtimes_bytes / GIB:g}",
        "tags": " ".join(node.owner_tags),
        "trials": node.trials_allowed,
        "teams": ", ".join(lending.team.name for lending in node.lendings.select_related("team")),
    }


def parse_limits(given: Shown) -> dict[str, str | bool | float | None]:
    """Parse the typed limits to the arguments of the service, in seconds, °C and bytes. An empty temperature means no
    limit, and an empty time zone is UTC. Raises Invalid, with the field as its code, for a number outside the limits in
    NUMBERS. Hours and time zone are not checked here but by the service."""
    return {
        "is_paused": given["is_paused"] == "yes",
        "hours": given["hours"].replace(" ", "").replace("–", "-"),
        "timezone": given["timezone"].strip() or "UTC",
        "max_block_s": _parse_number(given, "minutes") * 60,
        "max_temperature_c": _parse_number(given, "temperature") if given["temperature"].strip() else None,
        "cache_bytes": int(_parse_number(given, "cache") * GIB),
        "runtimes_bytes": int(_parse_number(given, "runtimes") * GIB),
    }


def _parse_number(given: Shown, field: str) -> float:
    """Parse a number with a decimal `.` or `,`. Raises Invalid for anything but a number within the field's limits."""
    text = given[field].strip().replace(",", ".")
    is_number = text.isascii() and text.replace(".", "", 1).isdecimal() and len(text) <= MAX_DIGITS
    label, unit, least, most = NUMBERS[field]
    if not is_number or not least <= float(text) <= most:
        raise Invalid(f"The {label} is “{text[:20]}”: write a number of {unit} from {least:g} to {most:g}.", code=field)
    return float(text)


@page
def node(request: HttpRequest, node_id: int) -> HttpResponse:
    return render_node(request, selectors.node(signed_in_user(request), node_id))


def render_node(request: HttpRequest, row: "Node", *, status: int = 200, **more: object) -> HttpResponse:
    """Render the page of a node. `more` replaces parts of its context, such as `limits` by the typed texts, and
    `errors`."""
    floor = selectors.noise_floor(row)
    before = recent_node_states(row, limit=BLOCKS_SHOWN)
    user = signed_in_user(request)
    work = ledger(user, row, days=DAYS)
    now, waiting = current_work(user, [row])[row.pk], upcoming_blocks(user, [row])[row.pk]
    readings, unreadable = make_readings_table(before)
    context = {
        "node": row,
        "heading": write_heading(row, now, before),
        "because": describe_week(work, waiting, before, floor),
        "facts": facts.list_node_facts(row),
        "limits": fill_form(row),
        "lendings": list(row.lendings.select_related("team", "answered_by")),
        "trials": list_answerable(row.trials.select_related("node", "asked_by", "answered_by")[:TRIALS_SHOWN], user),
        "trial_choices": Trials.choices,
        "self_test_facts": facts.list_self_test_facts(row),
        "advice": list_advice(row.facts, before),
        "before": readings,
        "unreadable": ", ".join(unreadable),
        "floor": floor,
        "floor_table": make_floor_table(floor),
        "alarms": selectors.false_alarms(row),
        "events": list(selectors.node_events(row)[:EVENTS_SHOWN]),
        "now": now,
        "next": waiting_table(waiting, row),
        "ledger": work,
        "days": DAYS,
        "work": work_table(work.work) if work else None,
        "may_manage": selectors.can_manage_node(user, row),
        "orders": [(what, ORDERS[what][1]) for what in ORDERS_OF.get(NodeHealth(row.health), ())],
        **more,
    }
    return render(request, "dashboard/node.html", context, status=status)


def make_floor_table(floor: NoiseFloor | None) -> Table:
    """Make the table of the smallest change that the node detects, by the number of rounds. It has no rows where the
    noise floor is not known."""
    columns: tuple[Column[tuple[int, float]], ...] = (
        Number("rounds", lambda seen: as_count(seen[0])),
        Number("smallest detectable change", lambda seen: as_number(seen[1], numbers.share)),
    )
    seen = floor.smallest_detectable.items() if floor else ()
    return Table.of("floor", "What so many rounds see on this node", columns, seen)


@action
def order(request: HttpRequest, node_id: int, what: str) -> HttpResponseBase:
    """Carry out the action `what`, a key of ORDERS, and redirect to the node's page, which shows a refusal. Raises
    Missing for any other action."""
    user = signed_in_user(request)
    row = selectors.node(user, node_id)
    if what not in ORDERS:
        raise Missing(f"Unknown action “{what}”.", hint="See the node's page for available actions.")
    act, _, done = ORDERS[what]
    carry_out(request, act, lambda _: f"{row.name} is {done}.", node=row, by=user)
    return redirect("dashboard:node", node_id=node_id)


def list_answerable(rows: "Iterable[Trial]", user: "User") -> list[tuple["Trial", Buttons]]:
    """List all these trials, each with buttons for the answers that its state allows. A trial has no buttons where the
    reader does not manage its node."""
    trials = list(rows)
    managed = {node for node in {trial.node for trial in trials} if selectors.can_manage_node(user, node)}
    return [(trial, TRIAL_BUTTONS.get(trial.state, ()) if trial.node in managed else ()) for trial in trials]


@action
def ask_trial(request: HttpRequest, node_id: int) -> HttpResponseBase:
    """Ask for a trial of the provider that the form names, and redirect to the node's page, which shows a refusal. The
    owner has to allow it unless the reader manages the node or the owner allows all trials."""
    user, provider = signed_in_user(request), request.POST.get("provider", "")
    row = selectors.node(user, node_id)
    carry_out(request, services.ask_for_trial, lambda trial: trial.words, node=row, provider=provider, by=user)
    return redirect("dashboard:node", node_id=node_id)


@action
def answer_trial(request: HttpRequest, trial_id: int, what: str) -> HttpResponseBase:
    """Carry out the owner's answer `what`, a key of TRIAL_ANSWERS, and redirect to the node's page, which shows a
    refusal. Raises Missing for any other answer."""
    user = signed_in_user(request)
    found = selectors.trial(user, trial_id)
    if what not in TRIAL_ANSWERS:
        raise Missing(f"Unknown answer “{what}”.", hint="See the node's page for available answers.")
    carry_out(request, TRIAL_ANSWERS[what], lambda trial: trial.words, trial=found, by=user)
    return redirect("dashboard:node", node_id=found.node_id)


@action
def save_settings(request: HttpRequest, node_id: int) -> HttpResponseBase:
    """Save the form of a node's limits, all of it or nothing, and redirect to the node's page. A missing field is
    empty, and an empty `trials` leaves them as they are. A refusal is shown at its field, and the typed texts are kept.
    People who may not change the limits are redirected to the node's page with a message."""
    user = signed_in_user(request)
    row = selectors.node(user, node_id)
    given = {name: request.POST.get(name, "").replace("\x00", "")[:500] for name in ("is_paused", *FIELDS)}
    try:
        with transaction.atomic():
            limits = parse_limits(given)
            trials = given["trials"] or None
            services.change_settings(node=row, by=user, tags=given["tags"].split(), trials=trials, **limits)
            services.share(node=row, by=user, teams=split_names(given["teams"]))
        messages.success(request, f"The limits of {row.name} were saved.")
    except NotAllowed as refusal:
        # such readers see no form in which to show the refusal
        messages.error(request, str(refusal))
    except Refusal as refusal:
        fresh = selectors.node(user, node_id)
        field = FIELD_OF_CODE.get(refusal.code, refusal.code)
        errors = {field if field in FIELDS else FIELDS[0]: str(refusal)}
        return render_node(request, fresh, status=refusal.status, limits=given, errors=errors)
    return redirect("dashboard:node", node_id=node_id)
