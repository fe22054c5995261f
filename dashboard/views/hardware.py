"""The page of a model across hardware: the best setting on each target, and whether it keeps the reader's limits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.figures import accuracies, latency, pareto
from dashboard.figures.figure import Figure, items_entry, latency_entry
from dashboard.reading import file_rows
from dashboard.reading.best_settings import CellAddress, cell_address, parse_budget, parse_number
from dashboard.views import lists
from dashboard.views.access import page, signed_in_user
from farm.accounts.selectors import can_write
from farm.registry import selectors
from farm.rules.cells.metrics import BY_NAME as METRICS
from farm.rules.presenting import hardware_words
from farm.rules.presenting.hardware import (
    By,
    Goal,
    Limits,
    MeasuredSetting,
    Target,
    find_loss,
    find_targets,
    select_version,
)
from farm.rules.presenting.hardware_words import LIMIT_CHECK_WORDS
from farm.rules.presenting.lines import judge_outputs
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_number, as_time, verdict_entry
from farm.rules.presenting.times import clock_title
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import Sign
from farm.runs.selectors.hardware import measured_across

GOALS = (("latency", "the lowest latency"), ("items", "the most items/s"))
WAYS = (("node", "node and hardware tag"), ("tag", "hardware tag"))
NEWEST, EVERY = "newest", "all"
SIGNS = {
    "kept": Sign("✓", LIMIT_CHECK_WORDS["kept"], "good"),
    "undecided": Sign("?", LIMIT_CHECK_WORDS["undecided"], "quiet"),
    "unknown": Sign("·", LIMIT_CHECK_WORDS["unknown"], "quiet"),
    "exceeded": Sign("✕", LIMIT_CHECK_WORDS["exceeded"], "quiet"),
}
# at most so many columns in the table of versions
MAX_TARGETS = 12


@dataclass(frozen=True)
class Asked:
    """The question in the address. `by`: what makes a target; `version`: a number, `newest` or `all`; `every`: targets
    that exceed the limits are shown too; `typed` and `errors`: the texts of the form's fields and what is wrong with
    them, by field."""

    limits: Limits
    goal: Goal
    by: By
    version: str
    every: bool
    typed: Mapping[str, str]
    errors: Mapping[str, str]


@dataclass(frozen=True)
class Panel:
    """The answer to the question. `left_out`: which settings are not considered, in words; `hidden`: how many targets
    exceed the limits and are not shown; `grid`: the table of versions and targets, None where one version was measured;
    `figure`: accuracy against latency, else the latencies of the best settings; `hint`: why accuracy is not drawn,
    empty where it is; `versions`: the measured versions, the newest first; `shown`: the targets of the table."""

    headline: str
    sentence: str
    left_out: str
    note: str
    table: Table
    hidden: int
    grid: Table | None
    figure: Figure
    hint: str
    versions: Sequence[int]
    shown: Sequence[Target]


def read_question(given: Mapping[str, str]) -> Asked:
    """Read the question from the parameters of an address. A `budget` (in ms) or `loss` (in percent) that cannot be
    read sets no limit and has an error. Other parameters fall back to their default without an error."""
    budget_ms, budget_error = parse_budget(given.get("budget", "")[:40])
    loss, loss_error = _read_loss(given.get("loss", "")[:40])
    version = given.get("version", "")
    is_number = version.isdecimal() and version.isascii() and len(version) < 10
    return Asked(
        limits=Limits(budget_ms, loss),
        goal="items" if given.get("goal") == "items" else "latency",
        by="tag" if given.get("by") == "tag" else "node",
        version=version if is_number or version == EVERY else NEWEST,
        every=given.get("every") == "yes",
        typed={name: given.get(name, "")[:40] for name in ("budget", "loss")},
        errors={name: error for name, error in (("budget", budget_error), ("loss", loss_error)) if error},
    )


def make_panel(measured: Sequence[MeasuredSetting], asked: Asked, address: CellAddress) -> Panel:
    """Find the best setting on each target. Targets that exceed the limits are counted, but hidden unless `asked.every`
    is set. `address`: links a setting to its cell."""
    every = find_targets(measured, by=asked.by, goal=asked.goal, limits=asked.limits)
    found = select_targets(every, asked.version)
    newest = select_version(found)
    shown = [target for target in found if asked.every or not asked.limits.has_any or target.limit_check != "exceeded"]
    names = sorted({pareto.target_label(cell) for cell in measured})
    versions = sorted({cell.version for cell in measured}, reverse=True)
    by_processor = hardware_words.explain_processor_time([target.best for target in shown if target.best])
    notes = (hardware_words.explain_side_by_side(measured), f"{by_processor}." if by_processor else "")
    drawn = [cell for cell in measured if newest and cell.version == newest[0].version]
    columns = _list_columns(asked, address, shown)
    table = Table.of("targets", "Best setting on each target", columns, shown).without_unmeasured()
    judged = pareto.draw_hardware(drawn, names, address)
    among = newest if asked.version == EVERY else shown
    bests = {hardware_words.name_target(target): target.best for target in among if target.best is not None}
    title = f"The best setting on {numbers.counted(len(bests), 'target')}"
    return Panel(
        headline=hardware_words.write_headline(newest, asked.limits, asked.goal),
        sentence=hardware_words.describe_targets(newest, asked.limits, asked.goal),
        left_out=hardware_words.describe_left_out(found),
        note=" ".join(filter(None, notes)),
        table=table,
        hidden=len(found) - len(shown),
        grid=_make_grid(find_targets(measured, by=asked.by, goal=asked.goal), address) if len(versions) > 1 else None,
        # a single target has nothing to be compared with
        figure=latency.draw_settings(bests, title, table, address) if judged.empty and len(bests) > 1 else judged,
        hint=judged.empty,
        versions=versions,
        shown=shown,
    )


def select_targets(every: Sequence[Target], wanted: str) -> list[Target]:
    """Select the targets of the version with the number `wanted`, of every version for `all`, and of the newest
    measured version for any other text. Empty for a version that was not measured."""
    if wanted == EVERY:
        return list(every)
    return select_version(every, int(wanted) if wanted.isdecimal() else None)


def _read_loss(typed: str) -> tuple[float | None, str]:
    """Parse a percentage: return the fraction and an empty text, or None and what is wrong. An empty text is no limit:
    None and an empty text."""
    percent, error = parse_number(typed.strip().removesuffix("%"), "a percentage: enter one such as 1 or 0.5")
    if percent is None:
        return None, error
    return (percent / 100, "") if 0 <= percent <= 100 else (None, "The loss must be between 0 and 100 %.")


def _list_columns(asked: Asked, address: CellAddress, shown: Sequence[Target]) -> list[Column[Target]]:
    bests = [target.best for target in shown if target.best is not None]
    kinds = [best.is_processor for best in bests]
    time, are_mixed = clock_title(kinds), len(set(kinds)) > 1

    def time_entry(best: MeasuredSetting) -> Entry:
        return latency_entry(best.cell, is_marked=are_mixed and best.is_processor, has_interval=True)

    def rate_entry(best: MeasuredSetting) -> Entry:
        return items_entry(best.cell, is_marked=are_mixed and best.has_items_by_processor)

    version = [Number[Target]("version", lambda target: Entry(str(target.version), target.version))]
    within = [Column[Target](f"Within {hardware_words.format_limits(asked.limits)}", _limits_entry)]
    return [
        Column("Target", _target_entry),
        *(version if asked.version == EVERY else []),
        Column("Hardware", lambda target: Entry(target.machine or "not known")),
        *(within if asked.limits.has_any else []),
        Prose("Best setting", lambda target: _setting_entry(target, address)),
        Number(f"{time}, ms", _of_best(time_entry), note="with half of its 95 % interval over launches"),
        Number(hardware_words.items_heading(bests), _of_best(rate_entry), note="in its batch"),
        Number("accuracy", _of_best(lambda best: accuracies.accuracy_entry(best.cell)), note="on labelled data"),
        Number("loss", _of_best(loss_entry), note="against the upload on the same samples; else by parity"),
        Column("Outputs", _of_best(lambda best: verdict_entry(judge_outputs(best.cell)))),
        Number(
            "memory",
            _of_best(lambda best: as_number(best.cell.peak_memory_bytes, numbers.memory)),
            note=f"peak, {METRICS['peak_memory_bytes'].note}",
        ),
        Number("energy, mJ", _of_best(lambda best: as_number(best.cell.energy_mj)), note="of one inference"),
        Column("Measured", _of_best(lambda best: as_time(best.at) if best.at else Entry("not known"))),
        Number("settings", _settings_entry, note="measured"),
    ]


def _of_best(entry: Callable[[MeasuredSetting], Entry]) -> Callable[[Target], Entry]:
    return lambda target: Entry() if target.best is None else entry(target.best)


def _target_entry(target: Target) -> Entry:
    where = f"best on {target.best.node}" if target.best and len(target.nodes) > 1 else ""
    return Entry(hardware_words.name_target(target), soft=where)


def _limits_entry(target: Target) -> Entry:
    if target.best is None:
        return Entry()
    return Entry(sign=SIGNS[target.limit_check], value=list(SIGNS).index(target.limit_check))


def _setting_entry(target: Target, address: CellAddress) -> Entry:
    if target.best is None:
        return Entry("none: every setting was left out")
    others = hardware_words.count_as_good(target.top).rstrip(".")
    return Entry(hardware_words.format_setting(target.best), href=address(target.best), soft=others)


def loss_entry(measured: MeasuredSetting) -> Entry:
    """Make the table entry of a setting's loss of accuracy against the upload, as measured on labelled data. Without
    labelled data it is “none” where an fp32 setting passes parity, else “not measured”."""
    loss = find_loss(measured.cell)
    if loss is None:
        return Entry(numbers.NOT_MEASURED)
    if loss.basis == "parity":
        return Entry("none", 0.0, soft="by parity")
    shown = accuracies.difference_entry(measured.cell)
    return Entry(shown.text, loss.value, soft=shown.soft)


def _settings_entry(target: Target) -> Entry:
    left_out = f"{sum(target.left_out.values())} left out" if target.left_out else ""
    return Entry(str(target.settings), target.settings, soft=left_out)


def _make_grid(every: Sequence[Target], address: CellAddress) -> Table:
    """Make the table of versions and targets, with the best p50 of each version on each target."""
    names = list(dict.fromkeys(hardware_words.name_target(target) for target in every))[:MAX_TARGETS]
    by_place = {(target.version, hardware_words.name_target(target)): target for target in every}

    def entry(name: str, version: int) -> Entry:
        target = by_place.get((version, name))
        if target is None:
            return Entry(numbers.NOT_MEASURED)
        best = target.best
        if best is None:
            return Entry("left out")
        return replace(latency_entry(best.cell, is_marked=False, has_interval=True), href=address(best))

    columns: list[Column[int]] = [Column("Version", lambda version: Entry(f"version {version}", version))]
    by = clock_title([target.best.is_processor for target in every if target.best is not None])
    columns += [Number(name, partial(entry, name), note=f"{by}, ms") for name in names]
    versions = dict.fromkeys(target.version for target in every)
    return Table.of("versions-on-targets", f"Best {by} in ms of each version on each target", columns, versions)


@page
def hardware(request: HttpRequest, model_id: int) -> HttpResponse:
    """Show the best setting of a model on each target within the limits in the address. `as` asks for a file of the
    shown targets instead."""
    user = signed_in_user(request)
    model = selectors.model(user, model_id)
    asked = read_question(request.GET.dict())
    found = make_panel(measured_across(user, model), asked, cell_address)
    if lists.wants_file(request):
        return lists.render_file(request, "hardware", found.shown, file_rows.target_row)
    may_write = can_write(user, team=model.team)
    context = {"model": model, "may_write": may_write, "panel": found, "asked": asked, "goals": GOALS, "ways": WAYS}
    return render(request, "dashboard/hardware.html", context)
