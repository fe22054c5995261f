"""How likely a decoder finds a given text: as a plain run over the same windows says, whatever the prompt's length."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from farm.workshop.samples import builders
from worker.runner.scenarios import perplexity
from worker.runner.scenarios.decoder_ports import Steps, describe_decoder

TEXT = np.random.default_rng(5).integers(0, 1000, 40)


@pytest.fixture(scope="module", params=["decoder", "decoder-gqa"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp(request.param)
    builders.write_model(request.param, folder)
    return onnxruntime.InferenceSession(str(folder / f"{request.param}.onnx"), providers=["CPUExecutionProvider"])


def steps_of(session: Any, prompt: np.ndarray) -> Steps:
    return Steps(session, describe_decoder(session), prompt=prompt, new=3)


def expected(session: Any, length: int) -> float:
    """By a binding for each window alone, in float64 over all scores."""
    unlikely = []
    for start in range(0, len(TEXT) - 1, length - 1):
        part = TEXT[start : start + length]
        alone = steps_of(session, part[None])
        alone.calls()[0]()
        scores = alone.prompt_scores[0].astype(np.float64)
        for place, token in enumerate(part[1:]):
            chances = np.exp(scores[place]) / np.exp(scores[place]).sum()
            unlikely.append(-math.log(chances[token]))
    assert len(unlikely) == len(TEXT) - 1
    return math.exp(sum(unlikely) / len(unlikely))


@pytest.mark.parametrize(("rows", "length"), [(1, 16), (3, 8), (2, 40), (1, 64), (2, 2)])
def test_every_token_but_the_first_is_scored_once_behind_those_before_it(session: Any, rows: int, length: int) -> None:
    prompt = np.arange(rows * length).reshape(rows, length)
    steps = steps_of(session, prompt)
    calls = steps.calls()
    calls[0]()
    before = steps.prompt_scores.copy()
    found = perplexity.compute_perplexity(calls[0], steps, TEXT)
    assert found == pytest.approx(expected(session, length), rel=1e-4)
    assert found == perplexity.compute_perplexity(calls[0], steps, TEXT)
    assert (steps.prompt == prompt).all()
    calls[0]()
    assert (steps.prompt_scores == before).all()


def test_a_prompt_of_one_token_scores_nothing(session: Any) -> None:
    steps = steps_of(session, np.array([[1]]))
    assert perplexity.compute_perplexity(steps.calls()[0], steps, TEXT) is None


def test_no_more_than_the_first_tokens_of_a_long_text_are_scored(session: Any) -> None:
    steps = steps_of(session, np.zeros((4, 256), np.int64))
    call = steps.calls()[0]
    text = np.resize(TEXT, perplexity.MAX_TOKENS + 7)
    assert perplexity.compute_perplexity(call, steps, text) == perplexity.compute_perplexity(
        call, steps, text[: perplexity.MAX_TOKENS]
    )


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_have_no_perplexity(session: Any, score: float) -> None:
    steps = steps_of(session, np.zeros((1, 16), np.int64))
    assert perplexity.compute_perplexity(lambda: steps.prompt_scores.fill(score), steps, TEXT) is None


def test_equal_scores_are_as_perplexed_as_there_are_tokens_and_the_impossible_has_no_figure(session: Any) -> None:
    steps = steps_of(session, np.zeros((1, 16), np.int64))
    assert perplexity.compute_perplexity(lambda: steps.prompt_scores.fill(2.0), steps, TEXT) == pytest.approx(1000.0)

    def certain() -> None:
        steps.prompt_scores.fill(0.0)
        steps.prompt_scores[..., 0] = 1e6

    assert perplexity.compute_perplexity(certain, steps, np.array([1, 2, 3])) is None
