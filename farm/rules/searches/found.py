"""The answer of a race as a document, and in a sentence."""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm.contract.document_cells import Cell
from farm.contract.document_find import Found, FoundSetting, Goal, LeftSetting
from farm.rules.cells.values import to_plain
from farm.rules.presenting.session_code import make_javascript, make_session_code
from farm.rules.presenting.times import items_text, latency_of
from farm.rules.quality import accuracy_metrics
from farm.rules.searches.limits import Limits
from farm.rules.searches.race import Contender, Outcome, Race
from farm.rules.searches.standings import Cost, format_cost
from farm.rules.wording.numbers import counted, latency, memory, percent

# the figures of a cell that the document repeats
FIGURES = ("p50_ms", "p50_ci_ms", "p99_ms", "cpu_p50_ms", "throughput", "peak_memory_bytes")
NO_JUDGE = "Nobody can say what lower precisions lose: give --evaluation with labels, --judge, or a --tolerance."
WAITING = "other programs kept the machine busy, and settings of several threads wait for quiet rounds"
FAILED, UNJUDGED = "No setting could be measured", "No setting is known to be accurate enough"
# a setting that takes at most this fraction more than the best on each hardware is offered for all of them
NEAR = 0.05
# where no setting keeps them, the first of these is named
BUDGETS = ("p50", "p99", "memory", "accuracy", "outputs")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the document says beside the race. `model`: its name. `path`: the model's file as the user wrote it;
    `saved`: the file that the answer runs, the same path where no other file was written. `server`: the address of the
    farm that measured, empty where this machine did. `refused`: settings that could not run. `used_again`: which rounds
    of an earlier race are used, in words."""

    model: str
    path: str
    saved: str
    minutes: float = 0.0
    refused: Sequence[LeftSetting] = ()
    is_stopped: bool = False
    server: str = ""
    used_again: str = ""


def make_document(race: Race, asked: Asked) -> Found:
    """Write the document `onnxfarm.find/1` of a race, whether it is over or still going on."""
    outcome = race.answer()
    first = outcome.found[0] if outcome.found else None
    base = race.contenders[0]
    cells = race.cells
    left = [
        LeftSetting(
            label=gone.contender.label,
            settings=plain_settings(gone.contender),
            why=gone.why,
            budget=gone.budget,
            text=gone.text,
        )
        for gone in outcome.gone
    ]
    slower = {gone.contender.digest for gone in outcome.gone if gone.why == "slower"}
    settings = {each.digest: _setting(each, race, outcome) for each in race.contenders if each.digest in cells}
    apart = [
        settings[digest].model_copy(update={"note": why}) for digest, why in outcome.apart.items() if digest in settings
    ]
    return Found(
        model=asked.model,
        goal=race.goal,
        budgets=_budgets(race.limits),
        state=outcome.state,
        sentence=_sentence(race, outcome, asked),
        size=len(race.contenders),
        answer=[settings[each.digest] for each in outcome.found],
        resolution=outcome.resolution,
        beside=[settings[digest] for digest in sorted(slower & outcome.costs.keys(), key=outcome.costs.__getitem__)],
        default=settings.get(base.digest),
        apart=apart,
        close=[each.label for each in outcome.close],
        budget_costs=dict(_budget_costs(race, outcome)),
        left=[*left, *asked.refused],
        is_final=outcome.is_final,
        is_stopped=asked.is_stopped,
        python=_python(cells[first.digest], asked) if first is not None else "",
        javascript=make_javascript(cells[first.digest], asked.saved) if first is not None else "",
        gate=_gate(first, cells[first.digest], asked) if first is not None else "",
        minutes=round(asked.minutes, 2),
        launches=sum(len(cell.samples_ms) for block in race.blocks for cell in block.cells.values()),
    )


def find_shared_setting(founds: Sequence[Found]) -> FoundSetting | None:
    """Find the setting to use on all hardware, given a document for each: it takes at most NEAR more than the best
    setting of each, and the least where it is worst. Its figures are those of the first document. None where there is
    no such setting, or where a document has no final answer."""
    known: list[dict[str, FoundSetting]] = []
    for document in founds:
        settings = [*document.answer, *document.beside] if document.is_final and document.answer else []
        known.append({_elsewhere(setting): setting for setting in settings})
    worst = {key: max(by[key].ratio or 1.0 for by in known) for key in set.intersection(*map(set, known))}
    key = min(sorted(worst), key=worst.__getitem__, default="")
    return known[0][key] if key and worst[key] <= 1.0 + NEAR else None


def _elsewhere(setting: FoundSetting) -> str:
    return json.dumps({axis: value for axis, value in setting.settings.items() if axis != "hardware"}, sort_keys=True)


def plain_settings(contender: Contender) -> dict[str, object]:
    return {axis: to_plain(value) for axis, value in contender.values.items()}


def _setting(contender: Contender, race: Race, outcome: Outcome) -> FoundSetting:
    cell, cost = race.cells[contender.digest], outcome.costs.get(contender.digest)
    known = {name: getattr(cell, name) for name in FIGURES}
    if cost is not None:
        known |= {"ratio": cost.ratio, "ratio_low": cost.low, "ratio_high": cost.high}
    return FoundSetting.model_validate(
        {
            **known,
            "label": contender.label,
            "settings": plain_settings(contender),
            "accuracy": _accuracy(cell),
            "parity": cell.parity.text or cell.parity.verdict,
        }
    )


def _accuracy(cell: Cell) -> str:
    if cell.accuracy is None or cell.accuracy.value is None:
        return ""
    metric = accuracy_metrics.metric_of(cell.accuracy)
    interval = metric.format_interval(cell.accuracy.ci_low, cell.accuracy.ci_high)
    return f"{metric.title} {metric.format_value(cell.accuracy.value)}{f' ({interval})' if interval else ''}"


def _budget_costs(race: Race, outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield each budget that excluded a cheaper setting, with a sentence about it. Both settings are compared through
    the first setting of all, beside which both were measured."""
    own = race.against_first.get(outcome.found[0].digest) if outcome.found else None
    if own is None:
        return
    for budget in BUDGETS[:-1]:
        over = [gone.contender for gone in outcome.gone if gone.budget == budget]
        took = [(race.against_first[each.digest], each.label) for each in over if each.digest in race.against_first]
        least, label = min(took, default=(own, ""))
        if least < own:
            ratio = least / own
            said = format_cost(Cost(ratio, ratio, ratio, rounds=0, is_told_apart=False), race.goal)
            yield budget, f"The budget of {budget} excluded {label}, {said}."


def _budgets(limits: Limits) -> dict[str, float]:
    known = {
        "max-p50": limits.max_p50_ms,
        "max-p99": limits.max_p99_ms,
        "max-memory": limits.max_memory_bytes,
        "min-accuracy": limits.min_accuracy,
    }
    return {name: limit for name, limit in known.items() if limit is not None}


def _python(cell: Cell, asked: Asked) -> str:
    if not cell.recipe or asked.saved != asked.path:
        return make_session_code(cell, asked.saved)
    path = f"{asked.path.removesuffix('.onnx')}.{cell.precision}.onnx"
    source = f"{asked.server}/ has for each cell" if asked.server else "--save FOLDER writes"
    return f"# {path}: the model as {cell.recipe}, which {source}\n{make_session_code(cell, path)}"


def _gate(contender: Contender, cell: Cell, asked: Asked) -> str:
    """Write the command of a gate that a newer release has to pass with these settings."""
    axes = {axis: [value] for axis, value in plain_settings(contender).items() if axis != "runtime"}
    words = ["onnxfarm", "gate", asked.path, "--baseline", str(cell.runtime), "--candidate", "newest"]
    words += ["--server", asked.server] if asked.server else []
    return shlex.join([*words, "--matrix", json.dumps({"matrix": axes}, sort_keys=True)])


# the answer in words


def _sentence(race: Race, outcome: Outcome, asked: Asked) -> str:
    say = {"decided": _decided, "close": _close, "undecided": _undecided, "nothing": _nothing}[outcome.state]
    said = [say(race, outcome), *_tail(race, outcome), asked.used_again]
    if asked.is_stopped:
        said.insert(0, "Stopped before the end.")
    return " ".join(filter(None, said))


def _decided(race: Race, outcome: Outcome) -> str:
    first = outcome.found[0]
    gain = outcome.costs.get(race.contenders[0].digest)
    figure = _figure(race, first.digest)
    if first is race.contenders[0]:
        return f"{first.label}, the default, is the {_best(race.goal)}: {figure}."
    if gain is None:
        return f"{first.label} is the {_best(race.goal)}: {figure}."
    return f"{first.label} is {_gain(gain, race.goal)} than the default, {race.contenders[0].label}: {figure}."


def _close(race: Race, outcome: Outcome) -> str:
    base, names = race.contenders[0], [each.label for each in outcome.found]
    more = (
        f" {counted(len(outcome.close), 'more setting')} may come as near: short rounds do not tell."
        if outcome.close
        else ""
    )
    if len(names) == 1:
        return f"{_decided(race, outcome)}{more}"
    known = f"no difference above {percent(outcome.resolution or 0.0)} (what these rounds could show)"
    gain = None if base in outcome.found else outcome.costs.get(base.digest)
    better = f" It is {_gain(gain, race.goal)} than the default, {base.label}." if gain is not None else ""
    figure = _figure(race, outcome.found[0].digest)
    return f"One of these {len(names)}: {known}. {names[0]} stands first by its memory: {figure}.{better}{more}"


def _undecided(race: Race, outcome: Outcome) -> str:
    measured = [each for each in outcome.found if each.digest in race.cells]
    if not measured:
        return "Not decided: nothing was measured to its end."
    best = f"Best so far, not decided: {measured[0].label}, {_figure(race, measured[0].digest)}"
    open_budgets = [gone for gone in outcome.gone if gone.why == "undecided" and gone.contender in measured]
    if outcome.waiting:
        return f"{best}: {WAITING}."
    if open_budgets:
        return f"{best}: whether it keeps its budget is not known ({open_budgets[0].text})."
    return f"{best}{'' if outcome.is_final else ', by short rounds'}."


def _nothing(race: Race, outcome: Outcome) -> str:
    budget = next((budget for budget in BUDGETS if any(gone.budget == budget for gone in outcome.gone)), "")
    beyond = [gone for gone in outcome.gone if gone.budget == budget and budget]
    proven = [gone for gone in beyond if not race.limits.explain_unproven(race.cells[gone.contender.digest])]
    over = proven or beyond
    if not over:
        why = [*outcome.apart.values(), *(gone.text for gone in outcome.gone)][0]
        return f"{UNJUDGED if outcome.apart else FAILED}: {why}"
    nearest = min(over, key=lambda gone: _beyond(race.cells[gone.contender.digest], budget))
    name, limit = nearest.contender.label, {"p50": race.limits.max_p50_ms, "p99": race.limits.max_p99_ms}.get(budget)
    if limit is None:
        return f"Nothing keeps the budget of {budget}: {name} comes nearest, with {nearest.text}."
    value = nearest.text.partition(",")[0].removeprefix("p50 ")
    return f"Nothing within {limit:g} ms: the fastest accurate one, {name}, takes {value}."


def _beyond(cell: Cell, budget: str) -> float:
    """Return how far the cell is from the budget, to order cells that all break it."""
    judged = cell.accuracy
    if budget == "accuracy" and judged is not None and judged.value is not None:
        return -judged.value if judged.higher_is_better else judged.value
    return float((cell.peak_memory_bytes if budget == "memory" else cell.p50_ms) or 0.0)


def _tail(race: Race, outcome: Outcome) -> list[str]:
    """Write the sentences that follow the answer."""
    said = [_advise(race, outcome)]
    if outcome.is_by_processor and outcome.found:
        said.append("Processor time decided, as the machine was busy.")
    if outcome.apart:
        names = [each.label for each in race.contenders if each.digest in outcome.apart]
        said.append(f"{names[0]} stands apart." if len(names) == 1 else f"{len(names)} settings stand apart.")
        said.append("" if race.limits.has_judge else NO_JUDGE)
    late = sum(gone.why == "no time" for gone in outcome.gone)
    said.append(f"{counted(late, 'setting')} had no time: give more --minutes." if late else "")
    return said


def describe_used_again(settings: int, at: str) -> str:
    were, their = ("was", "its") if settings == 1 else ("were", "their")
    return f"{counted(settings, 'setting')} {were} measured at {at}: {their} short rounds are used."


def _advise(race: Race, outcome: Outcome) -> str:
    """Say whether to stay with the release in use; empty where it alone raced, or where nothing is decided."""
    releases = {each.digest: str(each.values.get("runtime")) for each in race.contenders}
    used = releases[race.contenders[0].digest]
    if outcome.state not in ("decided", "close") or {*releases.values()} == {used}:
        return ""
    if near := [each.label for each in outcome.found if releases[each.digest] == used]:
        return f"Stay with {used}, {near[0]}: nothing better is known on another release."
    new = outcome.found[0]
    slower = [
        gone.contender for gone in outcome.gone if gone.why == "slower" and releases[gone.contender.digest] == used
    ]
    took = [(race.against_first[each.digest], each.label) for each in slower if each.digest in race.against_first]
    if not took or new.digest not in race.against_first:
        return f"Upgrade to {releases[new.digest]}: nothing that was measured on {used} is an answer."
    least, label = min(took)
    ratio = least / race.against_first[new.digest]
    gain = _gain(Cost(ratio, ratio, ratio, rounds=0, is_told_apart=False), race.goal)
    return f"Upgrade to {releases[new.digest]}: by all rounds it is {gain} than the best of {used}, {label}."


def _gain(cost: Cost, goal: Goal) -> str:
    return format_cost(cost._replace(ratio=1.0 / cost.ratio, low=1.0 / cost.high, high=1.0 / cost.low), goal)


def _best(goal: Goal) -> str:
    return "smallest" if goal == "memory" else "fastest"


def _figure(race: Race, digest: str) -> str:
    """Write the figure of the goal; for latency it is the time that the verdicts rest on."""
    cell, pairs = race.cells[digest], race.blocks[-1].pairs.values()
    if race.goal == "memory":
        return memory(cell.peak_memory_bytes)
    if race.goal == "throughput":
        return items_text(cell, pairs)
    if race.goal == "processor-time":
        return f"{latency(cell.cpu_p50_ms)} of CPU time"
    return latency_of(cell, pairs)
