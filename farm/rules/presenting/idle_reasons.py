"""Why an open run does not measure anything at the moment, in one sentence. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.rules.wording.numbers import counted


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an open run waits for. Counts are of its blocks that are not measured.

    `trials`: nodes that try a provider for it, in words;
    `spent`: that its team has had its minutes of the day, in words; `told`: what nodes that could measure it say keeps
    them; `busy`: what such nodes measure now, in words; `nodes`: how many nodes online take its blocks; `offline`:
    those that would and are not there, each with when it was last heard of; `only`: the nodes, where no other may ever
    measure it, each with what keeps it; `hardware`: what its blocks ask for.
    """

    trials: Sequence[str] = ()
    spent: str = ""
    preparing: int = 0
    queued: int = 0
    told: Sequence[str] = ()
    busy: Sequence[str] = ()
    nodes: int = 0
    offline: Sequence[str] = ()
    only: Sequence[str] = ()
    hardware: Sequence[str] = ()


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
        known = f"Start {' or '.join(waiting.offline)}" if waiting.offline else "Start one"
        return f"No node that takes blocks for {what} is online. {known}, or add a node."
    if waiting.busy:
        return f"Queued: {'; '.join(waiting.busy)}."
    return "Queued: a node takes the next block within seconds."
