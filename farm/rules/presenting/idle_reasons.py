"""Why an open run does not measure anything at the moment, in one sentence. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from farm.contract.node import NodeSettings
from farm.rules.planning.hours import is_within
from farm.rules.wording.numbers import counted

# why a node that is online takes no block of a team, after "is online but"
PENDING = "not approved yet"
NO_SANDBOX = "without a sandbox, so that it measures only what its owner uploaded"


def explain_pause(limits: NodeSettings, now: datetime) -> str:
    """Say why a node takes no block now by its owner's limits: `paused by its owner`; empty where it may."""
    if limits.is_paused:
        return "paused by its owner"
    if not is_within(limits.hours, now, timezone=limits.timezone):
        return f"outside its owner's hours until {limits.hours.partition('-')[0]} {limits.timezone}"
    return ""


def explain_not_lent(team: str) -> str:
    return f"not lent to “{team}” (its owner offers it, an admin of “{team}” agrees)"


def describe_kept_node(name: str, why: str) -> str:
    return f"{name} is online but {why}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an open run waits for. Counts are of its blocks that are not measured.

    `trials`: nodes that try a provider for it, in words;
    `spent`: that its team has had its minutes of the day, in words; `told`: what nodes that could measure it say keeps
    them; `busy`: what such nodes measure now, in words; `nodes`: how many nodes online take its blocks; `offline`:
    those that would and are not there, each with when it was last heard of; `kept`: those that are there and take none,
    each with why; `only`: the nodes, where no other may ever measure it, each with what keeps it; `hardware`: what its
    blocks ask for; `team`: whose run it is.
    """

    trials: Sequence[str] = ()
    spent: str = ""
    preparing: int = 0
    queued: int = 0
    told: Sequence[str] = ()
    busy: Sequence[str] = ()
    nodes: int = 0
    offline: Sequence[str] = ()
    kept: Sequence[str] = ()
    only: Sequence[str] = ()
    hardware: Sequence[str] = ()
    team: str = ""


def idle_reason(waiting: Waiting) -> str:
    """Say what the run waits for first; empty where nothing is left to be measured."""
    if waiting.queued:
        return _explain_queued(waiting)
    if waiting.trials:
        return " ".join([*waiting.trials, "This run starts when it has."])
    if waiting.preparing:
        blocks = f"{counted(waiting.preparing, 'block')} {'waits' if waiting.preparing == 1 else 'wait'}"
        return f"{blocks} for variants and inputs, which are being prepared."
    return ""


def _explain_queued(waiting: Waiting) -> str:
    if waiting.spent:
        return waiting.spent
    if waiting.told:
        return " ".join(waiting.told)
    if not waiting.nodes and waiting.only:
        return f"Only {' or '.join(waiting.only)} may measure what is left. For other nodes, start a new run."
    if not waiting.nodes:
        what = ", ".join(waiting.hardware) or "this hardware"
        if waiting.kept:
            started = f"start {' or '.join(waiting.offline)}, or " if waiting.offline else ""
            kept = "; ".join(waiting.kept)
            return f"No node takes this run's blocks for {what} now: {kept}. To begin sooner, {started}add a node."
        known = f"Start {' or '.join(waiting.offline)}" if waiting.offline else "Start one"
        return f"No node that takes blocks of “{waiting.team}” for {what} is online. {known}, or add a node."
    if waiting.busy:
        return f"Queued: {'; '.join(waiting.busy)}."
    return "Queued: a node takes the next block within seconds."
