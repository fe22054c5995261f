"""The two kinds of engines: sessions of ONNX Runtime, and a framework's program.

Each is imported where it is asked for: an environment has one of the two runtimes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from worker.runner.arrays import Arrays
from worker.runner.order import Order, PhaseTimer

if TYPE_CHECKING:
    from worker.runner.program import Program


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
    """One kind of engine. `module`, `version`: of what runs it, as it says of itself.

    `is_first_free`: whether every input's first dimension may have any size; `dimensions`: of each input, dynamic ones
    by the name that the model gives them.
    """

    module: str
    version: str
    open_engine: OpenEngine
    choose_inputs: Callable[[Engine, Arrays], Arrays]
    feed: FeedEngine
    is_first_free: Callable[[Engine], bool]
    dimensions: Callable[[Engine], dict[str, list[object]]]


def kind_of(order: Order) -> Kind:
    """What runs the order's model."""
    return _sessions() if order.program is None else _programs()


def _sessions() -> Kind:
    import onnxruntime

    from worker.runner import bindings, engine

    def is_first_free(one: Engine) -> bool:
        inputs = cast(engine.Engine, one).session.get_inputs()
        return all(node.shape and not isinstance(node.shape[0], int) for node in inputs)

    return Kind(
        module="onnxruntime",
        version=onnxruntime.__version__,
        open_engine=engine.open_engine,
        choose_inputs=lambda one, given: bindings.choose_inputs(cast(engine.Engine, one), given),
        feed=lambda one, inputs, device=None: bindings.Feed(cast(engine.Engine, one), inputs, device=device),
        is_first_free=is_first_free,
        dimensions=lambda one: {node.name: list(node.shape) for node in cast(engine.Engine, one).session.get_inputs()},
    )


def _programs() -> Kind:
    import torch

    from worker.runner import program

    def known(one: Engine) -> "Program":
        return cast(program.Program, one)

    return Kind(
        module="torch",
        version=str(torch.__version__),
        open_engine=program.open_program,
        choose_inputs=lambda one, given: program.choose_inputs(known(one), given),
        feed=lambda one, inputs, device=None: program.ProgramFeed(known(one), inputs),
        is_first_free=lambda one: all(port.sizes[:1] == (None,) for port in known(one).ports.inputs),
        dimensions=lambda one: {port.name: list(port.sizes) for port in known(one).ports.inputs},
    )
