"""What onnxruntime-genai cannot do with a model, or with what is asked: one sentence each, with the way out. Pure."""

from collections.abc import Iterator

from farm.contract.cells import NO_POLICY, CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.cells import scenarios
from farm.rules.cells.models import ModelFacts
from farm.rules.runtimes import genai, plugins


def refusal(spec: CellSpec, model: ModelFacts) -> Reason | None:
    """The first reason why the cell cannot be generated; None where it can, or runs on something else."""
    if not genai.is_genai(spec.runtime):
        return None
    named = plugins.written(spec.runtime)
    missing = next(_of_model(named, spec, model), None)
    if missing is not None:
        return Reason(code=ReasonCode.MODEL_NOT_LOADED, text=missing)
    unfit = next(_of_cell(named, spec), None)
    return None if unfit is None else Reason(code=ReasonCode.NOT_SUPPORTED, text=unfit)


def _of_model(named: str, spec: CellSpec, model: ModelFacts) -> Iterator[str]:
    told, asked = model.genai, scenarios.of(spec).context
    if told is None:
        yield (
            f"{named} runs a folder with {genai.CONFIG}: give the folder or a zip of its files in place of "
            f"{model.name} alone, or leave this runtime out."
        )
    elif told.problem:
        yield told.problem
    elif asked > told.context:
        yield (
            f"The context of {model.name} is {told.context:,} tokens in {genai.CONFIG}: prompt and new tokens are "
            f"{asked:,}, ask for fewer."
        )


def _of_cell(named: str, spec: CellSpec) -> Iterator[str]:
    scenario = scenarios.of(spec)
    if not scenario.takes_prompts:
        yield (
            f"{named} generates and does nothing else: write `scenario: generate`, not {scenario.name}, or leave it "
            "out."
        )
    session, recipe = spec.session, spec.recipe
    asked = {
        f"precision {recipe.precision}": recipe.precision != "fp32",
        f"opset {recipe.opset}": recipe.opset != "as-is",
        "execution_mode: parallel": session.execution_mode == "parallel",
        f"optimization: {session.optimization}": session.optimization != "all",
        "spinning: false": not session.spinning,
        "memory_pattern: false": not session.memory_pattern,
        "arena: false": not session.arena,
        "disabled_optimizers": bool(session.disabled_optimizers),
        "config": bool(session.config),
        f"policy: {session.policy}": session.policy != NO_POLICY,
    }
    if unfit := [name for name, is_asked in asked.items() if is_asked]:
        yield f"{named} runs the folder as it was exported, without {', '.join(unfit)}: leave that out."
