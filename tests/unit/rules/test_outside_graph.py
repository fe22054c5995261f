"""A sampler that moved is said: it is no operator of the model, and no trace of the graph names it."""

import pytest

from farm.contract.document_comparisons import MetricChange
from farm.rules.presenting import sentences
from farm.rules.presenting.explanations import explain_change, explain_token_choice
from tests.unit.rules.test_sentences import compared, document


def metric(name: str, baseline: float, candidate: float, verdict: str = "slower") -> MetricChange:
    told = {"name": name, "unit": "ms", "baseline": baseline, "candidate": candidate, "verdict": verdict}
    return MetricChange.model_validate({**told, "ratio": candidate / baseline, "margin": 0.02, "rounds": 8})


WHOLE = metric("p50_ms", 2.0, 14.0)
OUTSIDE, BY_PROCESSOR = metric("outside_ms", 0.4, 12.1), metric("outside_cpu_ms", 0.4, 11.8)


def test_the_run_says_that_choosing_a_token_moved():
    one = compared(metrics=[WHOLE, OUTSIDE, BY_PROCESSOR])
    assert explain_token_choice(one) == (
        "outside the graph: choosing a token, 0.400 ms → 11.8 ms, explains 95 % of the 12.0 ms"
    )
    assert explain_change(one) == explain_token_choice(one)
    assert "It comes from outside the graph: choosing a token, 0.400 ms → 11.8 ms, explains 95 %" in (
        sentences.verdict_line(document([one]))
    )


def test_a_share_above_one_is_all_of_it_and_a_clock_that_alone_moved_says_it_too():
    one = compared(metrics=[WHOLE, metric("outside_ms", 0.4, 13.0), metric("outside_cpu_ms", 0.4, 0.5, "undecided")])
    assert (explain_token_choice(one) or "").endswith("0.400 ms → 13.0 ms, explains all of the 12.0 ms")


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": []},
        {"metrics": [WHOLE]},
        {"metrics": [WHOLE, OUTSIDE]},
        {"metrics": [WHOLE, metric("outside_cpu_ms", 0.4, 12.1, "undecided")]},
        {"metrics": [WHOLE, metric("outside_cpu_ms", 0.4, 0.6)]},
        {"metrics": [WHOLE, metric("outside_cpu_ms", 0.4, 40.0)]},
        {"metrics": [metric("p50_ms", 2.0, 2.0), BY_PROCESSOR]},
        {"metrics": [WHOLE, OUTSIDE, BY_PROCESSOR], "verdict": "equal"},
    ],
    ids=["nothing", "no part", "no part of it", "undecided", "too little", "too much", "no change", "equal"],
)
def test_what_does_not_explain_the_change_is_not_said(changes):
    assert explain_token_choice(compared(**changes)) is None


def test_an_equal_comparison_names_nothing():
    one = compared(metrics=[WHOLE, OUTSIDE, BY_PROCESSOR], verdict="equal", ratio=1.0, ci_low=0.99, ci_high=1.01)
    assert "outside the graph" not in sentences.verdict_line(document([one]))
