"""What a provider compiled of the cells' models, kept for whoever wants to run it without compiling it again."""

import logging
from collections.abc import Iterable

from farm.rules.runtimes import providers
from farm.sandbox import leavings
from worker.agent.kit.environment import StoreCompiled
from worker.agent.passes.arms import PreparedArm
from worker.agent.passes.checks import runner_order
from worker.agent.passes.launches import Launcher

logger = logging.getLogger(__name__)
KEPT = "compiled.onnx"


def wanted(arms: Iterable[PreparedArm]) -> list[PreparedArm]:
    """The arms whose provider leaves a compiled model; of equal cells the first."""
    found: dict[str, PreparedArm] = {}
    for arm in arms:
        entry = providers.find(arm.order.cell.provider)
        if entry is not None and entry.leaves_context and arm.is_session:
            found.setdefault(arm.order.cell.digest, arm)
    return list(found.values())


def keep_compiled(launcher: Launcher, arm: PreparedArm, *, store: StoreCompiled) -> None:
    """Compiles an arm's model once more, in a process of its own, and sends what came out.

    A model that cannot be kept, because it is compiled already, say, is a line of the log: its cell is measured.
    """
    kept = arm.scratch / KEPT
    answer = launcher.launch(arm, {**runner_order(arm, "compilation"), "keep": str(kept)}, work_dir=arm.scratch)
    if answer.reason is not None:
        logger.warning("The compiled model of arm %d was not kept: %s", arm.arm, answer.reason.text)
    elif leavings.is_plain(kept):
        store(arm.arm, kept)
