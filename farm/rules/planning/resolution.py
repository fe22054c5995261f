"""From a point of a matrix to the cell it stands for, or the reason why it cannot run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from farm.contract.cells import CellSpec, Recipe, Runtime, SessionSettings, Workload
from farm.contract.reasons import Reason
from farm.rules.cells import fills, identity, recipes, scenarios, threads
from farm.rules.cells.session_sets import DEFAULT as DEFAULT_SESSION
from farm.rules.cells.session_sets import SessionSet
from farm.rules.cells.values import PrecisionChoice, ProviderChoice
from farm.rules.generation import decoders
from farm.rules.matrices.points import Point
from farm.rules.planning import refusals
from farm.rules.planning.plans import ModelFacts, NodeOffer
from farm.rules.runtimes import frameworks, opsets, plugins, providers, releases, web


@dataclass(frozen=True, slots=True)
class Resolved:
    """A point as a cell. `reason` is None when nothing stands against it; then `nodes` may take it (None: any).

    `is_hardware_declared`: the matrix itself says which hardware.
    """

    point: Point
    spec: CellSpec
    reason: Reason | None
    nodes: frozenset[str] | None = None
    is_hardware_declared: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What all points of a plan share. `fleet` None: no fleet was asked, but one machine."""

    model: ModelFacts
    fleet: Sequence[NodeOffer] | None = None
    seed: int = 0
    releases: frozenset[str] = frozenset()
    machine: NodeOffer | None = None
    yanked: Mapping[str, str] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    # how inputs are to be made, by name
    inputs: Mapping[str, str] = field(default_factory=dict)


def resolve(point: Point, request: Request) -> Resolved:
    """The cell of a point, and the first reason that stands against it."""
    spec = _typed(_spec_of(point, request), request)
    declared = "hardware" in point.values
    reason = refusals.first_refusal(spec, _circumstances(point, request))
    if reason is not None or request.fleet is None:
        return Resolved(point, spec, reason, None, declared)
    nodes = frozenset(node.id for node in request.fleet if takes(node, spec))
    return Resolved(point, spec, None if nodes else _not_taken(spec, request.fleet), nodes, declared)


def _not_taken(spec: CellSpec, fleet: Sequence[NodeOffer]) -> Reason:
    """Why no node takes the cell: none can run it at all, or those that can have too few cores."""
    able = [node for node in fleet if _can_run(node, spec)]
    most = max((node.cores for node in able if node.cores is not None), default=None)
    return threads.refusal(spec, cores=most) or refusals.no_node(spec, fleet)


def _typed(spec: CellSpec, request: Request) -> CellSpec:
    """The cell with what its recipe left to the hardware, and with the data that ranges are read off."""
    recipe = spec.recipe
    if recipe.precision not in recipes.STATIC:
        return spec
    takers = [node for node in request.fleet or () if takes(node, spec)]
    tags = {tag for node in takers for tag in node.tags} | (request.machine.tags if request.machine else frozenset())
    known = recipes.defaults_for(spec.provider, tags=tags)
    model = request.model
    samples = {} if model.calibration_problem else {recipes.SAMPLES: model.calibration_sha256 or recipes.RANDOM}
    options = dict(sorted({**known, **recipe.options, **samples}.items()))
    return spec.model_copy(update={"recipe": recipe.model_copy(update={"options": options})})


def takes(node: NodeOffer, spec: CellSpec) -> bool:
    """Whether the node can run the cell, and has a core for each of its threads."""
    return _can_run(node, spec) and threads.refusal(spec, cores=node.cores) is None


def _can_run(node: NodeOffer, spec: CellSpec) -> bool:
    """Whether the node carries the hardware, has proven the provider and may install the distribution."""
    provider = providers.of(spec.provider)
    proven = provider is providers.CPU or provider.name in node.providers
    allowed = not node.distributions or spec.runtime.distribution in node.distributions
    # a browser runs what is made for browsers and nothing else, and nothing else runs that
    return (
        proven
        and allowed
        and node.is_browser == web.is_web(spec.runtime)
        and refusals.has_hardware(node, spec.hardware)
    )


def _circumstances(point: Point, request: Request) -> refusals.Circumstances:
    fleet = request.fleet or ()
    asked = point.values.get("batch")
    return refusals.Circumstances(
        model=request.model,
        asked_batch=asked if isinstance(asked, int) else None,
        own_providers=frozenset(name for node in fleet for name in node.providers),
        known_releases=request.releases.union(*(node.versions for node in fleet)),
        yanked=request.yanked,
        allowed=request.allowed,
        cores=request.machine.cores if request.machine else None,
        asked_sizes=_mapping(point.values.get("shapes")),
        asked_inputs=request.inputs,
        has_fleet=request.fleet is not None,
    )


def _spec_of(point: Point, request: Request) -> CellSpec:
    values, model = point.values, request.model
    provider = values.get("provider", ProviderChoice(providers.CPU.name))
    precision = values.get("precision", PrecisionChoice())
    runtime = values.get("runtime", releases.newest())
    assert isinstance(provider, ProviderChoice)
    assert isinstance(precision, PrecisionChoice)
    assert isinstance(runtime, Runtime)
    entry = providers.of(provider.name)
    options = providers.with_defaults(entry, provider.options)
    return CellSpec(
        artifact_sha256=model.bundle_sha256,
        recipe=Recipe(
            precision=precision.precision,
            opset=_opset_of(point, runtime, model),
            options=dict(precision.options),
            is_program=frameworks.is_framework(runtime),
        ),
        runtime=runtime,
        provider=entry.name,
        provider_options=options,
        workload=_workload_of(point, request),
        session=_session_of(point),
        hardware=str(values.get("hardware", _usual_tag(entry, options, request))),
    )


def _usual_tag(entry: providers.Provider, options: Mapping[str, str], request: Request) -> str:
    """The provider's tag; without a fleet that of a simulator where this machine can only have one."""
    here = request.machine.tags if request.machine is not None and request.fleet is None else frozenset()
    return entry.simulated_tag if entry.simulated_on & here else providers.tag_for(entry, options)


def _opset_of(point: Point, runtime: Runtime, model: ModelFacts) -> int | Literal["as-is", "max-of-runtime"]:
    """The opset to convert to. A model is never converted to what it already is, nor down by `max-of-runtime`.

    As-is is the upload, byte by byte. Where an opset was asked for that the model already has, or that it may keep, and
    the upload does not load but does with its stamps in order (unused operator sets left out, the IR version as low as
    its operators need), a variant of the model's own opset is measured.
    """
    wanted = point.values.get("opset", "as-is")
    if wanted == "as-is" or (frameworks.is_framework(runtime) and wanted == "max-of-runtime"):
        return "as-is"
    if wanted == "max-of-runtime":
        most = opsets.max_opset(plugins.core_of(runtime).version)
        wanted = "as-is" if most is None or most <= (model.opset or most) else most
    if isinstance(wanted, int) and wanted != model.opset:
        return wanted
    return model.opset if model.opset is not None and _loads_only_tidied(runtime, model) else "as-is"


def _loads_only_tidied(runtime: Runtime, model: ModelFacts) -> bool:
    stamps = refusals.stamps_of(model)
    as_is, tidied = (
        opsets.refusal(one.imports, one.ir_version, one.custom_domains, plugins.core_of(runtime).version)
        for one in (stamps, stamps.tidied())
    )
    return as_is is not None and tidied is None


def _workload_of(point: Point, request: Request) -> Workload:
    """The batch is the one asked for, else that of the given inputs, else the model's own, else 1.

    Dimensions that nobody sized have the sizes that inspection chose.
    """
    values, model = point.values, request.model
    chosen = {name: size for name, size in model.sizes.items() if name != model.batch}
    asked = {str(name): int(size) for name, size in _mapping(values.get("shapes")).items()}
    shapes, batch = chosen | asked, values.get("batch")
    if batch is None and isinstance(model.batch, str):
        batch = shapes.pop(model.batch, None)
    if model.is_grouped and isinstance(batch, int) and batch > 1 and model.inputs_sha256 is None:
        stepped = decoders.one_token_sizes(model.inputs, chosen)
        shapes |= {} if stepped.keys() & asked.keys() else stepped
    if batch is None and model.batch is not None:
        batch = model.inputs_batch or (model.batch if isinstance(model.batch, int) else 1)
    found = {
        "batch": batch if isinstance(batch, int) else None,
        "shapes": shapes,
        "seed": request.seed,
        "inputs_sha256": model.inputs_sha256,
        "inputs": _fills_of(request) if model.inputs_sha256 is None else {},
    }
    return Workload.model_validate(found | scenarios.as_workload(identity.given(values, "workload")))


def _fills_of(request: Request) -> dict[str, str]:
    """How inputs are made: as asked, else as inspection chose, the usual numbers of their type left unsaid."""
    chosen = {one.name: one.fill for one in request.model.inputs if one.fill != fills.plain_of(one.dtype)}
    return dict(sorted({**chosen, **request.inputs}.items()))


def _mapping(value: object) -> Mapping[str, int]:
    return value if isinstance(value, Mapping) else {}


def _session_of(point: Point) -> SessionSettings:
    chosen = point.values.get("session", DEFAULT_SESSION)
    assert isinstance(chosen, SessionSet)
    return SessionSettings.model_validate(chosen.as_settings() | identity.given(point.values, "session"))
