"""The find document, `onnxfarm.find/1`: what `find --json` writes. Figures of the answer are of its final block alone.

Absent metrics are null. Times are milliseconds unless the name says otherwise, sizes are bytes, shares are 0–1.
"""

from typing import Any, Literal, get_args

from pydantic import ConfigDict, Field

from farm.contract import document
from farm.contract.document_cells import Part

Goal = Literal["latency", "throughput", "processor-time", "memory"]
GOALS: tuple[Goal, ...] = get_args(Goal)
State = Literal["decided", "close", "undecided", "nothing"]
DECIDED: tuple[State, ...] = ("decided", "close")
Why = Literal["failed", "refused", "budget", "slower", "undecided", "no time"]
# of each kind of hardware
MAX_MINUTES = 24 * 60


class FoundSetting(Part):
    """A setting with its figures. `ratio`: what it takes of what is to be small, as a factor of the answer's first."""

    label: str  # what does not go without saying, in words
    settings: dict[str, object]  # as a matrix has them, to be measured again
    p50_ms: float | None = None  # the median launch
    p50_ci_ms: tuple[float, float] | None = None  # its 95 % interval
    p99_ms: float | None = None  # of all timings of all launches
    cpu_p50_ms: float | None = None  # processor time of an inference; of one thread of the CPU provider alone
    throughput: float | None = None  # items per second: batch × 1000 / `p50_ms`
    peak_memory_bytes: int | None = None  # of a process that loads and runs the model once
    accuracy: str = ""  # on labelled data, with its interval, in words; empty: there were none
    parity: str = ""  # how the outputs stand to the reference, in words
    # against the answer's first: above 1 it takes more; with its 95 % interval
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    note: str = ""  # what is not known of it, in words


class LeftSetting(Part):
    """A setting that is no answer."""

    label: str  # what does not go without saying, in words
    settings: dict[str, object]  # as a matrix has them
    # `failed`, `refused` (it cannot run here), `budget`, `slower`, `undecided` (a budget is neither kept nor broken) or
    # `no time`
    why: Why
    budget: str = ""  # the budget: `p50`, `p99`, `memory`, `accuracy` or `outputs`; empty: none
    text: str  # why, in words


class Found(Part):
    """The top level of a find document."""

    schema_: Literal["onnxfarm.find/1"] = Field(default="onnxfarm.find/1", alias="schema")  # `onnxfarm.find/1`
    model: str  # the model's name
    goal: Goal  # what is to be best
    budgets: dict[str, float] = Field(default_factory=dict)  # those that were asked for, by their options' names
    # `decided`: one setting; `close`: one of these; `undecided`: the best so far; `nothing`: none keeps the budgets
    state: State
    sentence: str  # the answer in words
    measured_with: str = ""  # the release, node and batch that all settings share, in words
    size: int  # settings of the space that could be run
    answer: list[FoundSetting] = Field(default_factory=list)  # the first stands for the others
    resolution: float | None = None  # no difference above it among the answer, as a fraction; null: there is one alone
    beside: list[FoundSetting] = Field(default_factory=list)  # slower than the answer in its final block, nearest first
    default: FoundSetting | None = None  # the first setting of the space, which is what one has without choosing
    apart: list[FoundSetting] = Field(default_factory=list)  # nobody could judge their outputs: never the answer
    close: list[str] = Field(default_factory=list)  # perhaps as near: without a place in the final block
    # of each budget that excluded better settings, by the name in `left`: the best of them, in words
    budget_costs: dict[str, str] = Field(default_factory=dict)
    left: list[LeftSetting] = Field(default_factory=list)  # no answer, and why
    is_by_processor: bool = False  # the machine was busy, so that latencies were compared by processor time
    is_final: bool = False  # whether the figures of the answer are of a final block
    is_stopped: bool = False  # by Ctrl-C, with what was known until then
    python: str = ""  # lines that make exactly this session; empty without an answer
    javascript: str = ""  # the same by onnxruntime-node; empty where that has no such session
    gate: str = ""  # the command that checks it again when another release is out
    minutes: float = 0.0  # of this machine
    launches: int = 0  # processes that were timed

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, populate_by_name=True)


def make_json_schema() -> dict[str, Any]:
    return document.make_json_schema(Found, title="onnxfarm.find/1")
