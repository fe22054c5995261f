"""What a scenario is to the passes that run one: a small state machine, opened, stepped through and closed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from worker.runner import faults
from worker.runner.arrays import Arrays, load_arrays
from worker.runner.engines.protocol import Engine, Feed, Kind
from worker.runner.engines.table import kind_of
from worker.runner.interleaving import Turns
from worker.runner.order import Order, PhaseTimer, WrapCall

Call = Callable[[], object]


@dataclass(frozen=True)
class Room:
    """What a launch gives its scenario. `turns`: the process's place among others that measure; None: it has none."""

    order: Order
    timer: PhaseTimer
    wrap_call: WrapCall | None = None
    turns: Turns | None = None


@dataclass(frozen=True)
class Ready:
    """Sessions with their inputs bound, settled, and a callable for each that infers once."""

    kind: Kind
    engines: list[Engine]
    inputs: Arrays
    feeds: list[Feed]
    calls: list[Call]

    @property
    def asked_and_got(self) -> dict[str, object]:
        return {"requested_providers": self.engines[0].requested, "active_providers": self.engines[0].active}


class Scenario(Protocol):
    """One launch's work: `open` makes it ready, each `step` is a phase and tells whether another follows, `close` sums
    up: an answer with a `sample` in the shape of the contract's Sample, or with `points` of a curve.
    """

    def open(self) -> None: ...

    def step(self) -> bool: ...

    def close(self) -> dict[str, object]: ...


class MakeScenario(Protocol):
    """Makes a scenario for a launch."""

    def __call__(self, room: Room, /) -> Scenario: ...


def make_ready(room: Room, *, sessions: int) -> Ready:
    """Opens so many sessions of the order's model, binds their inputs and runs each once. Raises Refusal."""
    order, timer = room.order, room.timer
    given = load_arrays(order.inputs)
    kind = kind_of(order)
    engines = [kind.open_engine(order, timer=timer) for _ in range(sessions)]
    inputs = kind.choose_inputs(engines[0], given)
    with faults.translate_errors("run"):
        with timer.phase("first"):
            feeds = [_first_run(kind, engine, inputs) for engine in engines]
        for feed in feeds:
            feed.settle()
        calls = [feed.timed_call() for feed in feeds]
    wrap = room.wrap_call
    return Ready(kind, engines, inputs, feeds, [wrap(call) for call in calls] if wrap else calls)


def _first_run(kind: Kind, engine: Engine, inputs: Arrays) -> Feed:
    feed = kind.feed(engine, inputs)
    feed.run_first()
    return feed
