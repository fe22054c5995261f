"""Texts as token ids, by the tokenizer of a model that onnxruntime-genai reads."""

import json
from collections.abc import Mapping
from pathlib import Path

from farm.contract.reasons import ReasonedError
from farm.sandbox import child, interpreters, leavings
from farm.sandbox.policy import Policy
from worker.agent.kit.runtimes import Installed
from worker.agent.passes.checks import RUNNER_ORDER_VERSION
from worker.agent.passes.launches import garbled, read_ending
from worker.agent.passes.orders import RunnerOrder

# a model of gigabytes is loaded for its tokenizer
TIMEOUT_S = 600.0
_TEXTS, _IDS = "texts.json", "ids.npz"


class TokensFailedError(ReasonedError):
    """The tokenizer could not be asked, or refused."""


def written(texts: Mapping[str, str], *, model: Path, runtime: Installed, stage: Path, work: Path) -> Path:
    """The file of token ids, an array for each text under its name (`.npz`, of a child: not looked at yet).

    `stage` is the staged runner, `work` an empty folder. Raises TokensFailedError.
    """
    asked, made = work / _TEXTS, work / _IDS
    asked.write_text(json.dumps(texts))
    order: RunnerOrder = {
        "version": RUNNER_ORDER_VERSION,
        "kind": "tokens",
        "model": str(model),
        "inputs": str(asked),
        "provider": "CPUExecutionProvider",
        "program": "genai",
        "keep": str(made),
    }
    ending = child.run_command(
        [str(runtime.python), "-I", str(stage)],
        policy=Policy(
            read_only=(*interpreters.paths(runtime.python), stage, model.parent),
            read_write=(work,),
        ),
        timeout_s=TIMEOUT_S,
        stdin=json.dumps(order).encode(),
        cwd=work,
    )
    answer = read_ending(ending)
    if answer.reason is not None:
        raise TokensFailedError(answer.reason)
    if not leavings.is_plain(made):
        raise TokensFailedError(garbled("it kept no token ids"))
    return made
