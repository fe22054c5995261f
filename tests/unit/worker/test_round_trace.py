"""The trace of a launch in a round: which runs of its profile came first after others' turns."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from worker.runner import round_trace
from worker.runner.engines.onnxruntime import SHAPE_TRIES, Engine, Feed
from worker.runner.interleaving import Turns
from worker.runner.order import Order


class Session:
    """One output of a size that depends on the data, or of a fixed one; the run of that number fails."""

    def __init__(self, *, size: object, fails_at: int = 0) -> None:
        self.runs = 0
        self._size, self._fails_at = size, fails_at

    def io_binding(self) -> Any:
        return SimpleNamespace(
            get_outputs=lambda: [object()],
            bind_output=lambda name, device: None,
            bind_ortvalue_output=lambda name, value: None,
            clear_binding_outputs=lambda: None,
        )

    def get_inputs(self) -> list[Any]:
        return []

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name="y", type="tensor(int64)", shape=[self._size])]

    def run_with_iobinding(self, binding: object) -> None:
        self.runs += 1
        if self.runs == self._fails_at:
            raise RuntimeError("The output has another shape.")


def begun_by(session: Session) -> int:
    """What a feed says it began until it has settled."""
    feed = Feed(cast(Engine, SimpleNamespace(session=session, device="cpu", call="bound")), {})
    feed.run_first()
    return 1 + feed.settle()


@pytest.mark.parametrize(
    ("session", "runs"),
    [
        (Session(size=4), 2),
        (Session(size="found"), 1 + SHAPE_TRIES),
        (Session(size="found", fails_at=3), 4),
        (Session(size=4, fails_at=2), 3),
    ],
)
def test_a_feed_says_how_many_inferences_it_began_until_it_settled(session: Session, runs: int) -> None:
    assert (begun_by(session), session.runs) == (runs, runs)


@pytest.mark.parametrize("begun", [3, 5])
def test_runs_after_others_turns_are_known_by_their_places_however_many_runs_came_before(begun: int) -> None:
    order = Order(kind="sample", model="", inputs="", provider="CPUExecutionProvider", trace_runs=5, trace_s=60.0)
    said: list[str] = ["run"] * begun
    feed = SimpleNamespace(run=lambda: said.append("run"))
    turns = SimpleNamespace(wait_for_turn=lambda: said.append("wait"))
    # every inference takes a turn of its own
    cold = round_trace._run_in_turns(cast(Feed, feed), order, begun=begun, turns=cast(Turns, turns), turn_ns=1)
    after_waits = {said[:place].count("run") for place, word in enumerate(said) if word == "wait"}
    assert cold == after_waits == {begun + 1, begun + 3, begun + 5, begun + 7}
