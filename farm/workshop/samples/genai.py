"""Writes the sample decoder as a folder that onnxruntime-genai reads, without a tokenizer: prompts are token ids."""

import json
from pathlib import Path

import onnx

from farm.rules.runtimes.genai import CONFIG
from farm.workshop.samples import decoder

MAIN = "model.onnx"


def write_folder(folder: Path, model: onnx.ModelProto) -> Path:
    """Write the model and its configuration into the folder, which is made if it is missing, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MAIN).write_bytes(model.SerializeToString(deterministic=True))
    vocabulary = model.graph.output[0].type.tensor_type.shape.dim[2].dim_value
    (folder / CONFIG).write_text(json.dumps(make_configuration(vocabulary), indent=1))
    return folder


def make_configuration(vocabulary: int) -> dict[str, object]:
    """Make a configuration as onnxruntime-genai's exporters write it; a cell has to override its sampling options."""
    inputs = {name: name for name in ("input_ids", "attention_mask", "position_ids")}
    pasts = {f"past_{part}_names": f"past_key_values.%d.{part}" for part in ("key", "value")}
    presents = {f"present_{part}_names": f"present.%d.{part}" for part in ("key", "value")}
    return {
        "model": {
            "type": "llama",
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "vocab_size": vocabulary,
            "context_length": decoder.CONTEXT,
            "decoder": {
                "filename": MAIN,
                "head_size": decoder.WIDTH,
                "hidden_size": decoder.HIDDEN,
                "num_attention_heads": decoder.HEADS,
                "num_key_value_heads": decoder.KEY_HEADS,
                "num_hidden_layers": decoder.LAYERS,
                "session_options": {"provider_options": []},
                "inputs": {**inputs, **pasts},
                "outputs": {"logits": "logits", **presents},
            },
        },
        "search": {
            "max_length": decoder.CONTEXT,
            "do_sample": True,
            "top_k": 50,
            "top_p": 0.8,
            "temperature": 0.7,
            "repetition_penalty": 1.1,
            "past_present_share_buffer": False,
        },
    }
