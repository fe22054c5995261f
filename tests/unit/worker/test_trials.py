"""A trial of a provider on a node: nothing is installed without a sign of it, and what came of it is said."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.contract import node as messages
from tests.idle import IdleEquipment
from tests.unit.rules.making import make_facts
from worker.agent.abilities.probes import Abilities, NotProvenError
from worker.agent.agent import Agent
from worker.agent.connection.gateway import Gateway
from worker.agent.equipment import NodeEquipment
from worker.agent.home import Identity, NodeHome
from worker.agent.logs import LogTail


@pytest.fixture
def home(tmp_path: Path) -> NodeHome:
    made = NodeHome(tmp_path)
    made.store_identity(
        Identity(url="https://farm.example", node_id="7", name="bench", private_key="x", fingerprint="aa:bb")
    )
    return made


@pytest.mark.parametrize(
    ("short", "why"),
    [
        ("coreml", "Nothing was installed"),
        ("cuda", "Nothing was installed"),
        ("xnnpack", "knows no build"),
        ("no-such-provider", "knows no build"),
    ],
)
def test_nothing_is_installed_for_what_this_machine_cannot_have(home: NodeHome, short: str, why: str) -> None:
    equipment = NodeEquipment(home, Gateway("https://farm.example"), search=lambda *_, **__: None)
    with pytest.raises(NotProvenError, match=why):
        equipment.try_provider(short, is_cancelled=lambda: False)
    assert equipment.list_runtimes() == ()


class Trying(IdleEquipment):
    """`what`: raised in place of proving it."""

    def __init__(self, what: Exception | None = None) -> None:
        super().__init__(make_facts().facts)
        self.what, self.tried = what, 0

    def measure(self, *_: object, **__: object) -> None:
        raise AssertionError("no block was given")

    def try_provider(self, short: str, *, is_cancelled: Callable[[], bool]) -> Abilities:
        self.tried += 1
        if self.what is not None:
            raise self.what
        return super().try_provider(short, is_cancelled=is_cancelled)


def _after_a_trial(home: NodeHome, equipment: Trying, *, times: int = 1) -> Agent:
    agent = Agent(home, gateway=Gateway("https://farm.example"), equipment=equipment, tail=LogTail())
    agent._presence.abilities = Abilities(tags={"cpu": "made up"}, providers=("CPUExecutionProvider",))
    for _ in range(times):
        agent._on_welcome(messages.Welcome(health="active", trial=messages.Trial(id="3", provider="openvino")))
    for thread in threading.enumerate():
        if thread.name == "trial":
            thread.join(10)
    return agent


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        (None, ""),
        (NotProvenError("It takes an Intel device."), "It takes an Intel device."),
        (OSError(28, "full"), "full"),
    ],
)
def test_what_came_of_a_trial_is_said_with_the_next_hello(home: NodeHome, what: Exception | None, problem: str) -> None:
    presence = _after_a_trial(home, Trying(what))._presence
    assert presence.tried is not None
    assert presence.tried.id == "3"
    assert problem in presence.tried.problem
    assert bool(presence.tried.problem) == bool(problem)
    assert ("OpenVINOExecutionProvider" in presence.abilities.providers) == (what is None)
    assert presence.waits_for == ""


def test_a_trial_that_is_ordered_again_is_made_once(home: NodeHome) -> None:
    equipment = Trying()
    _after_a_trial(home, equipment, times=3)
    assert equipment.tried == 1
