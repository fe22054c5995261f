"""The table of scenarios: reads them from matrices and command lines, and finds the scenario of a cell.

A workload stores its scenario as one text: `single`, `fresh:sequence=16+64+random`, `sustained:10`. A closed loop,
`load:closed=4`, is stored as the workload's `concurrency`, so that older cells keep their digests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from farm.contract.cells import SINGLE, CellSpec, Workload
from farm.rules.cells import outside_scenarios
from farm.rules.cells.fresh import Fresh
from farm.rules.cells.generate import Generate
from farm.rules.cells.load import Closed, Load
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.scenario import Entry, Scenario
from farm.rules.cells.single import Single, Sustained
from farm.rules.runtimes.nearest import choice_sentence

_OWN: Mapping[str, Entry] = {entry.kind: entry for entry in (Single, Fresh, Load, Sustained, Generate)}
KINDS = tuple(_OWN)
OUTSIDE = outside_scenarios.entry_point_group(KINDS).load_installed()
ENTRIES: Mapping[str, Entry] = {**_OWN, **{entry.name: entry for entry in OUTSIDE.entries}}
# the JSON schema of a scenario in a matrix: a text, or one name with its options
SCHEMA: Mapping[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": rf"^({'|'.join(ENTRIES)})(:.*)?$"},
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
            "properties": {name: entry.schema for name, entry in ENTRIES.items()},
        },
    ]
}


@dataclass(frozen=True)
class _Unreadable(Scenario):
    """A recorded scenario that cannot be parsed here: of a later release, or of a package that is not installed."""

    kind = ""
    written: str

    @property
    def text(self) -> str:
        return self.written


def normalise_text(value: object) -> str:
    """Convert a scenario, as a matrix writes it, to the text that a workload stores. Raises MatrixProblem."""
    return parse(value).text


def parse(value: object) -> Scenario:
    """Parse a scenario from text (`fresh:sets=16`) or a mapping (`{fresh: {sets: 16}}`). Raises MatrixProblem."""
    is_own = isinstance(value, str) and value.partition(":")[0] in _OWN
    return _parse_cached(value) if is_own else _parse_uncached(value)


# every cell of a plan, a run and a document asks for its scenario many times
@lru_cache(maxsize=1024)
def _parse_cached(text: object) -> Scenario:
    return _parse_uncached(text)


def _parse_uncached(value: object) -> Scenario:
    name, options = _split_name(value)
    if (entry := ENTRIES.get(name)) is None:
        raise MatrixProblem(OUTSIDE.refused.get(name) or choice_sentence("scenario", name, ENTRIES))
    return entry.read(options)


def parse_recorded(text: str) -> Scenario:
    """Parse the scenario of a document; one that cannot be parsed here becomes a scenario that only has its text."""
    try:
        return parse(text)
    except MatrixProblem:
        return _Unreadable(text)


def of_cell(spec: CellSpec) -> Scenario:
    return of_workload(spec.workload)


def of_workload(workload: Workload) -> Scenario:
    """Return the scenario of a workload; `single` on several streams is a closed load. Raises MatrixProblem."""
    if workload.scenario == SINGLE and workload.concurrency > 1:
        return Closed(workload.concurrency)
    return parse(workload.scenario)


def recorded_text(workload: Workload, *, sustained_s: float = 0.0) -> str:
    """Write the scenario as a document records it.

    `sustained_s` is that of the cell's block. Only blocks recorded it before 23 November 2026.
    """
    scenario = of_workload(workload)
    return Sustained(sustained_s / 60.0).text if scenario == Single() and sustained_s > 0 else scenario.text


def is_plain(spec: CellSpec) -> bool:
    """Whether launches run one input in one session on one stream, so that they may take turns and be traced."""
    return of_cell(spec).is_plain and spec.workload.concurrency == 1


def is_single_stream(spec: CellSpec) -> bool:
    return of_cell(spec).is_single_stream and spec.workload.concurrency == 1


def runner_settings(spec: CellSpec) -> dict[str, object]:
    """Make the runner's settings for the launches of a round; `sustained` has the same as `single`."""
    return of_cell(spec).runner_settings(spec.workload)


def workload_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a workload with the concurrency or batch that its scenario sets. Raises MatrixProblem."""
    return parse(fields.get("scenario", SINGLE)).workload_fields(fields)


def describe(text: str) -> str:
    """Return the label of a scenario from its text; a text that cannot be parsed here is returned as it is."""
    return parse_recorded(text).label


def _split_name(value: object) -> tuple[str, object]:
    """Split a written scenario into its name and its options, which may still be of any type."""
    if isinstance(value, str):
        name, *options = (part.strip() for part in value.strip().split(":"))
        entry = ENTRIES.get(name)
        if entry is not None and entry.takes_value and len(options) == 1:
            return name, options[0]
        return name, _read_options(value, options)
    if isinstance(value, Mapping) and len(value) == 1:
        name, options = next(iter(value.items()))
        return str(name), {} if options is None else options
    raise MatrixProblem(
        f"scenario has {value!r}: write a name such as fresh, or one with its options such as `fresh: {{sets: 16}}`."
    )


def _read_options(text: str, options: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for option in options:
        name, sign, value = option.partition("=")
        if not name or not sign or not value or name in values:
            raise MatrixProblem(f"The scenario {text!r} has {option!r}: write each option once, as name=value.")
        values[name] = value
    return values
