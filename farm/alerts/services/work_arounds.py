"""What undoes it, as a search over session options: names of optimizers are read off the runtime beside the farm."""

import functools
import logging
import mmap
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from farm.alerts.models import Investigation
from farm.alerts.services import measurements
from farm.alerts.services.measurements import CannotMeasure
from farm.contract.document_comparisons import Comparison
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import Point
from farm.rules.matrices.subsets import point_at
from farm.rules.planning import blocks, estimates
from farm.rules.searches import switches
from farm.rules.searches.work_around import WorkAround
from farm.runs import selectors as runs

log = logging.getLogger(__name__)

# both releases and an A/A twin stand beside the candidates
OTHER_ARMS = 3
MAX_WORDS = 12


def search_of(one: Investigation) -> WorkAround:
    """The search before its first step."""
    watch = one.alert.watch
    old, new = watch.runtime(one.alert.good), watch.runtime(one.alert.bad)
    return WorkAround(lambda: _place(one), old=old, new=new, names=lambda: _names(one))


def _place(one: Investigation) -> tuple[Matrix, Point, int]:
    """The matrix of the run that showed the change; the cell's point, on its node; how many candidates fit a block."""
    run = measurements.run_of(one)
    matrix = measurements.parsed(run)
    try:
        point = point_at(matrix, measurements.positions_of(run, [one.symptom.cell])[0])
    except LookupError:
        raise CannotMeasure(f"The run {run.pk} has no cell {one.symptom.cell} any more.") from None
    arm_s = estimates.arm_seconds(matrix.budget, runs.cell_document(run, one.symptom.cell).p50_ms)
    room = max(1, min(switches.MOST_CANDIDATES, blocks.capacity_for(arm_s, most=16) - OTHER_ARMS))
    return matrix, replace(point, values={**point.values, "hardware": f"node:{one.symptom.node}"}), room


def _names(one: Investigation) -> list[str]:
    """Names that were given, then those of the library, by the operator types that changed most."""
    kept = one.symptom.comparison
    operators = Comparison.model_validate(kept).operators if kept is not None else []
    changed = sorted(operators, key=lambda change: -abs(change.candidate_us - change.baseline_us))
    words = list(dict.fromkeys(change.op_type for change in changed))[:MAX_WORDS]
    given = (one.asked or {}).get("given", [])
    return list(dict.fromkeys([*given, *switches.ranked(library_names(), words=words)]))


@functools.cache
def library_names() -> tuple[str, ...]:
    """Names read off the ONNX Runtime that is installed beside the farm; none where there is no such library."""
    spec = find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return ()
    found = sorted((Path(spec.origin).parent / "capi").glob("onnxruntime_pybind11_state*"))
    for path in found:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
            names = switches.optimizer_names(library)
        log.info("%s holds %s names of optimizers", path.name, len(names))
        return tuple(names)
    return ()
