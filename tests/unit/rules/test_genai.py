"""onnxruntime-genai as a runtime: how its two releases are written, and why a cell cannot be generated."""

from typing import Any

import pytest

from farm.contract.cells import Runtime
from farm.contract.reasons import ReasonCode
from farm.rules.cells.generate import GENERATIONS
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import Plan
from farm.rules.runtimes import distributions, genai, plugins, providers, releases
from farm.rules.runtimes.distributions import WATCHED
from farm.rules.runtimes.models import GenaiFacts
from tests.unit.rules.making import make_model, only_refusal

BESIDE = "onnxruntime-genai==0.13.2+onnxruntime==1.29.0"
TOLD = GenaiFacts(type="llama", vocabulary=1000, context=512)


def planned(told: GenaiFacts | None = TOLD, **axes: Any) -> Plan:
    model = make_model().model_copy(update={"name": "net", "genai": told, "generation_problem": ""})
    axes = {"runtime": [BESIDE], "scenario": ["generate:prompt=64:new=64"], **axes}
    return planner.plan(matrix.parse({"matrix": axes}), model)


def test_both_of_its_releases_are_written_and_a_pinned_one_stands_beside_it_where_none_is():
    runtime = distributions.parse_runtime(BESIDE)
    assert runtime == Runtime(distribution="onnxruntime-genai", version="0.13.2+onnxruntime.1.29.0")
    assert plugins.format_runtime(runtime) == BESIDE
    assert [str(one) for one in plugins.packages_of(runtime)] == ["onnxruntime-genai==0.13.2", "onnxruntime==1.29.0"]
    assert str(plugins.core_of(distributions.parse_runtime("onnxruntime-genai==0.13.2"))) == "onnxruntime==1.31.1"
    assert distributions.refusal(runtime) is None
    assert releases.unknown_sentence(runtime) is None
    assert genai.is_genai(runtime)
    assert not genai.is_genai(plugins.core_of(runtime))
    assert providers.is_carried_by(providers.CPU, runtime.distribution)
    assert genai.DISTRIBUTION in WATCHED
    hint = genai.GENAI.install_hint(plugins.core_of(runtime))
    assert hint == "; it may not load beside onnxruntime==1.29.0, so name another one"


def test_which_of_the_two_moved_is_said():
    newer_genai, newer_core = "0.13.2+onnxruntime.1.29.0", "0.13.1+onnxruntime.1.31.1"
    assert plugins.describe_older_version("0.13.1+onnxruntime.1.29.0", newer_genai) == "0.13.1"
    assert plugins.describe_older_version("0.13.1+onnxruntime.1.29.0", newer_core) == "on ONNX Runtime 1.29.0"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0.8.3", "onnxruntime-genai==0.8.3 takes no settings over its genai_config.json: take onnxruntime-genai==0.9"),
        ("0.13.9", "onnxruntime-genai==0.13.9 does not exist: this farm knows 0.9.0, "),
        ("0.13.2+onnxruntime==1.29.9", "onnxruntime==1.29.9 does not exist: the nearest known release is 1.29.0."),
    ],
)
def test_a_release_that_cannot_be_had_is_refused_in_one_sentence(text: str, sentence: str):
    found = releases.unknown_sentence(distributions.parse_runtime(f"onnxruntime-genai=={text}")) or ""
    assert found.startswith(sentence)


def test_a_release_that_the_index_added_is_taken():
    runtime = Runtime(distribution="onnxruntime-genai", version="0.19.0")
    assert releases.unknown_sentence(runtime, extra=[runtime]) is None


def test_a_folder_is_generated_beside_plain_onnx_runtime():
    plan = planned(runtime=[BESIDE, "1.29.0"])
    assert not plan.refused
    assert [str(arm.spec.runtime) for arm in plan.blocks[0].arms] == [
        "onnxruntime-genai==0.13.2+onnxruntime.1.29.0",
        "onnxruntime==1.29.0",
    ]


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (None, f"{BESIDE} runs a folder with genai_config.json: give the folder or a zip of its files in place of net"),
        (GenaiFacts(problem="It names a file that is missing."), "It names a file that is missing."),
        (
            GenaiFacts(vocabulary=1000, context=100),
            "The context of net is 100 tokens in genai_config.json: prompt and new tokens are 128, ask for fewer.",
        ),
    ],
)
def test_a_model_that_it_cannot_load_is_refused_in_one_sentence(told: GenaiFacts | None, sentence: str):
    found = only_refusal(planned(told))
    assert found.code == ReasonCode.MODEL_NOT_LOADED
    assert found.text.startswith(sentence)


@pytest.mark.parametrize(
    ("axes", "sentence"),
    [
        ({"scenario": ["single"]}, "generates and does nothing else: write `scenario: generate`, not single, or leave"),
        (
            {"optimization": ["basic"]},
            "runs the folder as it was exported, without optimization: basic: leave that out",
        ),
        (
            {"precision": ["fp16"], "optimization": ["basic"]},
            "runs the folder as it was exported, without precision fp16, optimization: basic: leave that out.",
        ),
    ],
)
def test_what_it_cannot_be_told_is_refused_in_one_sentence(axes: dict[str, Any], sentence: str):
    found = only_refusal(planned(**axes))
    assert found.code == ReasonCode.NOT_SUPPORTED
    assert found.text.startswith(f"{BESIDE} {sentence}")


def test_what_a_folder_says_of_itself_in_a_line():
    assert TOLD.words == "llama, vocabulary 1,000, context 512, no tokenizer"
    assert TOLD.model_copy(update={"has_tokenizer": True}).words.endswith("context 512, with a tokenizer")


def test_the_plan_counts_its_import_and_the_tokens_that_it_draws():
    plain, greedy, drawn = (
        planned(runtime=[runtime], scenario=[f"generate:prompt=64:new=64{sampling}"]).blocks[0].round_s or 0.0
        for runtime, sampling in (("1.29.0", ""), (BESIDE, ""), (BESIDE, ":sampling=top-p=0.9"))
    )
    assert greedy == pytest.approx(plain + genai.LAUNCH_S)
    assert drawn == pytest.approx(greedy + GENERATIONS * 64 * genai.DRAWN_TOKEN_S)
