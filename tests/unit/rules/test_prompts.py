"""Prompts that came with a model: cells say them by digest, and what does not fit is refused in a sentence."""

import pytest

from farm.contract.reasons import ReasonCode
from farm.rules.cells import scenarios
from farm.rules.cells.commands import repeat_command
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import Plan
from farm.rules.runtimes.models import ContextFacts, ModelFacts, PromptFacts
from tests.unit.rules.making import make_model

GIVEN = "ab" * 32
OTHER = "cd" * 32


def planned(scenario: object, model: ModelFacts | None = None, **axes: object) -> Plan:
    declared = {"runtime": ["1.31.1"], "scenario": [scenario], **axes}
    return planner.plan(matrix.parse({"matrix": declared}), model or with_prompts())


def with_prompts(rows: int = 1, tokens: int = 37) -> ModelFacts:
    facts = PromptFacts(sha256=GIVEN, rows=rows, tokens=tokens)
    return make_model(batch="batch").model_copy(update={"prompts": facts})


def text_of(plan: Plan) -> tuple[str, int | None]:
    (block,) = plan.blocks
    (arm,) = block.arms
    # a batch that the scenario says is the workload's own in the cell
    assert arm.labels["scenario"].replace(f":batch={arm.spec.workload.batch}", "") == arm.spec.workload.scenario
    return arm.spec.workload.scenario, arm.spec.workload.batch


def reason_of(plan: Plan) -> str:
    (refused,) = plan.refused
    assert refused.reason.code == ReasonCode.NOT_SUPPORTED
    return refused.reason.text


def test_a_cell_says_the_prompts_that_it_is_given_where_no_length_was_asked_for() -> None:
    given = (f"generate:prompt=37:new=8:given={GIVEN}", 1)
    assert text_of(planned("generate:new=8")) == given
    assert text_of(planned({"generate": {"new": 8}})) == given
    assert text_of(planned(given[0])) == given
    assert text_of(planned(f"generate:new=8:given={GIVEN}")) == given


def test_cells_of_drawn_prompts_are_the_cells_that_they_were() -> None:
    assert text_of(planned("generate:prompt=16:new=8")) == ("generate:prompt=16:new=8", 1)
    assert text_of(planned("generate", make_model(batch="batch"))) == ("generate:prompt=128:new=64", 1)
    drawn = planned("generate:new=8", make_model(batch="batch")).blocks[0].arms[0].spec
    given = planned("generate:new=8").blocks[0].arms[0].spec
    assert drawn.digest != given.digest
    other = with_prompts().model_copy(update={"prompts": PromptFacts(sha256=OTHER, rows=1, tokens=37)})
    assert planned("generate:new=8", other).blocks[0].arms[0].spec.digest != given.digest


def test_rows_are_generated_at_once_unless_another_batch_is_asked_for() -> None:
    text = f"generate:prompt=37:new=64:given={GIVEN}"
    assert text_of(planned("generate", with_prompts(rows=3))) == (text, 3)
    assert text_of(planned("generate:batch=3", with_prompts(rows=3))) == (text, 3)
    assert text_of(planned("generate", with_prompts(rows=3), batch=[3])) == (text, 3)
    said = "prompts.npz has 3 rows and the batch is 2: give as many rows, or leave the batch out."
    assert reason_of(planned("generate:batch=2", with_prompts(rows=3))) == said
    assert reason_of(planned("generate", with_prompts(rows=3), batch=[2])) == said
    assert reason_of(planned("generate:batch=2")).startswith("prompts.npz has 1 row and the batch is 2")


def test_prompts_of_another_digest_or_length_are_refused_in_a_sentence() -> None:
    lost = (
        f"The scenario names the prompts {OTHER[:12]}…, which encoder did not come with: give the prompts.npz of that"
    )
    assert reason_of(planned(f"generate:prompt=8:given={OTHER}")).startswith(lost)
    assert reason_of(planned(f"generate:given={OTHER}", make_model(batch="batch"))).startswith(lost)
    assert reason_of(planned(f"generate:prompt=8:given={GIVEN}")) == (
        "prompt of generate is 8 and each row of prompts.npz has 37 tokens: leave `prompt` out."
    )
    with pytest.raises(MatrixProblem, match="given of generate is 'mine': write the SHA-256 digest"):
        scenarios.normalise_text("generate:given=mine")


def test_a_cell_says_what_it_was_given_in_its_label_its_command_and_its_inputs() -> None:
    spec = planned("generate:new=8").blocks[0].arms[0].spec
    assert scenarios.describe(spec.workload.scenario) == "given prompt of 37, 8 new"
    assert "--prompts prompts.npz" in repeat_command(spec, "model.onnx")
    assert scenarios.runner_settings(spec)["given"] == GIVEN
    (told,) = scenarios.of_cell(spec).describe_inputs(spec.workload)
    assert (told.shape, told.made_by) == ([1, 37], "token ids that were given (prompts.npz)")
    drawn = planned("generate:prompt=16:new=8").blocks[0].arms[0].spec
    assert "--prompts" not in repeat_command(drawn, "model.onnx")
    assert "given" not in scenarios.runner_settings(drawn)


def test_a_prompt_and_new_tokens_beyond_the_context_are_refused_where_it_is_known() -> None:
    where = "the 512 rows of wpe, which Gather reads by position"
    model = make_model(batch="batch").model_copy(update={"context": ContextFacts(tokens=512, where=where)})
    assert reason_of(planned("generate:prompt=510:new=8", model)) == (
        "A prompt of 510 and 8 new tokens are 517 that encoder reads, and its context is 512: the 512 rows of wpe, "
        "which Gather reads by position; ask for fewer."
    )
    assert ContextFacts(tokens=512, where=where).words == f"context 512 ({where})"
    assert not planned("generate:prompt=505:new=8", model).refused
    assert not planned("generate:prompt=510:new=8", make_model(batch="batch")).refused
    given = with_prompts(tokens=600).model_copy(update={"context": model.context})
    assert reason_of(planned("generate:new=8", given)).startswith("A prompt of 600 and 8 new tokens are 607")
