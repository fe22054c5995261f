"""onnxruntime-genai as an engine: a model's folder with the cell's settings laid over its configuration.

Nothing of the upload is edited: `Config.overlay` sets threads, the provider, lengths and how a token is chosen.
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
# of a sampler that is told nothing
_LIKELIEST: dict[str, object] = {"do_sample": False, "top_k": 1, "top_p": 1.0, "temperature": 1.0}
# what a configuration may set besides, and would make other tokens or other work of
_PLAIN: dict[str, object] = {"num_beams": 1, "num_return_sequences": 1, "repetition_penalty": 1.0}


@dataclass(frozen=True)
class Asked:
    """One generation: the prompt's token ids [batch, length], how many follow, and how each is chosen."""

    prompt: Array
    new: int
    sampling: str = "greedy"
    limit: float = 0.0
    temperature: float = 1.0
    seed: int = 0

    @property
    def draws(self) -> bool:
        return self.sampling != "greedy"

    @property
    def search(self) -> dict[str, object]:
        """As onnxruntime-genai spells it. The length is forced: the token that would end the text is held back."""
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
        """`top_k` of 0 for pure top-p: what the configuration says would draw from so many first."""
        if not self.draws:
            return _LIKELIEST
        limits: dict[str, object] = {"top_k": 0, "top_p": self.limit}
        if self.sampling == "top-k":
            limits = {"top_k": int(self.limit), "top_p": 1.0}
        return {"do_sample": True, "temperature": self.temperature, **limits}


@dataclass
class Loaded:
    """A model that is loaded for a kind of generation. `vocabulary`: how many tokens it scores."""

    model: Any
    asked: Asked
    vocabulary: int
    requested: list[str] = field(default_factory=lambda: [CPU])
    active: list[str] = field(default_factory=lambda: [CPU])

    def begin(self, *, batch: int | None = None) -> Any:
        """A generator that has been given nothing yet. `batch`: sequences, where other than asked."""
        params = onnxruntime_genai.GeneratorParams(self.model)
        if batch is not None:
            params.set_search_options(batch_size=batch)
        return onnxruntime_genai.Generator(self.model, params)


@dataclass(frozen=True)
class ModelLimits:
    """What a configuration says that a prompt has to fit."""

    vocabulary: int
    context: int


def read_model_limits(folder: str) -> ModelLimits:
    """The model's part of its configuration. Raises Refusal."""
    path = os.path.join(folder, CONFIG)
    try:
        with open(path, "rb") as opened:
            model = json.loads(opened.read(MAX_CONFIG_BYTES))["model"]
        return ModelLimits(vocabulary=int(model["vocab_size"]), context=int(model["context_length"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise faults.Refusal(
            "model_not_loaded", f"{CONFIG} cannot be read ({error!r:.200}); export it again"
        ) from error


def load(order: Order, asked: Asked, *, timer: PhaseTimer) -> Loaded:
    """The order's model, ready to generate what is asked. Raises Refusal."""
    limits = read_model_limits(os.path.dirname(order.model))
    _refuse_misfit(asked, limits)
    with timer.phase("session"), faults.translate_errors("session"):
        model = open_model(order, search=asked.search, pad_token_id=_unused(asked.prompt, limits))
    return Loaded(model, asked, limits.vocabulary)


def open_model(order: Order, *, search: Mapping[str, object] | None = None, **model_entries: object) -> Any:
    """The order's model by its folder's configuration, on the CPU, with the order's file and threads laid over it.

    `search`, `told`: further entries of the configuration, of its search and of its model.
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


def _unused(prompt: Array, limits: ModelLimits) -> int:
    """A token that no prompt holds: one that begins with the token for padding would not be attended to."""
    held = set(prompt.reshape(-1).tolist())
    return next((token for token in range(limits.vocabulary) if token not in held), 0)


def _refuse_misfit(asked: Asked, limits: ModelLimits) -> None:
    length = asked.prompt.shape[1]
    if length + asked.new > limits.context:
        raise faults.Refusal(
            "inference_failed",
            f"the model's context is {limits.context:,} tokens, and {length:,} of the prompt with {asked.new:,} new "
            f"ones are {length + asked.new:,}; ask for fewer",
        )
    beyond = [int(token) for token in asked.prompt.flat if not 0 <= int(token) < limits.vocabulary]
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
