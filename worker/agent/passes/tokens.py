"""Texts as token ids, by the tokenizer of a model that onnxruntime-genai reads."""

import json
from collections.abc import Mapping
from pathlib import Path

from farm.contract.reasons import Reason, ReasonCode, ReasonedError
from farm.rules.runtimes.genai import GENAI
from farm.sandbox import child, interpreters, leavings
from farm.sandbox.endings import Ending
from farm.sandbox.policy import Policy
from worker.agent.kit.runtimes import Installed
from worker.agent.passes.checks import RUNNER_ORDER_VERSION
from worker.agent.passes.launches import garbled, read_ending
from worker.agent.passes.orders import RunnerOrder

# a model of gigabytes is loaded for its tokenizer
TIMEOUT_S = 600.0
# … with room for copies of its weights that a session packs anew
BASE_BYTES = 2 << 30
TIMES_MODEL = 4
_TEXTS, _IDS = "texts.json", "ids.npz"


class TokensFailedError(ReasonedError):
    """The tokenizer could not be asked, or refused."""


def written(
    texts: Mapping[str, str], *, model: Path, runtime: Installed, stage: Path, work: Path, base_bytes: int = BASE_BYTES
) -> Path:
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
        "engine": GENAI.name,
        "module": GENAI.module,
        "keep": str(made),
    }
    ending = child.run_command(
        [str(runtime.python), "-I", str(stage)],
        policy=Policy(
            read_only=(*interpreters.paths(runtime.python), stage, model.parent),
            read_write=(work,),
            memory_bytes=base_bytes + TIMES_MODEL * _bytes_in(model.parent),
        ),
        timeout_s=TIMEOUT_S,
        stdin=json.dumps(order).encode(),
        cwd=work,
    )
    if ending.kind == "out_of_memory":
        raise TokensFailedError(_too_much(ending))
    answer = read_ending(ending)
    if answer.reason is not None:
        raise TokensFailedError(answer.reason)
    if not leavings.is_plain(made):
        raise TokensFailedError(garbled("it kept no token ids"))
    return made


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def _too_much(ending: Ending) -> Reason:
    sentence = ending.sentence().replace("It ", "The tokenizer ", 1)
    text = f"{sentence} Give shorter texts, or token ids in a .npz (prompt, int64) in place of a text."
    return Reason(code=ReasonCode.OUT_OF_MEMORY, text=text)
