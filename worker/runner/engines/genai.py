"""onnxruntime-genai as an engine: it loads a model's folder, and the cell's settings replace the configuration's.

`Config.overlay` sets threads, the provider, lengths and how a token is chosen. No file of the upload is changed.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import onnxruntime_genai

from worker.runner import faults
from worker.runner.engines import protocol
from worker.runner.order import CPU, Order, PhaseTimer
from worker.runner.parity import Array

CONFIG = "genai_config.json"
MAX_CONFIG_BYTES = 1 << 20
# the sampler's options for the greedy choice
_LIKELIEST: dict[str, object] = {"do_sample": False, "top_k": 1, "top_p": 1.0, "temperature": 1.0}
# options of a configuration that would change the tokens or the work, reset to their neutral values
_PLAIN: dict[str, object] = {"num_beams": 1, "num_return_sequences": 1, "repetition_penalty": 1.0}


@dataclass(frozen=True)
class GenerationRequest:
    """A generation: the prompt's token ids [batch, length], the number of new tokens, and how they are chosen.

    `sampling` is greedy, top-p or top-k, and `limit` its p or k. `search` has the search options for
    onnxruntime-genai.
    """

    prompt: Array
    new: int
    sampling: str = "greedy"
    limit: float = 0.0
    temperature: float = 1.0
    seed: int = 0

    @property
    def is_sampled(self) -> bool:
        return self.sampling != "greedy"

    @property
    def search(self) -> dict[str, object]:
        """The search options of onnxruntime-genai. They fix the length, so that an end token does not end the text."""
        batch, length = self.prompt.shape
        return {
            **_PLAIN,
            **self._sampler(),
            "batch_size": batch,
            "min_length": length + self.new,
            "max_length": length + self.new,
            "random_seed": self.seed,
        }

    def _sampler(self) -> dict[str, object]:
        """Make the sampler's options. For top-p, `top_k` is 0, because the configuration's own would apply too."""
        if not self.is_sampled:
            return _LIKELIEST
        limits: dict[str, object] = {"top_k": 0, "top_p": self.limit}
        if self.sampling == "top-k":
            limits = {"top_k": int(self.limit), "top_p": 1.0}
        return {"do_sample": True, "temperature": self.temperature, **limits}


@dataclass
class LoadedModel:
    """A model that is loaded for a request. `vocabulary` is the number of tokens that it scores."""

    model: Any
    request: GenerationRequest
    vocabulary: int
    requested: list[str] = field(default_factory=lambda: [CPU])
    active: list[str] = field(default_factory=lambda: [CPU])

    def make_generator(self, *, batch: int | None = None) -> Any:
        """Make a generator without tokens. `batch` is the number of sequences; None: that of the request."""
        params = onnxruntime_genai.GeneratorParams(self.model)
        if batch is not None:
            params.set_search_options(batch_size=batch)
        return onnxruntime_genai.Generator(self.model, params)


@dataclass(frozen=True)
class ModelLimits:
    """Limits of a model for prompts: the number of tokens of its vocabulary, and of its context."""

    vocabulary: int
    context: int


def read_model_limits(folder: str) -> ModelLimits:
    """Read the limits from the configuration in the folder. Raises Refusal where it cannot be read."""
    path = os.path.join(folder, CONFIG)
    try:
        with open(path, "rb") as opened:
            model = json.loads(opened.read(MAX_CONFIG_BYTES))["model"]
        return ModelLimits(vocabulary=int(model["vocab_size"]), context=int(model["context_length"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise faults.Refusal(
            "model_not_loaded", f"{CONFIG} cannot be read ({error!r:.200}); export it again"
        ) from error


def load_model(order: Order, request: GenerationRequest, *, timer: PhaseTimer) -> LoadedModel:
    """Load the order's model for the request. Raises Refusal where it does not load or the prompt does not fit."""
    limits = read_model_limits(os.path.dirname(order.model))
    _refuse_misfit(request, limits)
    with timer.phase("session"), faults.translate_errors("session"):
        model = open_model(order, search=request.search, pad_token_id=_find_unused_token(request.prompt, limits))
    return LoadedModel(model, request, limits.vocabulary)


def open_model(order: Order, *, search: Mapping[str, object] | None = None, **model_entries: object) -> Any:
    """Open the order's model on the CPU with the configuration of its folder, and the order's file and threads.

    `search` and `model_entries` are further entries of the sections `search` and `model`. The errors of
    onnxruntime-genai are raised as they are.
    """
    folder, main = os.path.split(order.model)
    session = order.session
    options = {
        "intra_op_num_threads": session.threads,
        "inter_op_num_threads": session.inter_op_threads,
        "log_severity_level": 3,
    }
    config = onnxruntime_genai.Config(folder)
    config.clear_providers()
    model = {"decoder": {"filename": main, "session_options": options}, **model_entries}
    config.overlay(json.dumps({"model": model, "search": dict(search or {})}))
    return onnxruntime_genai.Model(config)


def _find_unused_token(prompt: Array, limits: ModelLimits) -> int:
    """Find a token for the padding that is not in the prompt, because padding is not attended to."""
    used = set(prompt.reshape(-1).tolist())
    return next((token for token in range(limits.vocabulary) if token not in used), 0)


def _refuse_misfit(request: GenerationRequest, limits: ModelLimits) -> None:
    length = request.prompt.shape[1]
    if length + request.new > limits.context:
        raise faults.Refusal(
            "inference_failed",
            f"the model's context is {limits.context:,} tokens, and {length:,} of the prompt with {request.new:,} new "
            f"ones are {length + request.new:,}; ask for fewer",
        )
    beyond = [int(token) for token in request.prompt.flat if not 0 <= int(token) < limits.vocabulary]
    if beyond:
        raise faults.Refusal(
            "inference_failed",
            f"the prompt holds the token id {beyond[0]} and the vocabulary has {limits.vocabulary:,}; give other ids",
        )


def _refuse(*_: object, **__: object) -> NoReturn:
    raise faults.Refusal("not_supported", "onnxruntime-genai generates, and runs no inference by itself")


KIND = protocol.Kind(
    module="onnxruntime_genai",
    open_engine=_refuse,
    choose_inputs=_refuse,
    feed=_refuse,
    is_first_free=_refuse,
    dimensions=_refuse,
    passes={
        "engines": "engine_pairs:compare_engines",
        "sample": "sample:run_sample",
        "sustained": "sample:run_sustained",
        "check": "genai_check:run_check",
        "tokens": "genai_tokens:run_tokens",
    },
    scenarios={"generate": "scenarios.genai:GenerateByGenai"},
)
