"""`generate` on the runtime at hand: the same tokens as a plain loop, bound once; pairs as the rules read them."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from farm.rules.generation import decoders
from farm.workshop.samples import builders
from tests.unit.rules.test_decoders import IDS, LOGITS, MASK, PASTS, PRESENTS, Port, cache
from tests.unit.workshop.test_samples import generated
from worker.runner.faults import Refusal
from worker.runner.order import Order, PhaseTimer
from worker.runner.sample import driven
from worker.runner.scenarios import decoder_ports, table
from worker.runner.scenarios.protocol import Room

POSITIONS = Port("position_ids", "int64", ("batch", "sequence"))
LENGTHS = [Port("seqlens_k", "int32", ("batch",)), Port("total_sequence_length", "int32", (1,))]
_TYPES = {"int64": "tensor(int64)", "int32": "tensor(int32)", "float32": "tensor(float)"}


class Node:
    def __init__(self, port: Port) -> None:
        self.name, self.type, self.shape = port.name, _TYPES[port.dtype], list(port.shape or ())


class Session:
    """Inputs and outputs as ONNX Runtime tells them."""

    def __init__(self, inputs: list[Port], outputs: list[Port]) -> None:
        self._inputs, self._outputs = [Node(port) for port in inputs], [Node(port) for port in outputs]

    def get_inputs(self) -> list[Node]:
        return self._inputs

    def get_outputs(self) -> list[Node]:
        return self._outputs


def answered(path: Path, **scenario: Any) -> dict[str, Any]:
    told = {"kind": "generate", "seed": 3, **scenario}
    order = Order(
        kind="sample", model=str(path), inputs="", provider="CPUExecutionProvider", scenario=told, gate_cpu_share=0.0
    )
    timer = PhaseTimer(launched_ns=None, entered_ns=0)
    try:
        answer = driven(table.named("generate")(Room(order, timer)), order, timer=timer, turns=None)
    finally:
        # a launch ends with its process
        gc.unfreeze()
        gc.enable()
    sample = answer["sample"]
    assert isinstance(sample, dict)
    return sample


@pytest.mark.parametrize("name", ["decoder", "decoder-gqa"])
def test_tokens_are_those_of_a_plain_loop(name: str, tmp_path: Path) -> None:
    path = builders.write_model(name, tmp_path)
    told = answered(path, prompt=16, new=24)
    prompt = np.random.default_rng(3).integers(0, 1000, (1, 16))
    assert told["tokens"] == generated(path, prompt, new=24)[0]
    metrics = told["metrics"]
    assert metrics["differing_answers"] == 0
    assert metrics["tpot_ms"] == told["p50_ms"]
    assert metrics["cache_bytes"] == 2 * 2 * 2 * 64 * 4 * (16 + 24 - 1)
    assert metrics["ttft_ms"] > told["phases"][0]["metrics"]["prefill_ms"] > 0
    assert 0 < metrics["outside_ms"] < metrics["ttft_ms"]
    assert told["n"] % 23 == 0
    assert [one["name"] for one in told["phases"]][1::7] == ["tokens 2 to 4", "tokens 23 to 24"]


def test_a_context_that_is_too_short_is_said_with_the_token(tmp_path: Path) -> None:
    path = builders.write_model("decoder", tmp_path)
    with pytest.raises(Refusal, match="the model refused token 4 of 8, behind 512 others"):
        answered(path, prompt=510, new=8)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([IDS, MASK, POSITIONS, *PASTS], [LOGITS, *PRESENTS]),
        ([IDS, *LENGTHS, *PASTS], [*PRESENTS, LOGITS]),
        ([IDS, cache("past_key_0"), cache("past_value_0")], [LOGITS, cache("present_key_0"), cache("present_value_0")]),
    ],
)
def test_the_runner_pairs_inputs_and_outputs_as_the_rules_do(inputs: list[Port], outputs: list[Port]) -> None:
    read, found = decoders.decoder_of(inputs, outputs), decoder_ports.decoder_of(Session(inputs, outputs))
    assert read is not None
    assert {(past.name, present) for past, present in found.caches} == set(read.caches)
    assert found.scores.name == read.scores
    assert {role: port.name for role, port in found.roles.items()} == {
        role: name for role in ("tokens", "mask", "positions", "last_places", "total") if (name := getattr(read, role))
    }


def test_lengths_of_group_query_attention_follow_the_step(tmp_path: Path) -> None:
    path = builders.write_model("decoder", tmp_path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    lengths = {role: decoder_ports.Port(role, np.int32, [1]) for role in ("last_places", "total")}
    assert [decoder_ports.place_of(role, port, past=16, now=1) for role, port in lengths.items()] == [
        ([1], 16),
        ([1], 17),
    ]
    assert decoder_ports.decoder_of(session).vocabulary == 1000


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        ([IDS, MASK], [LOGITS], "not a decoder with past"),
        ([IDS, *PASTS, Port("speed", "int64", ())], [LOGITS, *PRESENTS], "not a decoder with past"),
        ([IDS, *PASTS], [Port("logits", "float32", ("batch", "sequence", "words")), *PRESENTS], "how many tokens"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(inputs: list[Port], outputs: list[Port], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        assert decoder_ports.decoder_of(Session(inputs, outputs)).vocabulary


def test_drawn_tokens_are_the_same_in_every_generation_and_move_with_the_seed(tmp_path: Path) -> None:
    path = builders.write_model("decoder", tmp_path)
    drawn = {"sampling": "top-p", "limit": 0.95, "temperature": 5.0}
    first, again, greedy = (answered(path, prompt=8, new=16, **one) for one in (drawn, drawn, {}))
    assert first["metrics"]["differing_answers"] == 0
    assert first["tokens"] == again["tokens"] != greedy["tokens"]
