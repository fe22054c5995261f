"""Explains in one sentence why an open run is not being measured at the moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from farm.contract.node import NodeSettings
from farm.rules.planning.hours import is_within
from farm.rules.wording.numbers import counted

# Reasons why a node takes no block of a team. They follow "is online but" in a sentence.
PENDING = "not approved yet"
NO_SANDBOX = "without a sandbox, so that it measures only what its owner uploaded"


def explain_pause(limits: NodeSettings, now: datetime) -> str:
    """Say which of the owner's limits keeps a node from taking blocks now: `paused by its owner`; empty where none
    does."""
    if limits.is_paused:
        return "paused by its owner"
    if not is_within(limits.hours, now, timezone=limits.timezone):
        return f"outside its owner's hours until {limits.hours.partition('-')[0]} {limits.timezone}"
    return ""


def explain_not_lent(team: str) -> str:
    return f"not lent to “{team}” (its owner offers it, an admin of “{team}” agrees)"


def describe_unavailable_node(name: str, reason: str) -> str:
    return f"{name} is online but {reason}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an open run waits for. Texts are whole sentences or parts of one; those that do not apply are empty."""

    trials: Sequence[str] = ()  # sentences on the nodes that try a provider for it
    used_up_minutes: str = ""  # a sentence, where the team has used up its minutes of the day
    preparing: int = 0  # its blocks that wait for variants and inputs
    queued: int = 0  # its blocks that wait for a node
    obstacles: Sequence[str] = ()  # sentences on what keeps nodes from measuring it, as they report it
    busy: Sequence[str] = ()  # what the suitable nodes measure now
    nodes: int = 0  # how many online nodes take its blocks
    offline: Sequence[str] = ()  # the nodes that would take them, each with when it was last heard of
    unavailable: Sequence[str] = ()  # the online nodes that take none, each with why
    bound_nodes: Sequence[str] = ()  # the only nodes that may ever measure it, each with what keeps it from that
    hardware: Sequence[str] = ()  # what its blocks ask for
    team: str = ""  # whose run it is


def explain_idle_run(waiting: Waiting) -> str:
    """Say what the run waits for, the most immediate cause alone; empty where nothing is left to be measured."""
    if waiting.queued:
        return _explain_queued(waiting)
    if waiting.trials:
        return " ".join([*waiting.trials, "This run starts when it has."])
    if waiting.preparing:
        blocks = f"{counted(waiting.preparing, 'block')} {'waits' if waiting.preparing == 1 else 'wait'}"
        return f"{blocks} for variants and inputs, which are being prepared."
    return ""


def _explain_queued(waiting: Waiting) -> str:
    if waiting.used_up_minutes:
        return waiting.used_up_minutes
    if waiting.obstacles:
        return " ".join(waiting.obstacles)
    if not waiting.nodes and waiting.bound_nodes:
        return f"Only {' or '.join(waiting.bound_nodes)} may measure what is left. For other nodes, start a new run."
    if not waiting.nodes:
        hardware = ", ".join(waiting.hardware) or "this hardware"
        offline = " or ".join(waiting.offline)
        if waiting.unavailable:
            reasons, start = "; ".join(waiting.unavailable), f"start {offline}, or " if offline else ""
            return f"No node takes this run's blocks for {hardware} now: {reasons}. To begin sooner, {start}add a node."
        takers = f"No node that takes blocks of “{waiting.team}” for {hardware} is online."
        return f"{takers} Start {offline or 'one'}, or add a node."
    if waiting.busy:
        return f"Queued: {'; '.join(waiting.busy)}."
    return "Queued: a node takes the next block within seconds."
