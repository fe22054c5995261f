"""What an engine is to scenarios and passes: it opens a model, takes its inputs and runs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from worker.runner.arrays import Arrays
from worker.runner.order import Order, PhaseTimer


class Engine(Protocol):
    """A model made ready to run, what was asked for and what was got."""

    requested: list[str]
    active: list[str]
    device: str
    provider_options: dict[str, object]
    provider_facts: dict[str, str]
    is_simulated: bool


class Feed(Protocol):
    """An engine with its inputs: call `run_first`, then `settle`, then `run` or the `timed_call`."""

    def run_first(self) -> None: ...

    def settle(self) -> int: ...

    def run(self) -> None: ...

    def timed_call(self) -> Callable[[], object]: ...

    def outputs(self) -> dict[str, object]: ...


class OpenEngine(Protocol):
    """Makes an engine for an order; raises Refusal."""

    def __call__(self, order: Order, *, timer: PhaseTimer) -> Engine: ...


class FeedEngine(Protocol):
    """Binds inputs to an engine."""

    def __call__(self, engine: Engine, inputs: Arrays, *, device: str | None = None) -> Feed: ...


@dataclass(frozen=True)
class Kind:
    """One kind of engine. `module`: what runs it.

    `is_first_free`: whether every input's first dimension may have any size; `dimensions`: of each input, dynamic ones
    by the name that the model gives them. `passes`: what it can be asked for, and where in the runner each lies.
    `scenarios`: where its own loops lie by the kind that they are of, and then it runs no other; None: it runs all.
    `has_sessions`: whether it opens a second one as cheaply, at another level or with other threads. `other_call`: of
    a feed, the name and the callable of a second way to ask for the same inference.
    """

    module: str
    open_engine: OpenEngine
    choose_inputs: Callable[[Engine, Arrays], Arrays]
    feed: FeedEngine
    is_first_free: Callable[[Engine], bool]
    dimensions: Callable[[Engine], dict[str, list[object]]]
    passes: Mapping[str, str]
    scenarios: Mapping[str, str] | None = None
    has_sessions: bool = False
    other_call: Callable[[Feed], tuple[str, Callable[[], object]] | None] | None = None


# of whatever runs single inferences
PASSES = {
    "engines": "engine_pairs:compare_engines",
    "sample": "sample:run_sample",
    "sustained": "sample:run_sustained",
    "check": "check:run_check",
    "look": "tensor_comparison:run_tensor_comparison",
}
