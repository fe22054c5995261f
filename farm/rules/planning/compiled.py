"""Refuses cells that cannot run the code that a provider compiled into their model."""

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.planning.refusals import RuleContext
from farm.rules.runtimes import providers
from farm.rules.runtimes.models import CompiledFacts


def refuse_compiled(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a model with compiled code that the cell's provider cannot run, and converting such a model."""
    model = context.model
    facts = model.compiled
    if facts is None or spec.recipe.is_program:
        return None
    text = facts.problem or _explain_foreign_code(spec, facts, name=model.main)
    if not text and not spec.recipe.is_identity:
        text = f"{model.main} is compiled already and is measured as it is: leave `precision` and `opset` out."
    return Reason(code=ReasonCode.MODEL_NOT_LOADED, text=text) if text else None


def describe_compiled(facts: CompiledFacts) -> str:
    """Name the compiler, its SDK and the hardware of compiled code: `QNN, SDK 2.38.0, for v73`."""
    sdk = f"SDK {facts.sdk}" if facts.sdk else ""
    hardware = f"for {facts.hardware}" if facts.hardware else ""
    return ", ".join(part for part in (" and ".join(facts.by), sdk, hardware) if part)


def _explain_foreign_code(spec: CellSpec, facts: CompiledFacts, *, name: str) -> str:
    if all(providers.provider_of(provider).name == spec.provider for provider in facts.by):
        return ""
    shorts = " and ".join(providers.provider_of(provider).short for provider in facts.by)
    return (
        f"{name} holds code that was compiled for {describe_compiled(facts)}, which {spec.provider} cannot run: set "
        f"`provider: {shorts}`, or upload the model that it was compiled from."
    )
