"""The interface of a scenario: a small state machine that a pass opens, steps through and closes."""

from dataclasses import dataclass
from typing import Protocol

from worker.runner import faults
from worker.runner.arrays import Arrays, load_arrays
from worker.runner.engines.protocol import Engine, Feed, Kind
from worker.runner.engines.table import find_engine_kind
from worker.runner.interleaving import Turns
from worker.runner.order import Call, Order, PhaseTimer


@dataclass(frozen=True)
class LaunchContext:
    """What a launch gives its scenario. `turns`: this process takes turns with others; None: it measures alone."""

    order: Order
    timer: PhaseTimer
    turns: Turns | None = None


@dataclass(frozen=True)
class PreparedSessions:
    """Sessions with bound inputs that have run and settled, and for each a callable that runs one inference.

    `provider_report` has the answer's fields about providers.
    """

    kind: Kind
    engines: list[Engine]
    inputs: Arrays
    feeds: list[Feed]
    calls: list[Call]

    @property
    def provider_report(self) -> dict[str, object]:
        return {"requested_providers": self.engines[0].requested, "active_providers": self.engines[0].active}


class Scenario(Protocol):
    """The work of one launch. All methods may raise Refusal.

    `open` loads the model. `step` runs one phase, and returns whether another one follows. `close` returns a `sample`
    with the fields of the contract's Sample, or the `points` of a curve.
    """

    def open(self) -> None: ...

    def step(self) -> bool: ...

    def close(self) -> dict[str, object]: ...


class MakeScenario(Protocol):
    """Makes the scenario of one launch."""

    def __call__(self, context: LaunchContext, /) -> Scenario: ...


def prepare_sessions(context: LaunchContext, *, sessions: int) -> PreparedSessions:
    """Open this number of sessions of the order's model, bind their inputs and run each. Raises Refusal on failure."""
    order, timer = context.order, context.timer
    arrays = load_arrays(order.inputs)
    kind = find_engine_kind(order)
    engines = [kind.open_engine(order, timer=timer) for _ in range(sessions)]
    inputs = kind.choose_inputs(engines[0], arrays)
    with faults.translate_errors("run"):
        with timer.phase("first"):
            feeds = [kind.feed(engine, inputs) for engine in engines]
            for feed in feeds:
                feed.run_first()
        for feed in feeds:
            feed.settle()
        calls = [timer.wrap_call(feed.timed_call()) for feed in feeds]
    return PreparedSessions(kind, engines, inputs, feeds, calls)
