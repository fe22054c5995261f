"""Finds the way out of a refusal: the first change of the matrix that lets the point run, by the code of the reason."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from farm.contract.cells import CellSpec, Runtime
from farm.contract.reasons import ReasonCode, TrialAsked, WayOut
from farm.rules.cells.axes import MATRIX_AXES
from farm.rules.cells.commands import matrix_command
from farm.rules.cells.readers import read_runtime
from farm.rules.cells.values import ProviderChoice, Value, format_value, to_plain
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import Point
from farm.rules.matrices.settings import Settings
from farm.rules.planning.nodes import can_measure, has_hardware
from farm.rules.planning.resolution import Request, ResolvedPoint, Resolver
from farm.rules.runtimes import opsets, plugins, providers, releases
from farm.rules.wording import titles

# an axis, and the value that the refused point gets there; None leaves the axis out
Change = tuple[str, Value | None]
Changes = Callable[[CellSpec, Request], Iterator[Change]]

# ways out are searched for at most this many different reasons; nobody would read more
MAX_REASONS = 32
# how many other nodes are tried by name if the named one cannot take the cell
MAX_NODES = 8


def _take_newest(spec: CellSpec, request: Request) -> Iterator[Change]:
    newest = releases.newest_release(spec.runtime, extra=request.known.releases, yanked=request.known.yanked)
    if newest is not None:
        yield "runtime", newest


def _take_nearest(spec: CellSpec, request: Request) -> Iterator[Change]:
    nearest = releases.nearest_release(spec.runtime, extra=request.known.releases, yanked=request.known.yanked)
    if nearest is not None:
        yield "runtime", nearest


def _take_opset(spec: CellSpec, request: Request) -> Iterator[Change]:
    """Take the newest opset that the release loads, or the model's own, whose stamps are then put in order."""
    newest = opsets.max_opset(plugins.core_of(spec.runtime).version, request.observed)
    own = request.model.opset
    if newest is not None and own is not None:
        yield "opset", min(newest, own)


def _take_package(spec: CellSpec, _: Request) -> Iterator[Change]:
    entry = providers.provider_of(spec.provider)
    if entry.probe_with:
        yield "runtime", read_runtime(entry.probe_with, allowed=entry.packages)


def _take_cpu(spec: CellSpec, _: Request) -> Iterator[Change]:
    yield "provider", ProviderChoice(providers.CPU.name)


def _take_compiler(_: CellSpec, request: Request) -> Iterator[Change]:
    for name in request.model.compiled.by if request.model.compiled is not None else ():
        yield "provider", ProviderChoice(providers.provider_of(name).name)


def _take_hardware(spec: CellSpec, request: Request) -> Iterator[Change]:
    """Leave the hardware to the provider, or name another node."""
    yield "hardware", None
    for node in list(request.fleet or ())[:MAX_NODES]:
        if node.name and not has_hardware(node, spec.hardware):
            yield "hardware", f"node:{node.name}"


def _take_cores(spec: CellSpec, request: Request) -> Iterator[Change]:
    """Take as many threads as the largest node has cores, where the cell asks for more."""
    cores = max((node.cores or 0 for node in request.fleet or ()), default=0)
    if 0 < cores < spec.session.threads:
        yield "threads", cores


def _leave_out(*axes: str) -> Changes:
    def changes(_: CellSpec, __: Request) -> Iterator[Change]:
        yield from ((axis, None) for axis in axes)

    return changes


# the axes that may be left out while the cell keeps its provider and its release
_SETTINGS = tuple(axis for axis in MATRIX_AXES if axis not in ("runtime", "provider", "hardware"))
WAYS: Mapping[ReasonCode, tuple[Changes, ...]] = {
    ReasonCode.OPSET_TOO_NEW: (_take_newest, _take_opset),
    ReasonCode.IR_TOO_NEW: (_take_newest, _take_opset),
    ReasonCode.UNKNOWN_RUNTIME: (_take_nearest,),
    ReasonCode.PROVIDER_NOT_IN_BUILD: (_take_package, _take_cpu),
    ReasonCode.NO_NODE: (_take_hardware, _take_cpu),
    ReasonCode.FIXED_BATCH: (_leave_out("batch"),),
    ReasonCode.NO_BATCH: (_leave_out("batch"),),
    ReasonCode.VARIANT_IMPOSSIBLE: (_leave_out("precision", "opset"),),
    ReasonCode.MODEL_NOT_LOADED: (_take_compiler, _leave_out("precision", "opset"), _take_newest),
    ReasonCode.NOT_SUPPORTED: (_take_cores, _leave_out(*_SETTINGS), _take_newest, _take_cpu),
}


class WayOutFinder:
    """Finds ways out for the refused points of one matrix; equal reasons of a model are looked up once.

    `measured` are the cells of all other points, each with its point.
    """

    def __init__(self, matrix: Matrix, measured: Sequence[tuple[ResolvedPoint, Point]]) -> None:
        self._matrix = matrix
        self._cells = measured
        self._measured = {_make_identity(cell) for cell, _ in measured}
        self._ways: dict[tuple[str, str], WayOut | None] = {}

    def find(self, cell: ResolvedPoint, point: Point, request: Request) -> WayOut | None:
        """Return the request to the owner of a node, or else the first change of the matrix that lets the point run.

        Owners are asked only where no node takes the cell. A matrix with `include` is not changed, and a change to a
        point that is measured already does not count. None if nothing helps, or once MAX_REASONS different reasons were
        searched.
        """
        assert cell.reason is not None
        key = (cell.reason.text, request.model.bundle_sha256)
        if key not in self._ways and len(self._ways) < MAX_REASONS:
            self._ways[key] = self._find_first(cell, point, request)
        return self._ways.get(key)

    def _find_first(self, cell: ResolvedPoint, point: Point, request: Request) -> WayOut | None:
        if (ask := _propose_asking_owner(cell, request)) is not None:
            return ask
        # values of axes do not apply to the points of `include`
        assert cell.reason is not None
        ways = () if self._matrix.include else WAYS.get(cell.reason.code, ())
        is_unknown = cell.reason.code == ReasonCode.UNKNOWN_RUNTIME
        for axis, value in (change for changes in ways for change in changes(cell.spec, request)):
            changed = _change_point(point, axis, value)
            if changed is None:
                continue
            resolved = Resolver(request).resolve(changed, name=cell.name)
            is_measured = _make_identity(resolved) in self._measured or (
                axis == "runtime" and not is_unknown and self._has_release_for(resolved, changed)
            )
            if resolved.reason is None and not is_measured:
                way = self._describe_change(axis, value, point.values.get(axis), before=cell.spec, after=resolved.spec)
                return way.model_copy(update={"command": self._make_command(way, resolved.spec, request)})
        return None

    def _has_release_for(self, resolved: ResolvedPoint, point: Point) -> bool:
        key = _key_without_release(resolved, point)
        return any(_key_without_release(cell, other) == key for cell, other in self._cells)

    def _make_command(self, way: WayOut, spec: CellSpec, request: Request) -> str:
        """Write the command of the whole matrix with the change, for a farm or for this machine."""
        model, is_here = request.model, request.fleet is None
        has_calibration = model.calibration_sha256 is not None
        changed, defaults = _change_matrix(self._matrix, way), Settings().as_plain()
        plain = changed.pop("matrix") | {key: value for key, value in changed.items() if value != defaults.get(key)}
        packages = self._matrix.allowed if is_here else None
        return matrix_command(plain, spec, model.main, packages=packages, has_calibration=has_calibration)

    def _describe_change(
        self, axis: str, value: Value | None, old: Value | None, *, before: CellSpec, after: CellSpec
    ) -> WayOut:
        """Describe the change: it replaces the old value, unless points that run use that value too."""
        read_value, declared = MATRIX_AXES[axis].value_in, self._matrix.axes.get(axis, ())
        is_in_use = any(point.values.get(axis) == old for _, point in self._cells)
        value = read_value(after) if value is None and is_in_use else value
        values: list[Value | None] = []
        if value is None:
            label = f"Leave {axis} out"
        elif is_in_use:
            label = f"Add {_name_value(axis, value)} to this matrix"
            values = [*(declared or [read_value(before)]), value]
        else:
            label = f"Take {_name_value(axis, value)}" + (
                f" in place of {_name_value(axis, old)}" if old is not None else ""
            )
            values = [*(other for other in declared if other != old), value]
        return WayOut(
            label=label,
            axis=axis,
            values=tuple(to_plain(item) for item in values if item is not None),
        )


def apply_way_out(matrix: Matrix, way: WayOut) -> Matrix:
    """Return the matrix with the change of the way out. Raises MatrixProblem where the changed matrix is invalid."""
    return matrices.parse(_change_matrix(matrix, way), allowed=matrix.allowed)


def _change_matrix(matrix: Matrix, way: WayOut) -> dict[str, Any]:
    """Return the plain matrix with the change, without rules that exclude a value which it no longer has."""
    plain: dict[str, Any] = matrix.as_plain()
    declared = plain["matrix"]
    declared.pop(way.axis, None)
    if way.values:
        declared[way.axis] = list(way.values)
    if "exclude" in declared:
        declared["exclude"] = [rule for rule in declared["exclude"] if rule.get(way.axis) in (None, *way.values)]
    return plain


def _propose_asking_owner(cell: ResolvedPoint, request: Request) -> WayOut | None:
    """Propose to ask the owner of a node that would take the cell, had it proven its provider."""
    spec, entry = cell.spec, providers.provider_of(cell.spec.provider)
    if cell.reason is None or cell.reason.code != ReasonCode.NO_NODE:
        return None
    able = (node for node in request.fleet or () if entry.name in node.may_be_asked)
    node = next((node for node in able if can_measure(node.with_proven_provider(entry), spec)), None)
    if node is None:
        return None
    return WayOut(
        label=f"Ask the owner of {node.name} to try {titles.provider(entry.name)}",
        command=shlex.join(["onnxfarm", "node", "try", node.name, entry.short]),
        ask=TrialAsked(node=int(node.id), provider=entry.short),
    )


def _make_identity(cell: ResolvedPoint) -> tuple[str, ...]:
    return (cell.spec.artifact_sha256, *cell.digests[:3])


def _key_without_release(cell: ResolvedPoint, point: Point) -> tuple[str, str, dict[str, Value]]:
    others = {axis: value for axis, value in point.values.items() if axis != "runtime"}
    return cell.spec.artifact_sha256, cell.spec.runtime.distribution, others


def _change_point(point: Point, axis: str, value: Value | None) -> Point | None:
    """Return the point with another value on an axis; None where it has this one already."""
    if point.values.get(axis) == value:
        return None
    values = {name: old_value for name, old_value in point.values.items() if name != axis}
    values |= {} if value is None else {axis: value}
    return Point(values, {name: place for name, place in point.positions.items() if name in values} | {axis: -1})


def _name_value(axis: str, value: Value) -> str:
    match value:
        case Runtime():
            return titles.runtime(value)
        case ProviderChoice():
            return titles.provider(value.name)
        case _:
            return f"{axis} {format_value(value)}"
