"""Makes the cell of each point of a matrix, with the nodes that may take it or the reason why it cannot run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from farm.contract.cells import CellSpec, Recipe, Runtime, SessionSettings, Workload
from farm.contract.reasons import Reason
from farm.rules.cells import fills, identity, recipes, scenarios, threads
from farm.rules.cells.axes import FIELD_AXES
from farm.rules.cells.session_sets import DEFAULT as DEFAULT_SESSION
from farm.rules.cells.session_sets import SessionSet
from farm.rules.cells.values import PrecisionChoice, ProviderChoice, format_value
from farm.rules.generation import decoders
from farm.rules.matrices.points import Point
from farm.rules.planning.first_refusals import FirstRefusals
from farm.rules.planning.nodes import can_measure, can_run, explain_no_node
from farm.rules.planning.parts import Part
from farm.rules.planning.plans import NodeOffer
from farm.rules.planning.refusals import RuleContext
from farm.rules.runtimes import engines, opsets, plugins, providers, releases
from farm.rules.runtimes.compatibility import Stamps
from farm.rules.runtimes.models import ModelFacts

# the axes that decide each part of a cell
_PROGRAM_AXES = ("runtime", "provider", "precision", "opset", "hardware")
_SESSION_AXES = ("session", *(axis.name for axis in FIELD_AXES if axis.part == "session"))
_WORKLOAD_AXES = ("batch", "shapes", *(axis.name for axis in FIELD_AXES if axis.part == "workload"))
Digests = tuple[str, ...]


class ResolvedPoint(NamedTuple):
    """A point of a matrix as a cell, or as the reason why it cannot run."""

    # the cell's name in the plan
    name: str
    positions: Mapping[str, int]
    # its values in words, by axis
    labels: dict[str, str]
    spec: CellSpec
    # the digests of its program, session and workload; equal for cells whose specs have equal digests
    digests: Digests
    # None where the cell can run
    reason: Reason | None
    # the nodes that may take the cell; None where no fleet was asked, or where the cell cannot run
    nodes: frozenset[str] | None = None
    # whether the matrix itself says which hardware
    is_hardware_declared: bool = False
    # the node that first tries the cell's provider, which no node has proven; None where no node has to
    trial: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What all points of a plan share."""

    model: ModelFacts
    # the nodes; None where the single `machine` measures
    fleet: Sequence[NodeOffer] | None = None
    seed: int = 0
    known: releases.Known = releases.NOTHING_MORE
    machine: NodeOffer | None = None
    # packages beyond the known distributions that may be installed
    allowed: frozenset[str] = frozenset()
    # how inputs are to be made, by name
    inputs: Mapping[str, str] = field(default_factory=dict)
    # names of outputs that have a tolerance, but that no model has
    unknown_outputs: Sequence[str] = ()
    # what releases beyond the table were observed to load
    observed: opsets.ObservedLoads = field(default_factory=dict)
    # where the fleet is empty, why each node that is online measures nothing for this team
    idle_reasons: Sequence[str] = ()


class Resolver:
    """Makes cells of the points of one matrix.

    A matrix of thousands of points has few different programs, sessions and workloads. Each of them is made once, each
    rule is applied once to the parts that it looks at, and each node is checked once.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._parts: dict[object, Part] = {}
        self._contexts: dict[Part, RuleContext] = {}
        self._able_nodes: dict[tuple[str, str, str], list[NodeOffer]] = {}
        self._nodes_with_cores: dict[tuple[object, ...], frozenset[str]] = {}
        self._no_node_reasons: dict[Part, Reason] = {}
        self._refusals = FirstRefusals()
        fleet = request.fleet or ()
        self._common_context = RuleContext(
            model=request.model,
            proven_providers=frozenset(name for node in fleet for name in node.providers),
            known_releases=frozenset(request.known.releases).union(*(node.versions for node in fleet)),
            yanked=request.known.yanked,
            index_problem=request.known.silence,
            allowed=request.allowed,
            cores=request.machine.cores if request.machine else None,
            asked_inputs=request.inputs,
            unknown_outputs=request.unknown_outputs,
            observed=request.observed,
            has_fleet=request.fleet is not None,
        )

    def resolve(self, point: Point, *, name: str) -> ResolvedPoint:
        """Return the cell of a point with the nodes that may take it, or with the first reason why it cannot run.

        Where none may take it, the first node that may try its provider does, as its `trial`, if it could measure it.
        """
        program = self._make_part(_PROGRAM_AXES, point, _make_program)
        session = self._make_part(_SESSION_AXES, point, _make_session)
        workload = self._make_part(_WORKLOAD_AXES, point, _make_workload)
        if (
            self._request.model.unbound
            and "call" not in point.values
            and engines.engine_of(program.fields["runtime"]).has_calls
        ):
            session = self._change_to_run(session)
        spec = self._make_spec(program, session, workload)
        nodes = self._find_nodes(spec)
        if spec.recipe.precision in recipes.STATIC:
            program = self._complete_program(program, spec, nodes)
            spec = self._make_spec(program, session, workload)
        words = program.words | session.words | workload.words
        reason = self._refusals.find(spec, self._make_context(workload, point), (program, session, workload))
        trial = None
        if reason is None and self._request.fleet is not None and not nodes:
            entry = providers.provider_of(spec.provider)
            willing = (node for node in self._request.fleet if entry.name in node.may_try)
            trial = next((node.id for node in willing if can_measure(node.with_proven_provider(entry), spec)), None)
            nodes = nodes if trial is None else frozenset({trial})
            reason = None if trial is not None else self._explain_no_node(spec, program)
        return ResolvedPoint(
            name=name,
            positions=point.positions,
            labels={axis: words[axis] for axis in point.values},
            spec=spec,
            digests=(program.digest, session.digest, workload.digest),
            reason=reason,
            nodes=nodes if reason is None and self._request.fleet is not None else None,
            is_hardware_declared="hardware" in point.values,
            trial=trial,
        )

    def _make_part(self, axes: Sequence[str], point: Point, make: Callable[[Point, Request], dict[str, Any]]) -> Part:
        """Make the part of the point's cell that these axes decide."""
        key = (axes, *map(point.positions.get, axes))
        if (part := self._parts.get(key)) is None:
            words = {axis: format_value(point.values[axis]) for axis in axes if axis in point.values}
            part = self._parts[key] = Part.from_fields(make(point, self._request), words)
        return part

    def _make_spec(self, program: Part, session: Part, workload: Part) -> CellSpec:
        return CellSpec(
            artifact_sha256=self._request.model.bundle_sha256, **program.fields, **session.fields, **workload.fields
        )

    def _make_context(self, workload: Part, point: Point) -> RuleContext:
        if (context := self._contexts.get(workload)) is None:
            batch = point.values.get("batch")
            context = self._contexts[workload] = replace(
                self._common_context,
                asked_batch=batch if isinstance(batch, int) else None,
                asked_sizes=_as_mapping(point.values.get("shapes")),
            )
        return context

    def _find_nodes(self, spec: CellSpec) -> frozenset[str]:
        """Find the nodes that can run the cell and have a core for each of its threads; none without a fleet."""
        cores = threads.needed_cores(spec)
        key = (spec.runtime.distribution, spec.provider, spec.hardware, cores)
        if (nodes := self._nodes_with_cores.get(key)) is None:
            able_nodes = (node for node in self._find_able_nodes(spec) if node.cores is None or cores <= node.cores)
            nodes = self._nodes_with_cores[key] = frozenset(node.id for node in able_nodes)
        return nodes

    def _find_able_nodes(self, spec: CellSpec) -> list[NodeOffer]:
        key = (spec.runtime.distribution, spec.provider, spec.hardware)
        if (able_nodes := self._able_nodes.get(key)) is None:
            able_nodes = [node for node in self._request.fleet or () if can_run(node, spec)]
            self._able_nodes[key] = able_nodes
        return able_nodes

    def _explain_no_node(self, spec: CellSpec, program: Part) -> Reason:
        """Say why no node takes the cell: none can run it at all, or those that can have too few cores."""
        max_cores = max((node.cores for node in self._find_able_nodes(spec) if node.cores is not None), default=None)
        if (too_few_cores := threads.refusal(spec, cores=max_cores)) is not None:
            return too_few_cores
        if (reason := self._no_node_reasons.get(program)) is None:
            reason = explain_no_node(spec, self._request.fleet or (), self._request.idle_reasons)
            self._no_node_reasons[program] = reason
        return reason

    def _change_to_run(self, session: Part) -> Part:
        """Return the session with the call `run`, for a model whose inputs cannot be bound."""
        if (changed := self._parts.get((session, "run"))) is None:
            settings = session.fields["session"].model_copy(update={"call": "run"})
            changed = self._parts[session, "run"] = Part.from_fields({"session": settings}, session.words)
        return changed

    def _complete_program(self, program: Part, spec: CellSpec, nodes: frozenset[str]) -> Part:
        """Complete the recipe with the hardware's defaults and with the data that calibrate the quantisation."""
        if (completed := self._parts.get((program, nodes))) is None:
            request, model, recipe = self._request, self._request.model, spec.recipe
            tags = {tag for node in request.fleet or () if node.id in nodes for tag in node.tags}
            tags |= request.machine.tags if request.machine else set()
            defaults = recipes.hardware_defaults(spec.provider, tags=tags)
            samples = {} if model.calibration_problem else {recipes.SAMPLES: model.calibration_sha256 or recipes.RANDOM}
            options = dict(sorted({**defaults, **recipe.options, **samples}.items()))
            fields = {**program.fields, "recipe": recipe.model_copy(update={"options": options})}
            completed = self._parts[program, nodes] = Part.from_fields(fields, program.words)
        return completed


def _make_program(point: Point, request: Request) -> dict[str, Any]:
    values = point.values
    provider = values.get("provider", ProviderChoice(providers.CPU.name))
    precision = values.get("precision", PrecisionChoice())
    runtime = values.get("runtime", request.known.newest)
    assert isinstance(provider, ProviderChoice)
    assert isinstance(precision, PrecisionChoice)
    assert isinstance(runtime, Runtime)
    entry = providers.provider_of(provider.name)
    options = providers.with_defaults(entry, provider.options)
    machine = request.machine if request.fleet is None else None
    is_simulated = machine is not None and bool(entry.simulated_on & machine.tags)
    default_hardware = entry.simulated_tag if is_simulated else entry.tag_with(options)
    return {
        "recipe": Recipe(
            precision=precision.precision,
            opset=_choose_opset(point, runtime, request),
            options=dict(precision.options),
            is_program=engines.engine_of(runtime).runs_program,
        ),
        "runtime": runtime,
        "provider": entry.name,
        "provider_options": options,
        "hardware": str(values.get("hardware", default_hardware)),
    }


def _choose_opset(point: Point, runtime: Runtime, request: Request) -> int | Literal["as-is", "max-of-runtime"]:
    """Choose the opset to convert to; `as-is` means that the upload is measured byte by byte.

    A model is never converted to the opset that it already has, and `max-of-runtime` never lowers its opset. An upload
    that loads only once its stamps are tidied is the exception: where the matrix asks for an opset and the model may
    keep its own, a variant of its own opset is measured.
    """
    wanted, model = point.values.get("opset", "as-is"), request.model
    if wanted == "as-is" or (engines.engine_of(runtime).runs_program and wanted == "max-of-runtime"):
        return "as-is"
    if wanted == "max-of-runtime":
        newest = opsets.max_opset(plugins.core_of(runtime).version, request.observed)
        wanted = "as-is" if newest is None or newest <= (model.opset or newest) else newest
    if isinstance(wanted, int) and wanted != model.opset:
        return wanted
    return model.opset if model.opset is not None and _loads_only_tidied(runtime, request) else "as-is"


def _loads_only_tidied(runtime: Runtime, request: Request) -> bool:
    stamps, version = Stamps.of(request.model), plugins.core_of(runtime).version
    as_is, tidied = (
        opsets.refusal(stamp.imports, stamp.ir_version, stamp.custom_domains, version, request.observed)
        for stamp in (stamps, stamps.tidy())
    )
    return as_is is not None and tidied is None


def _make_workload(point: Point, request: Request) -> dict[str, Any]:
    """Make the workload: batch, sizes of dimensions, seed, and how inputs are filled.

    The batch is the one asked for, or that of the given inputs, or the model's own, or 1. Other dimensions that come
    first in an input follow the batch asked for. Dimensions without a size asked for keep that of the inspection.
    """
    values, model = point.values, request.model
    default_sizes = {name: size for name, size in model.sizes.items() if name != model.batch}
    asked_sizes = {str(name): int(size) for name, size in _as_mapping(values.get("shapes")).items()}
    batch = values.get("batch")
    if isinstance(batch, int) and isinstance(model.batch, str) and model.inputs_sha256 is None:
        first_dimensions = {port.shape[0] for port in model.inputs if port.shape}
        default_sizes |= {name: batch for name in default_sizes if name in first_dimensions}
    shapes = default_sizes | asked_sizes
    if batch is None and isinstance(model.batch, str) and shapes.get(model.batch):
        batch = shapes.pop(model.batch)
    if model.is_grouped and isinstance(batch, int) and batch > 1 and model.inputs_sha256 is None:
        token_sizes = decoders.single_token_sizes(model.inputs, default_sizes)
        shapes |= {} if token_sizes.keys() & asked_sizes.keys() else token_sizes
    if batch is None and model.batch is not None:
        batch = model.inputs_batch or (model.batch if isinstance(model.batch, int) else 1)
    own_fills = {port.name: port.fill for port in model.inputs if port.fill != fills.default_fill(port.dtype)}
    fields = {
        "batch": batch if isinstance(batch, int) else None,
        "shapes": shapes,
        "seed": request.seed,
        "inputs_sha256": model.inputs_sha256,
        "inputs": dict(sorted({**own_fills, **request.inputs}.items())) if model.inputs_sha256 is None else {},
    }
    return {
        "workload": Workload.model_validate(
            fields | scenarios.workload_fields(identity.part_fields(values, "workload"))
        )
    }


def _as_mapping(value: object) -> Mapping[str, int]:
    return value if isinstance(value, Mapping) else {}


def _make_session(point: Point, _: Request) -> dict[str, Any]:
    session_set = point.values.get("session", DEFAULT_SESSION)
    assert isinstance(session_set, SessionSet)
    settings = session_set.session_fields() | identity.part_fields(point.values, "session")
    return {"session": SessionSettings.model_validate(settings)}
