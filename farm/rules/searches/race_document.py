"""Writes the answer of a race as the document `onnxfarm.find/1`, with its sentence."""

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from farm.contract.document_cells import Cell
from farm.contract.document_find import DECIDED, Found, FoundSetting, LeftSetting
from farm.rules.cells.metrics import MIN_MEMORY
from farm.rules.presenting.session_code import make_javascript, make_session_code
from farm.rules.presenting.times import format_compared_items, format_latency
from farm.rules.quality import accuracy_metrics
from farm.rules.searches.block_costs import format_ratio
from farm.rules.searches.limits import Limits
from farm.rules.searches.race import Contender, Outcome, Race
from farm.rules.wording.numbers import counted, latency, memory, percent, plain
from farm.rules.wording.titles import runtime_in_words

# the figures of a cell that the document repeats
FIGURES = ("p50_ms", "p50_ci_ms", "p99_ms", "cpu_p50_ms", "throughput", "peak_memory_bytes")
NO_JUDGE = "Nobody can say what lower precisions lose: give --evaluation with labels, --judge, or a --tolerance."
NO_JUDGE_ON_A_FARM = "Nobody can say what lower precisions lose: add labelled data on the model's page, or a tolerance."
WAITING = "other programs kept the machine busy, and settings of several threads wait for quiet rounds"
NOT_BESIDE = "not all of the others fitted into one block with it"
NOTHING_MEASURED = "nothing was measured to its end"
FAILED, UNJUDGED = "No setting could be measured", "No setting is known to be accurate enough"
# a setting that costs at most this fraction more than the best on each hardware is offered for all of them
NEAR = 0.05
# where no setting keeps its budgets, these are explained before the others
MACHINE_BUDGETS = ("p50", "p99", "memory")
BUDGETS = (*MACHINE_BUDGETS, "accuracy", "outputs")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the document contains in addition to the race.

    `model` is the model's name, and `path` its file as the user wrote it. `saved` is the file that the answer runs:
    `path`, unless another file was written. `refused` are settings that could not run. `is_stopped` says that the user
    stopped the race before its end. `server` is the address of the farm that measured; empty for this machine.
    `reuse_note` is a sentence about rounds of an earlier race that count here.
    """

    model: str
    path: str
    saved: str
    minutes: float = 0.0
    refused: Sequence[LeftSetting] = ()
    is_stopped: bool = False
    server: str = ""
    reuse_note: str = ""


def make_document(race: Race, facts: Facts) -> Found:
    """Make the document `onnxfarm.find/1` of a race, whether it is over or still going on."""
    outcome, cells = race.answer(), race.cells
    settings = {each.digest: _make_setting(each, race, outcome) for each in race.contenders if each.digest in cells}
    slower = [
        digest for digest, dropped in outcome.dropped.items() if dropped.why == "slower" and digest in outcome.costs
    ]
    document = Found(
        model=facts.model,
        goal=race.goal,
        budgets=_list_budgets(race.limits),
        state=outcome.state,
        sentence=_make_sentence(race, outcome, facts),
        measured_with=_list_shared(cells.values()),
        size=len(race.contenders),
        answer=[settings[contender.digest] for contender in outcome.answer],
        resolution=outcome.resolution,
        beside=[settings[digest] for digest in sorted(slower, key=outcome.costs.__getitem__)],
        default=settings.get(race.contenders[0].digest),
        apart=[settings[digest].model_copy(update={"note": why}) for digest, why in outcome.unproven.items()],
        close=[contender.label for contender in outcome.close],
        budget_costs=dict(_explain_budget_costs(race, outcome)),
        left=[*outcome.dropped.values(), *facts.refused],
        is_by_processor=any(block.is_by_processor for block in race.blocks[-1:]),
        is_final=outcome.is_final,
        is_stopped=facts.is_stopped,
        minutes=round(facts.minutes, 2),
        launches=sum(len(cell.samples_ms) for block in race.blocks for cell in block.cells.values()),
    )
    if outcome.answer:
        first = outcome.answer[0]
        document.python = _write_python(cells[first.digest], facts)
        document.javascript = make_javascript(cells[first.digest], facts.saved)
        document.gate = _write_gate(first, cells[first.digest], facts)
    return document


def find_shared_setting(documents: Sequence[Found]) -> FoundSetting | None:
    """Find the setting to use on all hardware; each document, at least one, is that of one kind of hardware.

    It costs at most NEAR more than the best setting of each document; of several such settings it is the one whose
    highest cost is the lowest. Its figures are those of the first document. None where there is no such setting, or
    where a document has no decided answer.
    """
    ratios_by_document = [_compare_with_best(document) for document in documents]
    shared = sorted(set.intersection(*map(set, ratios_by_document)))
    worst = {key: max(ratios[key] for ratios in ratios_by_document) for key in shared}
    key = min(worst, key=worst.__getitem__, default="")
    if not key or worst[key] > 1.0 + NEAR:
        return None
    return next(setting for setting in _list_raced(documents[0]) if _key_without_hardware(setting) == key)


def _compare_with_best(document: Found) -> dict[str, float]:
    """Return the cost of each setting of a decided final block as a ratio to the best one there; else empty."""
    if not document.is_final or document.state not in DECIDED:
        return {}
    ratios = {_key_without_hardware(setting): setting.ratio or 1.0 for setting in _list_raced(document)}
    return {key: ratio / min(ratios.values()) for key, ratio in ratios.items()}


def _list_raced(document: Found) -> list[FoundSetting]:
    return [*document.answer, *document.beside]


def _key_without_hardware(setting: FoundSetting) -> str:
    return json.dumps({axis: value for axis, value in setting.settings.items() if axis != "hardware"}, sort_keys=True)


def describe_reuse(setting_count: int, measured_at: str) -> str:
    were, their = ("was", "its") if setting_count == 1 else ("were", "their")
    return f"{counted(setting_count, 'setting')} {were} measured at {measured_at}: {their} short rounds are used."


def _make_setting(contender: Contender, race: Race, outcome: Outcome) -> FoundSetting:
    cell, cost = race.cells[contender.digest], outcome.costs.get(contender.digest)
    reached = ""
    if cell.accuracy is not None and cell.accuracy.value is not None:
        metric = accuracy_metrics.metric_of(cell.accuracy)
        reached = f"{metric.title} {metric.format_with_interval(cell.accuracy)}"
    return FoundSetting.model_validate(
        {name: getattr(cell, name) for name in FIGURES}
        | {"label": contender.label, "settings": contender.settings, "accuracy": reached}
        | {"parity": cell.parity.text or cell.parity.verdict}
        | ({} if cost is None else {"ratio": cost.ratio, "ratio_low": cost.low, "ratio_high": cost.high})
    )


def _explain_budget_costs(race: Race, outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield each budget that excluded a cheaper setting, with a sentence about it."""
    for budget in BUDGETS[:-1]:
        excluded = [digest for digest, dropped in outcome.dropped.items() if dropped.budget == budget]
        best, ratio = _compare_best(race, outcome, excluded)
        if best is not None and ratio < 1.0:
            yield budget, f"The budget of {budget} excluded {best.label}, {format_ratio(race.goal, ratio)}."


def _compare_best(race: Race, outcome: Outcome, digests: Sequence[str]) -> tuple[Contender | None, float]:
    """Return the cheapest of these settings by all rounds, and its cost as a ratio to the answer.

    Return None and 1 without an answer, or if the cost of none of them is known.
    """
    answer = race.estimates.get(outcome.answer[0].digest) if outcome.answer else None
    if answer is None:
        return None, 1.0
    compared = [each for each in race.contenders if each.digest in digests and each.digest in race.estimates]
    best = min(compared, key=lambda contender: (race.estimates[contender.digest], contender.label), default=None)
    return best, 1.0 if best is None else race.estimates[best.digest] / answer


def _list_shared(cells: Iterable[Cell]) -> str:
    """List the release, node and batch that all cells share: `ONNX Runtime 1.32.0, bench-1, batch 1`."""
    values = [
        (runtime_in_words(cell.runtime), cell.node, f"batch {cell.batch}" if cell.batch else "") for cell in cells
    ]
    shared = [same.pop() for same in map(set, zip(*values, strict=True)) if len(same) == 1]
    return ", ".join(filter(None, shared))


def _list_budgets(limits: Limits) -> dict[str, float]:
    budgets = {
        "max-p50": limits.max_p50_ms,
        "max-p99": limits.max_p99_ms,
        "max-memory": limits.max_memory_bytes,
        "min-accuracy": limits.min_accuracy,
    }
    return {name: limit for name, limit in budgets.items() if limit is not None}


def _write_python(cell: Cell, facts: Facts) -> str:
    if not cell.recipe or facts.saved != facts.path:
        return make_session_code(cell, facts.saved)
    path = f"{facts.path.removesuffix('.onnx')}.{cell.precision}.onnx"
    source = f"{facts.server}/ has for each cell" if facts.server else "--save FOLDER writes"
    return f"# {path}: the model as {cell.recipe}, which {source}\n{make_session_code(cell, path)}"


def _write_gate(contender: Contender, cell: Cell, facts: Facts) -> str:
    """Write the command of a gate that a newer release has to pass with these settings."""
    axes = {axis: [value] for axis, value in contender.settings.items() if axis != "runtime"}
    words = ["onnxfarm", "gate", facts.path, "--baseline", str(cell.runtime), "--candidate", "newest"]
    words += ["--server", facts.server] if facts.server else []
    return shlex.join([*words, "--matrix", json.dumps({"matrix": axes}, sort_keys=True)])


# the answer in words


def _make_sentence(race: Race, outcome: Outcome, facts: Facts) -> str:
    describe = {
        "decided": _describe_decided,
        "close": _describe_close,
        "undecided": _describe_undecided,
        "nothing": _explain_no_answer,
    }
    sentences = ["Stopped before the end."] if facts.is_stopped else []
    sentences += [describe[outcome.state](race, outcome), _advise(race, outcome)]
    if outcome.is_by_processor:
        sentences.append("Processor time decided, as the machine was busy.")
    if outcome.unproven:
        names = [contender.label for contender in race.contenders if contender.digest in outcome.unproven]
        sentences.append(f"{names[0]} stands apart." if len(names) == 1 else f"{len(names)} settings stand apart.")
        if not race.limits.has_judge:
            sentences.append(NO_JUDGE_ON_A_FARM if facts.server else NO_JUDGE)
    late = sum(dropped.why == "no time" for dropped in outcome.dropped.values())
    if late:
        sentences.append(f"{counted(late, 'setting')} had no time: give more minutes.")
    return " ".join(filter(None, [*sentences, facts.reuse_note]))


def _describe_decided(race: Race, outcome: Outcome) -> str:
    first, default = outcome.answer[0], race.contenders[0]
    figure = _format_figure(race, first.digest)
    if default.digest in outcome.costs:
        return f"{first.label} is {_format_gain(race, outcome)} than the default, {default.label}: {figure}."
    name = f"{first.label}, the default," if first is default else first.label
    return f"{name} is the {'smallest' if race.goal == 'memory' else 'fastest'}: {figure}."


def _describe_close(race: Race, outcome: Outcome) -> str:
    default, names = race.contenders[0], [contender.label for contender in outcome.answer]
    more = ""
    if outcome.close:
        more = f" {counted(len(outcome.close), 'more setting')} may come as near: short rounds do not tell."
    if len(names) == 1:
        return f"{_describe_decided(race, outcome)}{more}"
    limit = f"no difference above {percent(outcome.resolution or 0.0)} (what these rounds could show)"
    is_better = default not in outcome.answer and default.digest in outcome.costs
    gain = f" It is {_format_gain(race, outcome)} than the default, {default.label}." if is_better else ""
    figure = _format_figure(race, outcome.answer[0].digest)
    rank = f"ranked by memory in steps of {memory(MIN_MEMORY)}, then by paired rounds"
    return f"One of these {len(names)}: {limit}. {names[0]} stands first, {rank}: {figure}.{gain}{more}"


def _describe_undecided(race: Race, outcome: Outcome) -> str:
    more = "give more minutes" if race.time_left() <= 0 else ""
    measured = [contender for contender in outcome.answer if contender.digest in race.cells]
    if not measured:
        is_broken = any(dropped.budget for dropped in outcome.dropped.values())
        what = "no setting that was measured to its end keeps its budgets" if is_broken else NOTHING_MEASURED
        return f"Not decided: {'; '.join(filter(None, (what, more)))}."
    best = f"Best so far, not decided: {measured[0].label}, {_format_figure(race, measured[0].digest)}"
    doubts = [outcome.dropped[each.digest].text for each in measured if each.digest in outcome.dropped]
    if outcome.uncompared:
        return f"{best}: {WAITING if race.blocks[-1].is_busy else NOT_BESIDE}."
    if doubts:
        return f"{best}: whether it keeps its budget is not known ({doubts[0]})."
    if outcome.is_final:
        return f"{best}."
    return f"{best}, by short rounds{more and ': '}{more}."


def _explain_no_answer(race: Race, outcome: Outcome) -> str:
    """Name the setting that comes nearest to the broken budget, or to each of several broken budgets."""
    broken = [budget for budget in BUDGETS if any(dropped.budget == budget for dropped in outcome.dropped.values())]
    if not broken:
        reasons = [*outcome.unproven.values(), *(dropped.text for dropped in outcome.dropped.values())]
        return f"{UNJUDGED if outcome.unproven else FAILED}: {reasons[0]}"
    budgets = [budget for budget in broken if budget in MACHINE_BUDGETS] or broken[:1]
    nearest = [_find_nearest(race, outcome, budget) for budget in budgets]
    if len(nearest) > 1:
        each = "; ".join(f"{contender.label} has {outcome.dropped[contender.digest].text}" for contender in nearest)
        return f"No setting keeps every budget. The nearest to each: {each}."
    budget, contender = budgets[0], nearest[0]
    limit = {"p50": race.limits.max_p50_ms, "p99": race.limits.max_p99_ms}.get(budget)
    if limit is None:
        text = outcome.dropped[contender.digest].text
        return f"Nothing keeps the budget of {budget}: {contender.label} comes nearest, with {text}."
    cell = race.cells[contender.digest]
    fastest = "the fastest" if race.limits.explain_unproven(cell) else "the fastest accurate one"
    value = plain(cell.p99_ms if budget == "p99" and cell.p99_ms else cell.p50_ms, unit="ms")
    within = f"{limit:g} ms{' at p99' if budget == 'p99' else ''}"
    return f"Nothing within {within}: {fastest}, {contender.label}, takes {value}."


def _find_nearest(race: Race, outcome: Outcome, budget: str) -> Contender:
    """Find the setting nearest to a budget among those that it excluded, accurate ones before others."""

    def measure_distance(contender: Contender) -> tuple[bool, float]:
        cell = race.cells[contender.digest]
        amount = cell.peak_memory_bytes if budget == "memory" else cell.p50_ms
        if budget == "accuracy" and cell.accuracy is not None and cell.accuracy.value is not None:
            amount = -cell.accuracy.value if cell.accuracy.higher_is_better else cell.accuracy.value
        return bool(race.limits.explain_unproven(cell)), amount or 0.0

    excluded = [each for each in race.contenders if each.digest in outcome.dropped]
    return min((each for each in excluded if outcome.dropped[each.digest].budget == budget), key=measure_distance)


def _advise(race: Race, outcome: Outcome) -> str:
    """Say whether to stay with the release of the default; empty where no other raced, or where nothing is decided."""
    releases = {contender.digest: str(contender.values.get("runtime")) for contender in race.contenders}
    used = releases[race.contenders[0].digest]
    if outcome.state not in DECIDED or {*releases.values()} == {used}:
        return ""
    if answers := [contender.label for contender in outcome.answer if releases[contender.digest] == used]:
        return f"Stay with {used}, {answers[0]}: nothing better is known on another release."
    if any(releases[contender.digest] == used for contender in outcome.close):
        return f"Whether to leave {used} is not decided: some of its settings did not fit into the final block."
    new = releases[outcome.answer[0].digest]
    slower = [each for each, dropped in outcome.dropped.items() if dropped.why == "slower" and releases[each] == used]
    best, ratio = _compare_best(race, outcome, slower)
    if best is None:
        return f"Upgrade to {new}: nothing that was measured on {used} is an answer."
    gain = format_ratio(race.goal, 1.0 / ratio)
    return f"Upgrade to {new}: by all rounds it is {gain} than the best of {used}, {best.label}."


def _format_gain(race: Race, outcome: Outcome) -> str:
    cost = outcome.costs[race.contenders[0].digest]
    return format_ratio(race.goal, 1.0 / cost.ratio, 1.0 / cost.high, 1.0 / cost.low)


def _format_figure(race: Race, digest: str) -> str:
    """Format the figure of the goal; for latency it is the kind of time that the verdicts compared."""
    cell, pairs = race.cells[digest], race.blocks[-1].pairs.values()
    if race.goal == "memory":
        return memory(cell.peak_memory_bytes)
    if race.goal == "throughput":
        return format_compared_items(cell, pairs)
    if race.goal == "processor-time":
        return f"{latency(cell.cpu_p50_ms)} of CPU time"
    return format_latency(cell, pairs)
