"""Turns texts into token ids by the tokenizer of a model for onnxruntime-genai."""

import json
from collections.abc import Mapping
from pathlib import Path

from farm.contract.reasons import Reason, ReasonCode, ReasonedError
from farm.rules.runtimes.genai import GENAI
from farm.sandbox import plain_files
from worker.agent.installation.runtimes import Installed
from worker.agent.measurement.checks import RUNNER_ORDER_VERSION
from worker.agent.measurement.orders import RunnerOrder
from worker.agent.measurement.runner_process import make_garbled_reason, parse_ending, run_without_arm

# the whole model is loaded for its tokenizer
TIMEOUT_S = 600.0
# the memory limit is BASE_BYTES plus TIMES_MODEL times the model's size, because a session copies weights
BASE_BYTES = 2 << 30
TIMES_MODEL = 4
_TEXTS, _IDS = "texts.json", "ids.npz"


class TokenizationError(ReasonedError):
    """The tokenizer could not be run, or refused a text."""


def write_token_ids(
    texts: Mapping[str, str], *, model: Path, runtime: Installed, stage: Path, work: Path, base_bytes: int = BASE_BYTES
) -> Path:
    """Write the token ids of each text into a `.npz`, as an array with the text's name, and return its path.

    The caller has to check the file, because a sandboxed process wrote it. `stage` is the staged runner, `work` an
    empty folder. Raises TokenizationError where the tokenizer refuses or fails, and SandboxError where the sandbox
    cannot be made.
    """
    texts_path, ids_path = work / _TEXTS, work / _IDS
    texts_path.write_text(json.dumps(texts))
    order: RunnerOrder = {
        "version": RUNNER_ORDER_VERSION,
        "kind": "tokens",
        "model": str(model),
        "inputs": str(texts_path),
        "provider": "CPUExecutionProvider",
        "engine": GENAI.name,
        "module": GENAI.module,
        "keep": str(ids_path),
    }
    model_bytes = sum(path.stat().st_size for path in model.parent.iterdir() if path.is_file())
    ending = run_without_arm(
        order,
        runtime=runtime,
        stage=stage,
        reads=model.parent,
        work=work,
        memory_bytes=base_bytes + TIMES_MODEL * model_bytes,
        timeout_s=TIMEOUT_S,
    )
    if ending.kind == "out_of_memory":
        sentence = ending.describe().replace("It ", "The tokenizer ", 1)
        text = f"{sentence} Give shorter texts, or token ids in a .npz (prompt, int64) in place of a text."
        raise TokenizationError(Reason(code=ReasonCode.OUT_OF_MEMORY, text=text))
    answer = parse_ending(ending)
    if answer.reason is not None:
        raise TokenizationError(answer.reason)
    if not plain_files.is_plain(ids_path):
        raise TokenizationError(make_garbled_reason("it kept no token ids"))
    return ids_path
