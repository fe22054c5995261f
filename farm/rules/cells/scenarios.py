"""Scenarios: what one launch does with the session, how a matrix and the command line spell it, and what it is called.

A cell has one scenario, as one text in its workload: `single`, `fresh:sequence=16+64+random`, `sustained:10`.
A closed loop, `load:closed=4`, is the workload's own `concurrency`, so that cells of before are the same cells. Pure.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal

from farm.contract.cells import SINGLE, CellSpec, Workload
from farm.contract.sustained import MAX_SUSTAINED_S
from farm.rules.cells import fills, generations, outside_scenarios
from farm.rules.cells.generations import Generation
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import count_option
from farm.rules.runtimes.nearest import choice_sentence

Kind = Literal["single", "fresh", "load", "sustained", "generate", "outside"]
KINDS: tuple[Kind, ...] = ("single", "fresh", "load", "sustained", "generate")
OUTSIDE = outside_scenarios.installed(KINDS)
NAMES: tuple[str, ...] = (*KINDS, *OUTSIDE.entries)
MOST_MINUTES: Final = MAX_SUSTAINED_S / 60.0
LEAST_MINUTES: Final = 0.05
MOST_STREAMS: Final = 64
FEWEST_SETS, MOST_SETS = 8, 64
MOST_SIZES: Final = 16
MOST_DIMENSION: Final = 1 << 24
RANDOM: Final = "random"
_DIMENSION = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$", re.ASCII)
_SHAPES: Final = "shapes"
_LOAD: Final = ("rate", "bound", "streams", "sessions", "closed")
# below, a bound is under what a generator on a shared machine is late by
_RATES: Final = (0.1, 1_000_000.0)
_BOUNDS: Final = (0.1, 60_000.0)
_REAL = re.compile(r"^(\d{1,12}(?:\.\d{1,12})?)(ms|s|us|)$", re.ASCII)
_UNITS: Final = {"": 1.0, "ms": 1.0, "s": 1000.0, "us": 0.001}

Size = int | Literal["random"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario.

    `closed`: streams of a closed loop. `rate` per second, `bound_ms` of the p99, `streams`, and whether `each` has a
    session of its own: of an open one. `sets`, `shapes`: of `fresh`, sizes by dimension. `minutes`: of `sustained`.
    `generation`: of `generate`. `entry` and `options`: of one from outside.
    """

    kind: Kind = SINGLE
    closed: int = 1
    rate: float | None = None
    bound_ms: float | None = None
    streams: int = 1
    sessions: Literal["shared", "each"] = "shared"
    sets: int = FEWEST_SETS
    shapes: Mapping[str, tuple[Size, ...]] = field(default_factory=dict)
    minutes: float = 0.0
    generation: Generation = generations.NONE
    entry: outside_scenarios.Entry | None = None
    options: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """As the command line and documents spell it; reading it gives the same scenario."""
        if self.entry is not None:
            return self.entry.text(self.options)
        match self.kind:
            case "fresh":
                sets = [f"sets={self.sets}"] if self.sets != FEWEST_SETS else []
                sizes = [f"{name}={'+'.join(map(str, some))}" for name, some in sorted(self.shapes.items())]
                return ":".join(["fresh", *sets, *sizes])
            case "load":
                return _load_text(self) if self.is_open else f"load:closed={self.closed}"
            case "sustained":
                return f"sustained:{self.minutes:g}"
            case "generate":
                return self.generation.text
            case _:
                return SINGLE

    @property
    def name(self) -> str:
        """What it is called in matrices."""
        return self.entry.name if self.entry is not None else self.kind

    @property
    def family(self) -> str:
        """Cells of one family stand in one block and are compared: a closed loop does as `single` does, in streams."""
        return SINGLE if self.kind == "load" and not self.is_open else self.text

    @property
    def is_open(self) -> bool:
        """Whether arrivals come by a clock of their own."""
        return self.rate is not None or self.bound_ms is not None

    @property
    def looks_for_a_rate(self) -> bool:
        """Whether the rate is what is measured: the highest whose p99 keeps the bound."""
        return self.bound_ms is not None and self.rate is None

    @property
    def answers(self) -> str:
        """What is held against the answers given alone, as a launch's figure counts it."""
        if self.kind == "generate":
            return "of the later generations of a launch"
        return f"of {self.sets} input sets were" if self.kind == "fresh" else "input sets were, under load,"

    @property
    def seconds(self) -> float:
        """Seconds that each cell works on for once its rounds are over."""
        return 60.0 * self.minutes


def read(value: object) -> str:
    """A scenario as a matrix writes it, as its text. Raises MatrixProblem."""
    return parsed(value).text


def parsed(value: object) -> Scenario:
    """A scenario from its text (`fresh:sets=16`) or a mapping (`{fresh: {sets: 16}}`). Raises MatrixProblem."""
    is_own = isinstance(value, str) and value.partition(":")[0] in _READERS
    return _parsed_own(value) if is_own else _parsed(value)


# each cell of a plan, a run and a document asks for its own again and again
@lru_cache(maxsize=1024)
def _parsed_own(text: object) -> Scenario:
    return _parsed(text)


def _parsed(value: object) -> Scenario:
    kind, options = _kind_and_options(value)
    if (entry := OUTSIDE.entries.get(kind)) is not None:
        return Scenario("outside", entry=entry, options=entry.read(options))
    if kind not in _READERS:
        raise MatrixProblem(OUTSIDE.refused.get(kind) or choice_sentence("scenario", kind, NAMES))
    return _READERS[kind](options)


def of(spec: CellSpec) -> Scenario:
    """The scenario of a cell, a closed loop by its streams."""
    return of_workload(spec.workload)


def of_workload(workload: Workload) -> Scenario:
    """The same of what it is given alone."""
    if workload.scenario == SINGLE and workload.concurrency > 1:
        return Scenario("load", closed=workload.concurrency)
    return parsed(workload.scenario)


def told(workload: Workload, *, sustained_s: float = 0.0) -> str:
    """What a document says. `sustained_s`: of its block; before 23 November 2026 cells did not say it themselves."""
    found = of_workload(workload)
    if found.kind == SINGLE and sustained_s > 0:
        return Scenario("sustained", minutes=sustained_s / 60.0).text
    return found.text


def is_plain(spec: CellSpec) -> bool:
    """Whether its launches run one input in one session: such may take turns and be traced."""
    return of(spec).kind in (SINGLE, "sustained") and spec.workload.concurrency == 1


def has_phases(spec: CellSpec) -> bool:
    """Whether a prompt and the tokens behind it are traced apart: one may change while the other does not."""
    return of(spec).kind == "generate"


def is_one_stream(spec: CellSpec) -> bool:
    """Whether one inference runs at a time, so that its thread's own time tells what others took."""
    return of(spec).kind != "load" and spec.workload.concurrency == 1


def as_order(spec: CellSpec) -> dict[str, object]:
    """What the runner of a sample is told: the rounds of a cell that works on afterwards are those of `single`."""
    found, work = of(spec), spec.workload
    if found.kind == "generate":
        return found.generation.as_order(seed=work.seed, batch=work.batch)
    made = {name: text for name, text in work.inputs.items() if fills.parse(text).kind in (fills.POSITIONS, "size")}
    if found.entry is not None:
        return {"kind": found.entry.name, "seed": work.seed, "made": made, **found.options}
    if found.kind == "fresh":
        shapes = {name: list(sizes) for name, sizes in found.shapes.items()}
        return {"kind": "fresh", "sets": found.sets, "seed": work.seed, "shapes": shapes, "made": made}
    if found.is_open:
        asked = {"rate": found.rate, "bound_ms": found.bound_ms, "streams": found.streams, "sessions": found.sessions}
        return {"kind": "load", **asked, "rates": [], "seed": work.seed, "made": made}
    return {"kind": "closed" if work.concurrency > 1 else SINGLE}


def as_workload(given: Mapping[str, object]) -> dict[str, object]:
    """Fields of a workload, a closed loop as its streams, sequences that are generated at once as its batch."""
    found = parsed(given.get("scenario", SINGLE))
    if (batch := found.generation.batch) is not None:
        return {
            **given,
            "scenario": replace(found, generation=replace(found.generation, batch=None)).text,
            "batch": batch,
        }
    if found.kind != "load" or found.is_open:
        return dict(given)
    return {**given, "scenario": SINGLE, "concurrency": found.closed}


def is_closed(text: object) -> bool:
    """Whether it is a closed loop, as `text` spells one."""
    return str(text).startswith("load:closed=")


def says_batch(text: object) -> bool:
    """Whether it says how many sequences are generated at once."""
    return str(text).startswith("generate:") and parsed(text).generation.batch is not None


def of_axis(text: str) -> str:
    """The text along the axis of scenarios: of a closed loop `concurrency` says it."""
    return SINGLE if is_closed(text) else text


def label(text: str) -> str:
    """A scenario on its own, in a few words; a text that nobody can read stands as it is."""
    try:
        found = parsed(text)
    except MatrixProblem:
        return text
    if found.entry is not None:
        said = found.text.partition(":")[2].replace(":", ", ").replace("=", " ")
        return f"{found.entry.label} ({said})" if said else found.entry.label
    match found.kind:
        case "fresh":
            sizes = [f"{name} {', '.join(map(str, some))}" for name, some in sorted(found.shapes.items())]
            return "fresh inputs" + (f" ({'; '.join(sizes)})" if sizes else "")
        case "sustained":
            return f"sustained {found.minutes:g} min"
        case "load" if found.is_open:
            return _load_label(found)
        case "generate":
            return found.generation.label
        case _:
            return "single" if found.closed == 1 else f"closed loop of {found.closed}"


def minutes_of(written: object) -> float | None:
    """Minutes within what a launch may take; None for anything else."""
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        return None
    try:
        minutes = float(written)
    except (ValueError, OverflowError):
        return None
    return minutes if LEAST_MINUTES <= minutes <= MOST_MINUTES else None


def _kind_and_options(value: object) -> tuple[str, object]:
    """The kind, and its options as a mapping of texts, or what else was written there."""
    if isinstance(value, str):
        kind, *options = (part.strip() for part in value.strip().split(":"))
        if kind == "sustained" and len(options) == 1:
            return kind, options[0]
        return kind, _pairs(value, options)
    if isinstance(value, Mapping) and len(value) == 1:
        kind, options = next(iter(value.items()))
        return str(kind), {} if options is None else options
    raise MatrixProblem(
        f"scenario has {value!r}: write a name such as fresh, or one with its options such as `fresh: {{sets: 16}}`."
    )


def _pairs(text: str, options: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for option in options:
        name, sign, value = option.partition("=")
        if not name or not sign or not value or name in found:
            raise MatrixProblem(f"The scenario {text!r} has {option!r}: write each option once, as name=value.")
        found[name] = value
    return found


def _mapping(kind: str, options: object, example: str) -> dict[str, object]:
    if not isinstance(options, Mapping):
        raise MatrixProblem(f"The scenario {kind} has {options!r}: write its options, such as `{example}`.")
    return {str(name): value for name, value in options.items()}


def _read_single(options: object) -> Scenario:
    if _mapping("single", options, "single"):
        raise MatrixProblem("The scenario single has no options: write `single` alone.")
    return Scenario()


def _read_fresh(options: object) -> Scenario:
    given = _mapping("fresh", options, "fresh: {shapes: {sequence: [16, 64, random]}}")
    sets = count_option("sets", given.pop("sets", FEWEST_SETS), least=FEWEST_SETS, most=MOST_SETS, of="fresh")
    nested = given.pop(_SHAPES, {})
    if not isinstance(nested, Mapping):
        raise MatrixProblem(f"The shapes of fresh are {nested!r}: write sizes such as `sequence: [16, 64, random]`.")
    sizes = {**given, **{str(name): some for name, some in nested.items()}}
    return Scenario("fresh", sets=sets, shapes={name: _read_sizes(name, some) for name, some in sizes.items()})


def _read_sizes(name: str, written: object) -> tuple[Size, ...]:
    values = written.split("+") if isinstance(written, str) else written
    values = values if isinstance(values, list | tuple) else [values]
    if not _DIMENSION.match(name):
        raise MatrixProblem(f"The scenario fresh has the option {name!r}: it has sets, and sizes by dimension.")
    if not 1 <= len(values) <= MOST_SIZES:
        raise MatrixProblem(f"The sizes of {name!r} are {len(values)}: fresh takes 1 to {MOST_SIZES} of a dimension.")
    found: tuple[Size, ...] = tuple(
        RANDOM if value == RANDOM else count_option(name, value, least=1, most=MOST_DIMENSION, of="fresh")
        for value in values
    )
    if all(size == RANDOM for size in found):
        raise MatrixProblem(f"The sizes of {name!r} are random alone: add a size for it to be drawn up to.")
    return found


def _read_load(options: object) -> Scenario:
    given = _mapping("load", options, "load: {rate: 50}")
    for name in given:
        if name not in _LOAD:
            raise MatrixProblem(choice_sentence("option of load", name, _LOAD))
    if "closed" in given:
        if len(given) > 1:
            raise MatrixProblem("A closed load has no arrivals: write `load:closed=4` alone, or a rate or bound.")
        closed = count_option("closed", given["closed"], least=1, most=MOST_STREAMS, of="load")
        return Scenario("load", closed=closed) if closed > 1 else Scenario()
    if not {"rate", "bound"} & given.keys():
        raise MatrixProblem(
            "The scenario load needs a rate or a bound: write `load:rate=50`, `load:bound=20ms` or `load:closed=4`."
        )
    sessions = str(given.get("sessions", "shared"))
    if sessions not in ("shared", "each"):
        raise MatrixProblem(choice_sentence("sessions of load", sessions, ("shared", "each")))
    return Scenario(
        "load",
        rate=_real("rate", given["rate"], _RATES, "per second, such as 50") if "rate" in given else None,
        bound_ms=_real("bound", given["bound"], _BOUNDS, "in ms, such as 20ms") if "bound" in given else None,
        streams=count_option("streams", given.get("streams", 1), least=1, most=MOST_STREAMS, of="load"),
        sessions="each" if sessions == "each" else "shared",
    )


def _load_text(found: Scenario) -> str:
    rate = [f"rate={found.rate:.12g}"] if found.rate is not None else []
    bound = [f"bound={found.bound_ms:.12g}ms"] if found.bound_ms is not None else []
    streams = [f"streams={found.streams}"] if found.streams > 1 else []
    return ":".join(["load", *rate, *bound, *streams, *(["sessions=each"] if found.sessions == "each" else [])])


def _load_label(found: Scenario) -> str:
    rate = f"load of {found.rate:g} per s" if found.rate is not None else "highest load"
    bound = f"p99 within {found.bound_ms:g} ms" if found.bound_ms is not None else ""
    streams = f"{found.streams} streams" if found.streams > 1 else ""
    each = "a session each" if found.sessions == "each" else ""
    return ", ".join(part for part in (rate, bound, streams, each) if part)


def _real(name: str, written: object, limits: tuple[float, float], example: str) -> float:
    """A number, in milliseconds where it has a unit of time."""
    least, most = limits
    text = str(written).strip()
    found = _REAL.match(text)
    number = float(found[1]) * _UNITS[found[2]] if found and (name == "bound" or not found[2]) else None
    if name == "bound" and number is not None and number < least:
        raise MatrixProblem(
            f"bound of load is {written!r}: below {least:g} ms the clock of a shared machine "
            "is not exact enough; write more, such as 20ms."
        )
    if isinstance(written, bool) or number is None or not least <= number <= most:
        raise MatrixProblem(f"{name} of load is {written!r}: write a number from {least:g} to {most:g} {example}.")
    return number


def _read_sustained(options: object) -> Scenario:
    minutes = minutes_of(options)
    if minutes is None:
        raise MatrixProblem(
            f"sustained is {options!r}: write minutes from {LEAST_MINUTES:g} to {MOST_MINUTES:g}, such as 10."
        )
    return Scenario("sustained", minutes=minutes)


def _read_generate(options: object) -> Scenario:
    return Scenario("generate", generation=generations.read(_mapping("generate", options, generations.EXAMPLE)))


_READERS: Mapping[str, Callable[[object], Scenario]] = {
    "single": _read_single,
    "fresh": _read_fresh,
    "load": _read_load,
    "sustained": _read_sustained,
    "generate": _read_generate,
}
