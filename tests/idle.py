"""What a node's equipment answers in tests that measure nothing."""

from collections.abc import Callable

from farm.contract import node as messages
from farm.contract.cells import Runtime
from farm.contract.reports import Facts
from farm.rules.runtimes import providers
from worker.agent.abilities.probes import Abilities

CPU = "CPUExecutionProvider"


class IdleEquipment:
    """A machine with a CPU and no runtime. Subclasses say what `measure` does with a block."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def read_facts(self) -> Facts:
        return self._facts

    def list_runtimes(self) -> tuple[Runtime, ...]:
        return ()

    def probe(self, *, is_cancelled: Callable[[], bool]) -> Abilities:
        return Abilities(tags={"cpu": "made up"}, providers=(CPU,))

    def probe_further(self, earlier: Abilities, *, is_cancelled: Callable[[], bool]) -> Abilities:
        return earlier

    def try_provider(self, short: str, *, is_cancelled: Callable[[], bool]) -> Abilities:
        return Abilities(tags={short: "made up"}, providers=(providers.resolve(short).name,))

    def read_temperature_c(self) -> float | None:
        return None

    def apply_limits(self, settings: messages.NodeSettings) -> None:
        """Nothing to limit."""
