# acme_engine_runner.py
import importlib
from dataclasses import dataclass, field

from worker.runner import faults
from worker.runner.engines.protocol import PASSES, Kind


@dataclass
class Opened:
    model: object
    requested: list[str]
    active: list[str]
    device: str = "cpu"
    provider_options: dict[str, object] = field(default_factory=dict)
    provider_facts: dict[str, str] = field(default_factory=dict)
    is_simulated: bool = False


class Feed:
    def __init__(self, opened, inputs):
        self._model, self._inputs = opened.model, inputs

    def run(self):
        self._outputs = self._model.run(self._inputs)

    def run_first(self):
        self.run()

    def settle(self):
        return 0  # nothing is bound, no inference was begun

    def timed_call(self):
        return self.run

    def outputs(self):
        return self._outputs  # arrays by the model's names


def open_engine(order, *, timer):
    engine = importlib.import_module(order.module)
    with timer.phase("session"), faults.translate_errors("session"):
        model = engine.load(order.model, threads=order.session.threads)
    return Opened(model, requested=[order.provider], active=[order.provider])


Outside = Kind(
    module="acme_engine",
    open_engine=open_engine,
    choose_inputs=lambda opened, given: given,
    feed=lambda opened, inputs, device=None: Feed(opened, inputs),
    is_first_free=lambda opened: False,
    dimensions=lambda opened: {},
    passes=PASSES,
)
