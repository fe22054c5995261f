"""Turns a point of a matrix into the cell it stands for, or into the reason why it cannot run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from farm.contract.cells import CellSpec, Recipe, Runtime, SessionSettings, Workload
from farm.contract.reasons import Reason
from farm.rules.cells import fills, identity, recipes, scenarios, threads
from farm.rules.cells.axes import OWN_AXES
from farm.rules.cells.session_sets import DEFAULT as DEFAULT_SESSION
from farm.rules.cells.session_sets import SessionSet
from farm.rules.cells.values import PrecisionChoice, ProviderChoice, format_value
from farm.rules.generation import decoders
from farm.rules.matrices.points import Point
from farm.rules.planning import refusals
from farm.rules.planning.first_refusals import FirstRefusals
from farm.rules.planning.parts import Part
from farm.rules.planning.plans import NodeOffer
from farm.rules.runtimes import engines, opsets, plugins, providers, releases
from farm.rules.runtimes.compatibility import Stamps
from farm.rules.runtimes.models import ModelFacts

# what decides each part of a cell
_PROGRAM_AXES = ("runtime", "provider", "precision", "opset", "hardware")
_SESSION_AXES = ("session", *(axis.name for axis in OWN_AXES if axis.part == "session"))
_WORKLOAD_AXES = ("batch", "shapes", *(axis.name for axis in OWN_AXES if axis.part == "workload"))
Digests = tuple[str, ...]


class Resolved(NamedTuple):
    """A point as a cell. `reason` is None when nothing stands against it; then `nodes` may take it (None: any).

    `name`: in the plan; `labels`: its values in words; `digests`: of its parts, equal where its spec's digest is;
    `is_hardware_declared`: the matrix itself says which hardware. `trial`: the node that first tries its provider.
    """

    name: str
    positions: Mapping[str, int]
    labels: dict[str, str]
    spec: CellSpec
    digests: Digests
    reason: Reason | None
    nodes: frozenset[str] | None = None
    is_hardware_declared: bool = False
    trial: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What all points of a plan share. `fleet` None: no fleet was asked, but one machine."""

    model: ModelFacts
    fleet: Sequence[NodeOffer] | None = None
    seed: int = 0
    known: releases.Known = releases.NOTHING_MORE
    machine: NodeOffer | None = None
    allowed: frozenset[str] = frozenset()
    # how inputs are to be made, by name
    inputs: Mapping[str, str] = field(default_factory=dict)
    # names that have a tolerance of their own and are outputs of no model
    unknown_outputs: Sequence[str] = ()
    # what releases beyond the table were seen to load
    learnt: opsets.Learnt = field(default_factory=dict)
    # nodes that measure nothing for this team, each with why, where its fleet is empty
    kept: Sequence[str] = ()


class Resolver:
    """Makes cells of the points of one matrix.

    A matrix of thousands of points has few different programs, sessions and workloads: each is made once, each rule is
    applied once to what it looks at, and each node is checked once.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._parts: dict[object, Part] = {}
        self._about: dict[Part, refusals.Circumstances] = {}
        self._able: dict[tuple[str, str, str], list[NodeOffer]] = {}
        self._takers: dict[tuple[object, ...], frozenset[str]] = {}
        self._no_node: dict[Part, Reason] = {}
        self._refusals = FirstRefusals()
        fleet = request.fleet or ()
        self._shared = refusals.Circumstances(
            model=request.model,
            own_providers=frozenset(name for node in fleet for name in node.providers),
            known_releases=frozenset(request.known.releases).union(*(node.versions for node in fleet)),
            yanked=request.known.yanked,
            silence=request.known.silence,
            allowed=request.allowed,
            cores=request.machine.cores if request.machine else None,
            asked_inputs=request.inputs,
            unknown_outputs=request.unknown_outputs,
            learnt=request.learnt,
            has_fleet=request.fleet is not None,
        )

    def resolve(self, point: Point, *, name: str) -> Resolved:
        """Return the cell of a point, with the first reason why it cannot run, or else the nodes that may take it."""
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
        reason = self._refusals.find(spec, self._make_circumstances(workload, point), (program, session, workload))
        trial = None
        if reason is None and self._request.fleet is not None and not nodes:
            entry = providers.provider_of(spec.provider)
            willing = (node for node in self._request.fleet if entry.name in node.may_try)
            trial = next((node.id for node in willing if can_measure(node.with_proven_provider(entry), spec)), None)
            nodes = nodes if trial is None else frozenset({trial})
            reason = None if trial is not None else self._explain_not_taken(spec, program)
        return Resolved(
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

    def _make_circumstances(self, workload: Part, point: Point) -> refusals.Circumstances:
        if (circumstances := self._about.get(workload)) is None:
            batch = point.values.get("batch")
            circumstances = self._about[workload] = replace(
                self._shared,
                asked_batch=batch if isinstance(batch, int) else None,
                asked_sizes=_as_mapping(point.values.get("shapes")),
            )
        return circumstances

    def _find_nodes(self, spec: CellSpec) -> frozenset[str]:
        """Find the nodes that can run the cell and have a core for each of its threads; none without a fleet."""
        cores = threads.needed_cores(spec)
        key = (spec.runtime.distribution, spec.provider, spec.hardware, cores)
        if (nodes := self._takers.get(key)) is None:
            able = (node for node in self._find_able_nodes(spec) if node.cores is None or cores <= node.cores)
            nodes = self._takers[key] = frozenset(node.id for node in able)
        return nodes

    def _find_able_nodes(self, spec: CellSpec) -> list[NodeOffer]:
        key = (spec.runtime.distribution, spec.provider, spec.hardware)
        if (able := self._able.get(key)) is None:
            able = self._able[key] = [node for node in self._request.fleet or () if _can_run(node, spec)]
        return able

    def _explain_not_taken(self, spec: CellSpec, program: Part) -> Reason:
        """Say why no node takes the cell: none can run it at all, or those that can have too few cores."""
        most = max((node.cores for node in self._find_able_nodes(spec) if node.cores is not None), default=None)
        if (too_few := threads.refusal(spec, cores=most)) is not None:
            return too_few
        if (reason := self._no_node.get(program)) is None:
            asked = self._request
            reason = self._no_node[program] = refusals.explain_no_node(spec, asked.fleet or (), asked.kept)
        return reason

    def _change_to_run(self, session: Part) -> Part:
        """Return the session with the call `run`, for a model whose inputs cannot be bound."""
        if (changed := self._parts.get((session, "run"))) is None:
            settings = session.fields["session"].model_copy(update={"call": "run"})
            changed = self._parts[session, "run"] = Part.from_fields({"session": settings}, session.words)
        return changed

    def _complete_program(self, program: Part, spec: CellSpec, nodes: frozenset[str]) -> Part:
        """Return the program with what its recipe left to the hardware, and with the data that ranges are read from."""
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


def can_measure(node: NodeOffer, spec: CellSpec) -> bool:
    return _can_run(node, spec) and (node.cores is None or threads.needed_cores(spec) <= node.cores)


def _can_run(node: NodeOffer, spec: CellSpec) -> bool:
    """Whether the node carries the hardware, has proven the provider and may install the distribution."""
    provider = providers.provider_of(spec.provider)
    is_proven = provider is providers.CPU or provider.name in node.providers
    is_allowed = not node.distributions or spec.runtime.distribution in node.distributions
    # a browser runs what is made for browsers and nothing else, and nothing else runs that
    return (
        is_proven
        and is_allowed
        and node.is_browser == engines.engine_of(spec.runtime).is_browser
        and refusals.has_hardware(node, spec.hardware)
    )


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
    usual = entry.simulated_tag if is_simulated else entry.tag_with(options)
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
        "hardware": str(values.get("hardware", usual)),
    }


def _choose_opset(point: Point, runtime: Runtime, request: Request) -> int | Literal["as-is", "max-of-runtime"]:
    """Choose the opset to convert to. A model is never converted to what it already is, nor down by `max-of-runtime`.

    As-is is the upload, byte by byte. Where an opset was asked for that the model already has, or that it may keep, and
    the upload does not load but does with its stamps in order (unused operator sets left out, the IR version as low as
    its operators need), a variant of the model's own opset is measured.
    """
    wanted, model = point.values.get("opset", "as-is"), request.model
    if wanted == "as-is" or (engines.engine_of(runtime).runs_program and wanted == "max-of-runtime"):
        return "as-is"
    if wanted == "max-of-runtime":
        newest = opsets.max_opset(plugins.core_of(runtime).version, request.learnt)
        wanted = "as-is" if newest is None or newest <= (model.opset or newest) else newest
    if isinstance(wanted, int) and wanted != model.opset:
        return wanted
    return model.opset if model.opset is not None and _is_loaded_only_tidied(runtime, request) else "as-is"


def _is_loaded_only_tidied(runtime: Runtime, request: Request) -> bool:
    stamps, version = Stamps.of(request.model), plugins.core_of(runtime).version
    as_is, tidied = (
        opsets.refusal(stamp.imports, stamp.ir_version, stamp.custom_domains, version, request.learnt)
        for stamp in (stamps, stamps.tidy())
    )
    return as_is is not None and tidied is None


def _make_workload(point: Point, request: Request) -> dict[str, Any]:
    """Make the workload. Its batch is the one asked for, else that of the given inputs, else the model's own, else 1.

    Other first dimensions of a model with a batch follow the one asked for; what nobody sized has the size that
    inspection chose.
    """
    values, model = point.values, request.model
    chosen = {name: size for name, size in model.sizes.items() if name != model.batch}
    asked = {str(name): int(size) for name, size in _as_mapping(values.get("shapes")).items()}
    batch = values.get("batch")
    if isinstance(batch, int) and isinstance(model.batch, str) and model.inputs_sha256 is None:
        firsts = {port.shape[0] for port in model.inputs if port.shape}
        chosen |= {name: batch for name in chosen if name in firsts}
    shapes = chosen | asked
    if batch is None and isinstance(model.batch, str) and shapes.get(model.batch):
        batch = shapes.pop(model.batch)
    if model.is_grouped and isinstance(batch, int) and batch > 1 and model.inputs_sha256 is None:
        stepped = decoders.single_token_sizes(model.inputs, chosen)
        shapes |= {} if stepped.keys() & asked.keys() else stepped
    if batch is None and model.batch is not None:
        batch = model.inputs_batch or (model.batch if isinstance(model.batch, int) else 1)
    filled = {port.name: port.fill for port in model.inputs if port.fill != fills.default_fill(port.dtype)}
    fields = {
        "batch": batch if isinstance(batch, int) else None,
        "shapes": shapes,
        "seed": request.seed,
        "inputs_sha256": model.inputs_sha256,
        "inputs": dict(sorted({**filled, **request.inputs}.items())) if model.inputs_sha256 is None else {},
    }
    return {
        "workload": Workload.model_validate(
            fields | scenarios.workload_fields(identity.part_fields(values, "workload"))
        )
    }


def _as_mapping(value: object) -> Mapping[str, int]:
    return value if isinstance(value, Mapping) else {}


def _make_session(point: Point, _: Request) -> dict[str, Any]:
    chosen = point.values.get("session", DEFAULT_SESSION)
    assert isinstance(chosen, SessionSet)
    settings = chosen.session_fields() | identity.part_fields(point.values, "session")
    return {"session": SessionSettings.model_validate(settings)}
