"""The interface of engines, by which scenarios and passes open a model, bind its inputs and run it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from worker.runner.arrays import Arrays
from worker.runner.order import Order, PhaseTimer


class Engine(Protocol):
    """A loaded model, with the requested providers, the active ones, and their facts."""

    requested: list[str]
    active: list[str]
    device: str
    provider_options: dict[str, object]
    provider_facts: dict[str, str]
    is_simulated: bool


class Feed(Protocol):
    """An engine with its inputs. Call `run_first` once, `settle` once, then `run` or the `timed_call`.

    `settle` prepares for repeated runs, for instance by preallocating outputs, and returns the number of inferences
    that it began. `timed_call` returns the callable with the least overhead that runs one inference. `outputs` copies
    the outputs of the last `run`, by name; those of a timed call only where outputs are bound.
    """

    def run_first(self) -> None: ...

    def settle(self) -> int: ...

    def run(self) -> None: ...

    def timed_call(self) -> Callable[[], object]: ...

    def outputs(self) -> dict[str, object]: ...


class OpenEngine(Protocol):
    """Opens an order's model and times that. Raises Refusal where it does not load."""

    def __call__(self, order: Order, *, timer: PhaseTimer) -> Engine: ...


class FeedEngine(Protocol):
    """Binds inputs to an engine, on the engine's device (None) or on the named one."""

    def __call__(self, engine: Engine, inputs: Arrays, *, device: str | None = None) -> Feed: ...


@dataclass(frozen=True)
class Kind:
    """One kind of engine: the functions by which the runner uses it, and the passes and scenarios that it supports."""

    # the Python module that runs models
    module: str
    open_engine: OpenEngine
    # returns the arrays that the model takes, by name; raises Refusal where one is missing
    choose_inputs: Callable[[Engine, Arrays], Arrays]
    feed: FeedEngine
    # whether the first dimension of every input may have any size
    is_first_free: Callable[[Engine], bool]
    # the dimensions of each input, dynamic ones by name
    dimensions: Callable[[Engine], dict[str, list[object]]]
    # the place in the runner (MODULE:NAME) of each pass that the engine supports
    passes: Mapping[str, str]
    # the places of its own classes by kind of scenario, if it supports only these; None: it runs every scenario
    scenarios: Mapping[str, str] | None = None
    # whether a second session with other settings is cheap
    has_sessions: bool = False
    # returns the name and the callable of a second way to run a feed, or None where there is none
    other_call: Callable[[Feed], tuple[str, Callable[[], object]] | None] | None = None


# passes of every engine that runs single inferences
PASSES = {
    "engines": "engine_pairs:compare_engines",
    "sample": "sample:run_sample",
    "sustained": "sample:run_sustained",
    "check": "check:run_check",
    "look": "tensor_comparison:run_tensor_comparison",
}
