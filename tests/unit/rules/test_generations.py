"""How long a generation takes: one length a page, by the clock that its time per token is told by."""

from typing import Any

import pytest

from farm.contract.document_cells import Cell
from farm.rules.presenting.generations import Generation, first_token_ms, has_generation_times, make_generation
from farm.rules.presenting.times import BY_CLOCK, Times
from tests.documents import make_cell

BY_PROCESSOR = Times(frozenset({"c1"}))


def generated(name: str = "c1", *, figures: dict[str, float] | None = None, **changes: Any) -> Cell:
    """16 tokens and 8 new ones on a busy machine: by the clock three times as long."""
    told = {"tpot_ms": 3.0, "ttft_ms": 31.5, "ttft_cpu_ms": 10.0, "outside_ms": 0.5, "tokens_per_s": 100.0}
    known = {"scenario": "generate:prompt=16:new=8", "p50_ms": 3.0, "cpu_p50_ms": 1.0, "cpu_samples_ms": [1.0] * 8}
    known |= {"metrics": {key: {"value": value} for key, value in (told if figures is None else figures).items()}}
    known["phases"] = [{"name": "prefill", "launches": 8, "metrics": {"prefill_ms": 31.0}}]
    return make_cell(name, **{**known, **changes})


def test_by_the_clock_it_is_the_prompt_the_tokens_behind_it_and_choosing_them() -> None:
    found = make_generation(generated(), BY_CLOCK)
    assert found == Generation(31.0, 21.0, 4.0, 8, is_processor=False)
    assert (found.total_ms, first_token_ms(generated(), BY_CLOCK)) == (56.0, 31.5)


def test_where_a_verdict_rests_on_processor_time_so_does_the_length() -> None:
    found = make_generation(generated(), BY_PROCESSOR)
    assert found == Generation(10.0, 7.0, 4.0, 8, is_processor=True)
    assert first_token_ms(generated(), BY_PROCESSOR) == 10.0
    # without it of the prompt all of it is by the clock
    bare = generated(figures={"tpot_ms": 3.0, "ttft_ms": 31.5, "outside_ms": 0.5})
    assert (make_generation(bare, BY_PROCESSOR).is_processor, first_token_ms(bare, BY_PROCESSOR)) == (False, 31.5)


def test_a_call_that_chooses_the_token_too_counts_that_once() -> None:
    figures = {"tpot_ms": 3.0, "ttft_ms": 31.5, "ttft_cpu_ms": 10.0, "outside_ms": 0.5, "outside_cpu_ms": 0.25}
    found = make_generation(generated(figures=figures), BY_PROCESSOR)
    assert (found.decoding_ms, found.choosing_ms) == (7 * 0.75, 2.0)


def test_tokens_a_second_are_worked_out_from_the_same_length() -> None:
    found = make_generation(generated(batch=4), BY_CLOCK)
    assert found.tokens_per_s * found.total_ms / 1000.0 == pytest.approx(32)


def test_cells_that_generate_nothing_have_no_length() -> None:
    assert has_generation_times(generated())
    assert not has_generation_times(generated(phases=[]))
    assert not has_generation_times(make_cell("c1"))
