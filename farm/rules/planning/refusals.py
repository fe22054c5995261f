"""Why a cell cannot run, found before anything is measured: each rule gives one sentence with the way out.

`farm.rules.planning.first_refusals` asks them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from farm.contract.cells import BOUND, NO_POLICY, CellSpec, Runtime
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.cells import fills, recipes, scenarios, threads
from farm.rules.planning import compiled, tolerances
from farm.rules.planning.parts import PROGRAM, SESSION, WORKLOAD
from farm.rules.planning.plans import NodeOffer
from farm.rules.runtimes import conversions, distributions, engines, opsets, plugins, providers, releases, web
from farm.rules.runtimes.compatibility import Stamps
from farm.rules.runtimes.engine import unsupported
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.nearest import nearest_word
from farm.rules.runtimes.order import release_order

# a session config entry; the sandbox's filter cannot tell a thread of the caller's from somebody else's process
AFFINITIES = "session.intra_op_thread_affinities"
# by PyPI's wheels, November 2026: the Python of releases before has no method for policies
POLICY_FROM = "1.23.0"
# the same: 1.15 knows no MatMulNBits; that of 1.16.3 takes no accuracy level and errs with blocks of 256
INT4_FROM = "1.17.0"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the rules look at besides the cell. `own_providers`: those that some node has proven by itself.

    `allowed`: packages beyond the known distributions that may be installed. `cores`: of the one machine that measures,
    where no fleet is asked.
    """

    model: ModelFacts
    asked_batch: int | None = None
    own_providers: Collection[str] = ()
    known_releases: Collection[Runtime] = ()
    yanked: Mapping[Runtime, str] = field(default_factory=dict)
    # why the package index could not be asked, in one sentence
    silence: str = ""
    allowed: Collection[str] = ()
    cores: int | None = None
    # what was asked for of sizes and of inputs
    asked_sizes: Mapping[str, int] = field(default_factory=dict)
    asked_inputs: Mapping[str, str] = field(default_factory=dict)
    unknown_outputs: Sequence[str] = ()
    learnt: opsets.Learnt = field(default_factory=dict)
    # whether the nodes of a farm measure, and not the machine that plans
    has_fleet: bool = True


def explain_no_node(spec: CellSpec, fleet: Sequence[NodeOffer], kept: Sequence[str] = ()) -> Reason:
    """Return the reason why no node of the fleet takes the cell: the hardware, the provider or the distribution.

    `kept`: of a fleet of none, the nodes that are online all the same, each with why it measures nothing here.
    """
    tags = sorted({tag for node in fleet for tag in node.tags})
    if not fleet:
        known = f": {'; '.join(kept)}. Add" if kept else " yet: have one lent to it, or add"
        text = f"No node measures for this team{known} a node, and plan again."
    elif not tags:
        text = "The nodes that are online have not proven their hardware yet: plan again once they have."
    elif spec.hardware.startswith("node:"):
        names = [f"node:{node.name or node.id}" for node in fleet]
        text = f"No node is named {spec.hardware.removeprefix('node:')!r}{_suggest_word(spec.hardware, names)}."
    elif not any(has_hardware(node, spec.hardware) for node in fleet):
        text = (
            f"No node carries the hardware {spec.hardware!r}{_suggest_word(spec.hardware, tags)}: "
            f"the fleet has {', '.join(tags)}. Add such a node, or change `hardware` or `provider`."
        )
        if (simulator := providers.provider_of(spec.provider).simulated_tag) in tags:
            text += f" `hardware: [{simulator}]` takes a simulator, for placement and parity alone."
    else:
        text = (
            f"No node with the hardware {spec.hardware!r} runs {spec.provider} on {spec.runtime.distribution}: "
            "add a node whose probe shows it executing, or leave this provider out."
        )
    return Reason(code=ReasonCode.NO_NODE, text=text)


def has_hardware(node: NodeOffer, hardware: str) -> bool:
    """Whether a node fits the value of the axis `hardware`: a tag, all of `a+b`, any of `a|b`, or `node:NAME` or
    `node:NUMBER`."""
    if hardware.startswith("node:"):
        wanted = hardware.removeprefix("node:")
        # no node is named by digits alone, so that a number is always a node's number
        return wanted == (node.id if wanted.isdecimal() else node.name)
    if "|" in hardware:
        return any(tag in node.tags for tag in hardware.split("|"))
    return all(tag in node.tags for tag in hardware.split("+"))


def _suggest_word(word: str, valid: Sequence[str]) -> str:
    close = nearest_word(word, valid)
    return "" if close is None else f" (the nearest is {close!r})"


def _refuse_unlisted_package(spec: CellSpec, about: Circumstances) -> Reason | None:
    """Refuse a package that is not allowed, even where a node says that it has it, or no build has the provider."""
    sentence = distributions.refusal(spec.runtime, allowed=about.allowed)
    return None if sentence is None else Reason(code=ReasonCode.UNKNOWN_RUNTIME, text=sentence)


def _is_unlisted(spec: CellSpec) -> bool:
    return not distributions.is_known(spec.runtime.distribution) and plugins.plugin_of(spec.runtime) is None


def _refuse_unknown_runtime(spec: CellSpec, about: Circumstances) -> Reason | None:
    if _is_unlisted(spec):
        return None  # its releases are known to the installer alone
    sentence = releases.unknown_sentence(spec.runtime, extra=about.known_releases, yanked=about.yanked)
    if sentence is None:
        return None
    return Reason(code=ReasonCode.UNKNOWN_RUNTIME, text=f"{sentence} {about.silence}".strip())


def _refuse_missing_provider(spec: CellSpec, about: Circumstances) -> Reason | None:
    entry = providers.provider_of(spec.provider)
    by_owner = not entry.distributions and entry.name in about.own_providers
    if providers.find(spec.provider) is None and plugins.library_for(spec.runtime, spec.provider) is None:
        return Reason(code=ReasonCode.PROVIDER_NOT_IN_BUILD, text=providers.unknown_sentence(spec.provider))
    if providers.is_carried_by(entry, spec.runtime.distribution) or by_owner:
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


def _refuse_outside_browsers(spec: CellSpec, about: Circumstances) -> Reason | None:
    if about.has_fleet or not engines.engine_of(spec.runtime).is_browser:
        return None
    text = (
        f"{spec.runtime} runs in browsers and not on this machine: start a farm (`onnxfarm serve`), open "
        "“Add a node” there in the browser, and submit the model to that farm."
    )
    return Reason(code=ReasonCode.NO_NODE, text=text)


def _refuse_by_engine(spec: CellSpec, about: Circumstances) -> Reason | None:
    named = plugins.format_runtime(spec.runtime)
    return next(engines.engine_of(spec.runtime).refusals(spec, about.model, scenarios.of_cell(spec), named=named), None)


def _refuse_policy(spec: CellSpec, _: Circumstances) -> Reason | None:
    """Refuse a policy by which ONNX Runtime chooses a device, where it cannot follow that policy."""
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


def _refuse_memory_limit(spec: CellSpec, _: Circumstances) -> Reason | None:
    """Refuse a limit on memory that is not of the CPU's providers: it could not be enforced."""
    entry = providers.find(spec.provider)
    if not spec.session.memory_limit_mb or entry is None or entry.device == "cpu":
        return None
    return unsupported(
        f"A memory limit counts addresses, of which {entry.name} takes far more than it uses: leave memory-limit-mb "
        "out, or measure on the CPU."
    )


def _refuse_call(spec: CellSpec, about: Circumstances) -> Reason | None:
    """Refuse calls that a runtime, a model or a scenario does not have."""
    model, has_calls = about.model, engines.engine_of(spec.runtime).has_calls
    if spec.session.call == BOUND:
        text = (
            model.unbound and has_calls and f"Nothing is bound where {model.unbound}: set `call: run`, or leave it out."
        )
    elif not has_calls or scenarios.of_cell(spec).takes_prompts:
        what = scenarios.of_cell(spec).name if has_calls else spec.runtime
        text = f"{what} is not called by InferenceSession.run: leave `call: run` out."
    elif wide := next((port.name for port in model.inputs if port.dtype == "bfloat16"), ""):
        text = (
            f"numpy has no bfloat16, which the input {wide!r} takes, for InferenceSession.run: leave `call: run` out."
        )
    else:
        return None
    return unsupported(text) if text else None


def _refuse_webgpu(spec: CellSpec, _: Circumstances) -> Reason | None:
    if not web.is_web(spec.runtime) or spec.provider == web.PROVIDER.name:
        return None
    if not web.has_webgpu(spec.runtime.version):
        text = f"{spec.runtime} is measured as WebAssembly alone: WebGPU and WebNN need {web.WEBGPU_FROM} or newer."
    elif spec.session.threads > 1:
        text = f"{spec.runtime} has one thread beside WebGPU or WebNN: set `threads: 1`, or `provider: wasm`."
    else:
        return None
    return unsupported(text)


def _refuse_variant(spec: CellSpec, about: Circumstances) -> Reason | None:
    precision, model = spec.recipe.precision, about.model
    if precision in recipes.STATIC and model.calibration_problem:
        return Reason(code=ReasonCode.VARIANT_IMPOSSIBLE, text=model.calibration_problem)
    if precision == "fp32" or not model.is_quantised:
        return None
    again = "would convert it a second time" if precision == "fp16" else "would quantise it twice"
    text = f"{model.name} is already quantised: {precision} {again}. Use precision fp32, which measures it as it is."
    return Reason(code=ReasonCode.VARIANT_IMPOSSIBLE, text=text)


def _refuse_unloadable(spec: CellSpec, about: Circumstances) -> Reason | None:
    if _is_unlisted(spec) or engines.engine_of(spec.runtime).runs_program:
        return None  # its check shows what it loads; a program is no .onnx
    model, wanted = about.model, spec.recipe.opset
    stamps = Stamps.of(model)
    if isinstance(wanted, int):
        imports = {domain: version for domain, version in model.opsets.items() if domain not in opsets.ONNX_DOMAINS}
        stamps = replace(stamps, imports={**imports, "": wanted}).tidy()
    version = plugins.core_of(spec.runtime).version
    return opsets.refusal(stamps.imports, stamps.ir_version, stamps.custom_domains, version, about.learnt)


def _refuse_conversion(spec: CellSpec, about: Circumstances) -> Reason | None:
    model, wanted = about.model, spec.recipe.opset
    if not isinstance(wanted, int) or wanted == model.opset:
        return None
    why = model.opset_reach.find_obstacle(wanted)
    text = conversions.explain_stop(why, current=model.opset, wanted=wanted)
    return Reason(code=ReasonCode.VARIANT_IMPOSSIBLE, text=text) if why else None


def refuse_int4(spec: CellSpec) -> Reason | None:
    """Return the reason why the runtime cannot compute with 4-bit weights; None where it can or none are asked for."""
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


def _refuse_simulation(spec: CellSpec, about: Circumstances) -> Reason | None:
    """Refuse FP32 on a simulator: the device does not compute it, so that the outputs would not be its own."""
    entry = providers.find(spec.provider)
    if entry is None or not entry.simulated_on or about.model.is_quantised or about.model.compiled:
        return None
    if spec.hardware != entry.simulated_tag or spec.recipe.precision != "fp32":
        return None
    return unsupported(
        f"The simulator of {entry.name} computes fp32 as it stands and the device computes FP16 in its place, so that "
        "outputs would not be the device's: ask for `precision: int8-qdq` or `fp16`, or upload a quantised model."
    )


def _refuse_pinning(spec: CellSpec, _: Circumstances) -> Reason | None:
    """Refuse threads that cannot be pinned: ONNX Runtime would continue and be measured unpinned."""
    if AFFINITIES not in spec.session.config:
        return None
    return unsupported(
        f"{AFFINITIES} cannot take hold in the sandbox, where a process may not place threads by their number: leave "
        "it out, and set `threads`."
    )


def _refuse_batch(spec: CellSpec, about: Circumstances) -> Reason | None:
    model, asked = about.model, about.asked_batch
    if asked is None:
        return None
    if model.batch is None:
        text = (
            f"Nothing shows a batch that all inputs of {model.name} begin with: leave batch out, and set sizes with "
            "--shape NAME=SIZE, or `shapes` in a matrix."
        )
        return Reason(code=ReasonCode.NO_BATCH, text=text)
    if isinstance(model.batch, int) and asked != model.batch:
        text = f"{model.name} has the fixed batch {model.batch}: batch {asked} needs a dynamic first dimension."
        return Reason(code=ReasonCode.FIXED_BATCH, text=text)
    if model.inputs_batch is not None and asked != model.inputs_batch:
        text = f"The given inputs have batch {model.inputs_batch}: batch {asked} needs other inputs, or none."
        return Reason(code=ReasonCode.FIXED_BATCH, text=text)
    return None


def _refuse_shapes(spec: CellSpec, about: Circumstances) -> Reason | None:
    problems = (_find_shape_problem(name, size, about) for name, size in spec.workload.shapes.items())
    return next((unsupported(problem) for problem in problems if problem is not None), None)


def _find_shape_problem(name: str, size: int, about: Circumstances) -> str | None:
    model = about.model
    if name == model.batch and size == 0:
        return f"The dimension {name!r} is the batch, of which there is at least 1: leave it out of `shapes`."
    if name == model.batch:
        return f"The dimension {name!r} is the batch and is {about.asked_batch} already: leave it out of `shapes`."
    if name not in model.dims:
        dynamic = [dim for dim, fixed in model.dims.items() if fixed is None]
        has = f"it has {', '.join(dynamic)}" if dynamic else "all its dimensions are fixed"
        return f"{model.name} has no dynamic dimension {name!r}{_suggest_word(name, dynamic)}: {has}."
    own = model.sizes.get(name)
    if model.inputs_sha256 is not None and own is not None and size != own:
        return f"The given inputs have {name} {own}: {size} needs other inputs, or none."
    fixed = model.dims[name]
    if fixed is not None and fixed != size:
        return f"The dimension {name!r} of {model.name} is fixed at {fixed}: {size} needs a model where it is dynamic."
    return None


def _refuse_by_scenario(spec: CellSpec, about: Circumstances) -> Reason | None:
    """Refuse what a scenario cannot do with this model, runtime or provider."""
    shape_problem = partial(_find_shape_problem, about=about)
    problem = next(scenarios.of_cell(spec).refusals(spec, about.model, shape_problem=shape_problem), None)
    return None if problem is None else unsupported(problem)


def _refuse_without_inputs(spec: CellSpec, about: Circumstances) -> Reason | None:
    """Refuse a model that ran with no tried inputs at inspection, unless the matrix gives sizes or inputs."""
    model = about.model
    if not model.inputs_problem or model.inputs_sha256 is not None or about.asked_sizes or about.asked_inputs:
        return None
    return Reason(code=ReasonCode.INFERENCE_FAILED, text=model.inputs_problem)


def _refuse_inputs(spec: CellSpec, about: Circumstances) -> Reason | None:
    """Check that each input to be made exists, and that its type holds the numbers. Known models only."""
    if about.model.inputs_sha256 is not None and about.asked_inputs:
        name = next(iter(about.asked_inputs))
        text = f"The input {name!r} is among the given ones: leave `inputs` out of the matrix, or give none."
        return unsupported(text)
    known = {port.name: port for port in about.model.inputs}
    for name, text in spec.workload.inputs.items() if known else ():
        problem = _find_input_problem(name, text, about.model)
        if problem is not None:
            return unsupported(problem)
    return None


def _find_input_problem(name: str, text: str, model: ModelFacts) -> str | None:
    dtypes = {port.name: port.dtype for port in model.inputs}
    if name not in dtypes:
        return f"{model.name} has no input {name!r}{_suggest_word(name, list(dtypes))}: it has {', '.join(dtypes)}."
    fill = fills.parse(text)
    if fill.dimension and fill.dimension not in model.sizes:
        return (
            f"The input {name!r} cannot be the size of {fill.dimension!r}: it is not a dynamic dimension of the model."
        )
    why = fills.misfit_reason(fill, dtypes[name])
    return None if why is None else f"The input {name!r} takes {dtypes[name]} and was to be {text}: {why}"


Rule = Callable[[CellSpec, Circumstances], Reason | None]
# each with the parts of a cell that it looks at, in the order in which a person would want to know
RULES: tuple[tuple[Rule, tuple[int, ...]], ...] = (
    (_refuse_unlisted_package, (PROGRAM,)),
    (_refuse_unknown_runtime, (PROGRAM,)),
    (_refuse_missing_provider, (PROGRAM,)),
    (_refuse_outside_browsers, (PROGRAM,)),
    (_refuse_by_engine, (PROGRAM, SESSION, WORKLOAD)),
    (lambda spec, about: compiled.refusal(spec, about.model), (PROGRAM,)),
    (_refuse_policy, (PROGRAM, SESSION)),
    (_refuse_memory_limit, (PROGRAM, SESSION)),
    (_refuse_call, (PROGRAM, SESSION, WORKLOAD)),
    (_refuse_webgpu, (PROGRAM, SESSION)),
    (_refuse_unloadable, (PROGRAM,)),
    (_refuse_conversion, (PROGRAM,)),
    (_refuse_variant, (PROGRAM,)),
    (lambda spec, _: refuse_int4(spec), (PROGRAM,)),
    (_refuse_simulation, (PROGRAM,)),
    (_refuse_pinning, (SESSION,)),
    (lambda spec, about: threads.refusal(spec, cores=about.cores), (PROGRAM, SESSION, WORKLOAD)),
    (_refuse_batch, (WORKLOAD,)),
    (_refuse_shapes, (WORKLOAD,)),
    (_refuse_inputs, (WORKLOAD,)),
    (lambda spec, about: tolerances.refuse_unknown(about.unknown_outputs, spec, about.model), (WORKLOAD,)),
    (_refuse_by_scenario, (PROGRAM, WORKLOAD)),
    (_refuse_without_inputs, (WORKLOAD,)),
)
