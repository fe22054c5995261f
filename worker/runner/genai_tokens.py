"""The tokens pass: a model's own tokenizer turns texts into token ids. It is never timed.

onnxruntime-genai has a tokenizer for loaded models only, so the model is loaded for it.
"""

import json
import os

import numpy as np
import onnxruntime_genai

from worker.runner import faults
from worker.runner.arrays import save_arrays
from worker.runner.engines import genai
from worker.runner.order import Order, PhaseTimer

# onnxruntime-genai reads one of these files in the model's folder
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
# two texts of 1,048,576 characters, each escaped in up to 12 bytes
MAX_TEXT_BYTES = 32 << 20


def run_tokens(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Read texts from `order.inputs` ({name: text} as JSON) and write their ids to `order.keep` (.npz, int64).

    Return the texts' names, sorted, under `tokens`. Raises Refusal where the model has no tokenizer or it fails.
    """
    folder = os.path.dirname(order.model)
    if not any(os.path.isfile(os.path.join(folder, name)) for name in TOKENIZERS):
        raise faults.Refusal(
            "model_not_loaded",
            f"the model has no tokenizer ({TOKENIZERS[0]} beside its configuration): give token ids in a .npz instead",
        )
    with open(order.inputs, "rb") as opened:
        texts: dict[str, str] = json.loads(opened.read(MAX_TEXT_BYTES))
    with timer.phase("session"), faults.translate_errors("session"):
        tokenizer = onnxruntime_genai.Tokenizer(genai.open_model(order))
    with faults.translate_errors("run"):
        ids: dict[str, object] = {name: np.asarray(tokenizer.encode(text), np.int64) for name, text in texts.items()}
    assert order.keep is not None
    save_arrays(order.keep, ids)
    return {"tokens": sorted(ids)}
