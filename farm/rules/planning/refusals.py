"""Refuses cells whose runtime, provider, variant or session cannot work, before anything is measured.

Each rule returns the reason with a way out in one sentence, or None where it does not refuse the cell.
`first_refusals` says in which order they are applied.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from farm.contract.cells import BOUND, NO_POLICY, CellSpec, Runtime
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.cells import recipes, scenarios
from farm.rules.runtimes import conversions, distributions, engines, opsets, plugins, providers, releases, web
from farm.rules.runtimes.compatibility import Stamps
from farm.rules.runtimes.engine import unsupported
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.order import release_order

# This session config entry has no effect: the sandbox's filter cannot tell the caller's threads from others.
AFFINITIES = "session.intra_op_thread_affinities"
# the first release whose Python package has a method for policies, by PyPI's wheels of November 2026
POLICY_FROM = "1.23.0"
# 1.15 has no MatMulNBits; that of 1.16.3 takes no accuracy level and computes blocks of 256 wrongly
INT4_FROM = "1.17.0"


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What the rules look at in addition to the cell."""

    model: ModelFacts
    # the providers that some node of the fleet has proven
    proven_providers: Collection[str] = ()
    # releases beyond the farm's own table
    known_releases: Collection[Runtime] = ()
    # releases that the package index took back, with the reason
    yanked: Mapping[Runtime, str] = field(default_factory=dict)
    # why the package index could not be asked, in one sentence; empty where it was
    index_problem: str = ""
    # packages beyond the known distributions that may be installed
    allowed: Collection[str] = ()
    # logical cores of the one machine that measures; None where a fleet is asked, or where they are not known
    cores: int | None = None
    # the batch, sizes and input values that the matrix asks for
    asked_batch: int | None = None
    asked_sizes: Mapping[str, int] = field(default_factory=dict)
    asked_inputs: Mapping[str, str] = field(default_factory=dict)
    # names of outputs that have a tolerance, but that no model has
    unknown_outputs: Sequence[str] = ()
    # what releases beyond the table were seen to load
    observed: opsets.ObservedLoads = field(default_factory=dict)
    # whether the nodes of a farm measure, and not the machine that plans
    has_fleet: bool = True


def refuse_unlisted_package(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a package that is not allowed, even where a node says that it has it, or no build has the provider."""
    sentence = distributions.refusal(spec.runtime, allowed=context.allowed)
    return None if sentence is None else Reason(code=ReasonCode.UNKNOWN_RUNTIME, text=sentence)


def _is_unlisted(spec: CellSpec) -> bool:
    return not distributions.is_known(spec.runtime.distribution) and plugins.plugin_of(spec.runtime) is None


def refuse_unknown_runtime(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a release that neither the farm's table nor the package index has, or that was taken back.

    Packages of which only the installer knows the releases are never refused.
    """
    if _is_unlisted(spec):
        return None  # only the installer knows its releases
    sentence = releases.unknown_sentence(spec.runtime, extra=context.known_releases, yanked=context.yanked)
    if sentence is None:
        return None
    return Reason(code=ReasonCode.UNKNOWN_RUNTIME, text=f"{sentence} {context.index_problem}".strip())


def refuse_missing_provider(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a provider that is unknown, or that the runtime's package does not include.

    A provider that no package includes is accepted if a node has proven it.
    """
    entry = providers.provider_of(spec.provider)
    is_from_owner = not entry.distributions and entry.name in context.proven_providers
    if providers.find(spec.provider) is None and plugins.library_for(spec.runtime, spec.provider) is None:
        return Reason(code=ReasonCode.PROVIDER_NOT_IN_BUILD, text=providers.unknown_sentence(spec.provider))
    if providers.is_carried_by(entry, spec.runtime.distribution) or is_from_owner:
        return None
    if web.is_web(spec.runtime):
        text = (
            f"{entry.name} is not in {spec.runtime}, which runs in browsers: set `provider: wasm`, `webgpu` or "
            "`webnn`, or take another runtime."
        )
    elif not entry.packages:
        text = (
            f"{entry.name} is in no package of the index: it needs a node whose owner has a build or plug-in with it."
        )
    else:
        text = (
            f"{entry.name} is not in {spec.runtime}: it comes with {' or '.join(entry.packages)}. "
            "Add such a runtime, or leave this provider out."
        )
    return Reason(code=ReasonCode.PROVIDER_NOT_IN_BUILD, text=text)


def refuse_outside_browsers(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a runtime of browsers if this machine measures by itself, without a farm's nodes."""
    if context.has_fleet or not engines.engine_of(spec.runtime).is_browser:
        return None
    text = (
        f"{spec.runtime} runs in browsers and not on this machine: start a farm (`onnxfarm serve`), open "
        "“Add a node” there in the browser, and submit the model to that farm."
    )
    return Reason(code=ReasonCode.NO_NODE, text=text)


def refuse_by_engine(spec: CellSpec, context: RuleContext) -> Reason | None:
    engine, name = engines.engine_of(spec.runtime), plugins.format_runtime(spec.runtime)
    return next(engine.refusals(spec, context.model, scenarios.of_cell(spec), named=name), None)


def refuse_policy(spec: CellSpec, _: RuleContext) -> Reason | None:
    """Refuse a policy for the choice of a device that ONNX Runtime cannot follow in this cell."""
    policy = spec.session.policy
    if policy == NO_POLICY:
        return None
    if providers.provider_of(spec.provider) is not providers.CPU:
        text = f"The policy {policy} lets ONNX Runtime choose, and {spec.provider} is asked for: leave one of them out."
    elif plugins.plugin_of(spec.runtime) is not None:
        text = f"The policy {policy} chooses among what a build of ONNX Runtime itself has: leave {spec.runtime} out."
    elif release_order(spec.runtime.version) < release_order(POLICY_FROM):
        text = f"{spec.runtime} follows no policy: take {POLICY_FROM} or newer, or leave `policy` out."
    else:
        return None
    return unsupported(text)


def refuse_memory_limit(spec: CellSpec, _: RuleContext) -> Reason | None:
    """Refuse a memory limit for a provider of another device than the CPU, where it could not be enforced."""
    entry = providers.find(spec.provider)
    if not spec.session.memory_limit_mb or entry is None or entry.device == "cpu":
        return None
    return unsupported(
        f"A memory limit counts addresses, of which {entry.name} takes far more than it uses: leave memory-limit-mb "
        "out, or measure on the CPU."
    )


def refuse_call(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a way of calling the session that the runtime, the model or the scenario does not have."""
    model, scenario = context.model, scenarios.of_cell(spec)
    has_calls = engines.engine_of(spec.runtime).has_calls
    if spec.session.call == BOUND:
        if not (model.unbound and has_calls):
            return None
        return unsupported(f"Nothing is bound where {model.unbound}: set `call: run`, or leave it out.")
    if not has_calls or scenario.takes_prompts:
        callee = scenario.name if has_calls else spec.runtime
        return unsupported(f"{callee} is not called by InferenceSession.run: leave `call: run` out.")
    bfloat16_input = next((port.name for port in model.inputs if port.dtype == "bfloat16"), None)
    if bfloat16_input is None:
        return None
    return unsupported(
        f"numpy has no bfloat16, which the input {bfloat16_input!r} takes, for InferenceSession.run: leave `call: run` "
        "out."
    )


def refuse_webgpu(spec: CellSpec, _: RuleContext) -> Reason | None:
    """Refuse WebGPU and WebNN for a browser runtime that is too old for them, and with several threads."""
    if not web.is_web(spec.runtime) or spec.provider == web.PROVIDER.name:
        return None
    if not web.has_webgpu(spec.runtime.version):
        text = f"{spec.runtime} is measured as WebAssembly alone: WebGPU and WebNN need {web.WEBGPU_FROM} or newer."
    elif spec.session.threads > 1:
        text = f"{spec.runtime} has one thread beside WebGPU or WebNN: set `threads: 1`, or `provider: wasm`."
    else:
        return None
    return unsupported(text)


def refuse_variant(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse static quantisation of a model that cannot be calibrated, and converting one that is quantised already."""
    precision, model = spec.recipe.precision, context.model
    if precision in recipes.STATIC and model.calibration_problem:
        return Reason(code=ReasonCode.VARIANT_IMPOSSIBLE, text=model.calibration_problem)
    if precision == "fp32" or not model.is_quantised:
        return None
    effect = "would convert it a second time" if precision == "fp16" else "would quantise it twice"
    text = f"{model.name} is already quantised: {precision} {effect}. Use precision fp32, which measures it as it is."
    return Reason(code=ReasonCode.VARIANT_IMPOSSIBLE, text=text)


def refuse_unloadable(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse an .onnx whose opsets, IR version or custom operators the runtime does not load.

    It is judged at the opset that the recipe asks for. Unlisted packages and engines that run a program are never
    refused.
    """
    if _is_unlisted(spec) or engines.engine_of(spec.runtime).runs_program:
        return None  # the check shows what an unlisted package loads, and a framework's program is no .onnx
    model, wanted = context.model, spec.recipe.opset
    stamps = Stamps.of(model)
    if isinstance(wanted, int):
        imports = {domain: version for domain, version in model.opsets.items() if domain not in opsets.ONNX_DOMAINS}
        stamps = replace(stamps, imports={**imports, "": wanted}).tidy()
    version = plugins.core_of(spec.runtime).version
    return opsets.refusal(stamps.imports, stamps.ir_version, stamps.custom_domains, version, context.observed)


def refuse_conversion(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse to convert the model to an opset that its operators do not reach."""
    model, wanted = context.model, spec.recipe.opset
    if not isinstance(wanted, int) or wanted == model.opset:
        return None
    obstacle = model.opset_reach.find_obstacle(wanted)
    if not obstacle:
        return None
    text = conversions.explain_stop(obstacle, current=model.opset, wanted=wanted)
    return Reason(code=ReasonCode.VARIANT_IMPOSSIBLE, text=text)


def refuse_int4(spec: CellSpec, _: RuleContext) -> Reason | None:
    """Refuse int4 in browsers, and with releases of ONNX Runtime that lack its operator or compute it wrongly.

    Unlisted packages count as computing it.
    """
    if spec.recipe.precision != "int4":
        return None
    if engines.engine_of(spec.runtime).is_browser:
        return unsupported(
            f"int4 is not measured in browsers yet: leave {spec.runtime} out, or take another precision."
        )
    if _is_unlisted(spec) or release_order(plugins.core_of(spec.runtime).version) >= release_order(INT4_FROM):
        return None
    return unsupported(
        f"int4 is computed from ONNX Runtime {INT4_FROM} on: leave {spec.runtime} out, or take another precision."
    )


def refuse_simulation(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse FP32 on a simulator of a device that computes FP16 in its place: the outputs would not be the device's.

    Models that are quantised or compiled already are not refused.
    """
    entry = providers.find(spec.provider)
    if entry is None or not entry.simulated_on or context.model.is_quantised or context.model.compiled:
        return None
    if spec.hardware != entry.simulated_tag or spec.recipe.precision != "fp32":
        return None
    return unsupported(
        f"The simulator of {entry.name} computes fp32 as it stands and the device computes FP16 in its place, so that "
        "outputs would not be the device's: ask for `precision: int8-qdq` or `fp16`, or upload a quantised model."
    )


def refuse_pinning(spec: CellSpec, _: RuleContext) -> Reason | None:
    """Refuse pinned threads. The sandbox does not allow pinning, and ONNX Runtime would go on with unpinned threads."""
    if AFFINITIES not in spec.session.config:
        return None
    return unsupported(
        f"{AFFINITIES} cannot take hold in the sandbox, where a process may not place threads by their number: leave "
        "it out, and set `threads`."
    )
