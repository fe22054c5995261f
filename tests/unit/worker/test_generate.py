"""`generate` on the runtime at hand: the same tokens as a plain loop, bound once; pairs as the rules read them."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from farm.contract.reports import ForcedScores
from farm.rules.generation import decoders, forced
from farm.workshop.samples import builders
from tests.unit.rules.test_decoders import IDS, LOGITS, MASK, PASTS, PRESENTS, Port, cache
from tests.unit.workshop.test_samples import generated
from worker.runner import generation_trace
from worker.runner.faults import Refusal
from worker.runner.order import Order, PhaseTimer
from worker.runner.sample import run_scenario
from worker.runner.scenarios import decoder_ports, free_memory, prompts, table
from worker.runner.scenarios.generated import SeparateRows, TimedGenerations
from worker.runner.scenarios.protocol import LaunchContext

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


def order_of(path: Path, *, given: Path | None = None, **scenario: Any) -> Order:
    told = {"kind": "generate", "seed": 3, **scenario, **({"given": "ab" * 32} if given else {})}
    return Order(
        kind="sample",
        model=str(path),
        inputs="",
        provider="CPUExecutionProvider",
        prompts=str(given) if given else None,
        scenario=told,
        gate_cpu_share=0.0,
    )


def answered(path: Path, *, given: Path | None = None, **scenario: Any) -> dict[str, Any]:
    order = order_of(path, given=given, **scenario)
    timer = PhaseTimer(launched_ns=None, entered_ns=0)
    try:
        answer = run_scenario(
            table.find_scenario("generate")(LaunchContext(order, timer)), order, timer=timer, turns=None
        )
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
    read, found = decoders.find_decoder(inputs, outputs), decoder_ports.describe_decoder(Session(inputs, outputs))
    assert {(past.name, present) for past, present in found.caches} == set(read.caches)
    assert found.scores.name == read.scores
    assert {role: port.name for role, port in found.roles.items()} == {
        role: name for role in ("tokens", "mask", "positions", "last_places", "total") if (name := getattr(read, role))
    }


@pytest.mark.parametrize(("name", "is_token_input"), [("input_ids", True), ("position_ids", False), ("mask", False)])
def test_positions_are_no_token_ids(name: str, is_token_input: bool) -> None:
    assert decoder_ports.is_token_input(name) is is_token_input


def test_lengths_of_group_query_attention_follow_the_step(tmp_path: Path) -> None:
    path = builders.write_model("decoder", tmp_path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    lengths = {role: decoder_ports.Port(role, np.int32, [1]) for role in ("last_places", "total")}
    assert [decoder_ports.compute_shape_at_step(role, port, past=16, now=1) for role, port in lengths.items()] == [
        ([1], 16),
        ([1], 17),
    ]
    assert decoder_ports.describe_decoder(session).vocabulary == 1000


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
        assert decoder_ports.describe_decoder(Session(inputs, outputs)).vocabulary


def test_drawn_tokens_are_the_same_in_every_generation_and_move_with_the_seed(tmp_path: Path) -> None:
    path = builders.write_model("decoder", tmp_path)
    drawn = {"sampling": "top-p", "limit": 0.95, "temperature": 5.0}
    first, again, greedy = (answered(path, prompt=8, new=16, **one) for one in (drawn, drawn, {}))
    assert first["metrics"]["differing_answers"] == 0
    assert first["tokens"] == again["tokens"] != greedy["tokens"]


def test_rows_of_a_batch_choose_what_they_choose_alone(tmp_path: Path) -> None:
    path = builders.write_model("decoder-gqa", tmp_path)
    told = answered(path, prompt=8, new=12, batch=3)
    prompt = np.random.default_rng(3).integers(0, 1000, (3, 8))
    assert told["metrics"]["differing_rows"] == 0
    assert told["tokens"] == generated(path, prompt[:1], new=12)[0]
    assert told["metrics"]["cache_bytes"] == 3 * 2 * 2 * 2 * 64 * 4 * (8 + 12 - 1)
    assert (
        "differing_rows"
        not in answered(path, prompt=8, new=12, batch=3, sampling="top-k", limit=2, temperature=1)["metrics"]
    )


def test_a_row_that_a_batch_answers_otherwise_is_counted(tmp_path: Path) -> None:
    path = builders.write_model("decoder", tmp_path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    decoder = decoder_ports.describe_decoder(session)
    given = prompts.load_prompts(order_of(path, batch=2, prompt=8), vocabulary=1000)
    alone = [generated(path, given[row : row + 1], new=4)[0] for row in (0, 1)]
    tokens = np.array(alone).T.copy()
    assert SeparateRows(session, decoder, given).count_differing(tokens, {}) == 0
    tokens[3, 1] += 1
    assert SeparateRows(session, decoder, given).count_differing(tokens, {}) == 1


def test_a_given_text_is_scored_alike_by_both_spellings_and_gaps_are_those_of_the_scores(tmp_path: Path) -> None:
    one, other = (
        answered(builders.write_model(name, tmp_path), prompt=8, new=16) for name in ("decoder", "decoder-gqa")
    )
    scored = [ForcedScores.model_validate(told["forced"]) for told in (one, other)]
    assert scored[0].places == (0, 2, 4, 6, 8, 10, 12, 15)
    assert scored[0].scores != scored[1].scores or one["gaps"] == other["gaps"]
    assert forced.compare_scores(*scored, tolerance=1e-4).is_within_tolerance
    assert len(one["gaps"]) == 16
    assert min(one["gaps"]) > 0


def test_growth_is_that_of_the_quartiles_over_their_distance() -> None:
    taken = TimedGenerations(17, {})
    # 1 µs more at each position
    taken._graph_ns.extend([9000, *(1000 * place for place in range(16))])
    assert taken.compute_growth_ms() == pytest.approx(1.0)
    short = TimedGenerations(4, {})
    short._graph_ns.extend([1, 2, 3, 4])
    assert short.compute_growth_ms() is None


def test_prompt_and_token_are_traced_apart(tmp_path: Path) -> None:
    path = builders.write_model("decoder-gqa", tmp_path)
    told = {"kind": "generate", "prompt": 64, "new": 32, "seed": 3}
    order = Order(
        kind="trace",
        model=str(path),
        inputs="",
        provider="CPUExecutionProvider",
        scenario=told,
        trace_runs=6,
        trace_s=0.0,
        work_dir=str(tmp_path),
    )
    answer = generation_trace.run_trace(order, timer=PhaseTimer(launched_ns=None, entered_ns=0))
    prompt = answer["prompt"]
    assert isinstance(prompt, dict)
    assert (answer["runs"], prompt["runs"], prompt["tokens"]) == (40, 5, 64)
    names = [{row["op_type"] for row in some} for some in (answer["executed"], prompt["executed"])]
    assert "GroupQueryAttention" in names[0] & names[1]
    assert prompt["run_us"] > answer["run_us"]


def test_lengths_over_the_memory_are_refused_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = builders.write_model("decoder", tmp_path)
    monkeypatch.setattr(free_memory, "read_free_bytes", lambda: 1_000_000)
    words = "a prompt of 400 tokens and 8 more take 3 MB for scores and caches, and 1 MB are free: ask for fewer"
    with pytest.raises(Refusal, match=words) as refused:
        answered(path, prompt=400, new=8)
    assert refused.value.code == "out_of_memory"
    with pytest.raises(Refusal, match="4 prompts of 400 tokens and 8 more take 13 MB"):
        answered(path, prompt=400, new=8, batch=4)


def test_what_scores_and_caches_take_is_counted_as_they_are_bound(tmp_path: Path) -> None:
    path = builders.write_model("decoder", tmp_path)
    decoder = decoder_ports.describe_decoder(onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]))
    caches = 2 * 2 * 2 * 64 * 4
    assert free_memory.estimate_generation_bytes(decoder, prompt=16, new=4, batch=2) == 2 * (
        17 * 1000 * 4 + 2 * 20 * caches
    )
    assert 0 < (free_memory.read_free_bytes() or 0) < 1 << 50


def test_the_first_sequence_of_a_batch_is_given_what_it_is_given_alone() -> None:
    told = {"seed": 3, "new": 5, "prompt": 4}
    alone, batch = (prompts.draw_forced_tokens({**told, "batch": batch}, vocabulary=1000) for batch in (1, 4))
    assert (alone.shape, batch.shape) == ((5, 1), (5, 4))
    assert (alone[:, 0] == batch[:, 0]).all()
    assert len({tuple(row) for row in batch.T.tolist()}) == 4


def test_given_prompts_are_answered_as_they_are_and_a_text_is_handed_on(tmp_path: Path) -> None:
    path = builders.write_model("decoder", tmp_path)
    rows = np.arange(1, 13, dtype=np.int64).reshape(2, 6) * 7
    np.savez(tmp_path / "prompts.npz", prompt=rows, text=rows.reshape(-1))
    told = answered(path, given=tmp_path / "prompts.npz", prompt=6, new=8, batch=2)
    assert told["tokens"] == generated(path, rows[:1], new=8)[0]
    assert told["metrics"]["perplexity"] > 1.0
    assert "perplexity" not in answered(path, prompt=6, new=8)["metrics"]
    order = order_of(path, given=tmp_path / "prompts.npz", prompt=6, batch=2)
    assert prompts.load_text_to_score(order, vocabulary=1000).tolist() == rows.reshape(-1).tolist()
    assert prompts.load_text_to_score(order_of(path, prompt=6), vocabulary=1000) is None


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"prompt": np.array([[1, 2, 1000]])}, "the given prompt holds other than ids below 1,000"),
        ({"prompt": np.array([[1, -2, 3]])}, "the given prompt holds other than ids below 1,000"),
        ({"prompt": np.array([[1.0, 2.0, 3.0]])}, "the given prompt holds other than ids below 1,000"),
        ({"prompt": np.array([[1, 2]])}, "the given prompts have the shape (1, 2), not 1 rows of 3"),
        ({"text": np.array([1, 2])}, "the order names no prompts with prompt"),
    ],
)
def test_prompts_that_are_not_what_the_farm_accepted_end_the_cell(tmp_path: Path, held: dict[str, Any], words: str):
    path = builders.write_model("decoder", tmp_path)
    np.savez(tmp_path / "prompts.npz", **held)
    with pytest.raises(Refusal) as refused:
        prompts.load_prompts(order_of(path, given=tmp_path / "prompts.npz", prompt=3), vocabulary=1000)
    assert words in str(refused.value)
