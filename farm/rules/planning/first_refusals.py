"""Finds the first reason that stands against each cell of a plan."""

from collections.abc import Callable
from operator import itemgetter

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason
from farm.rules.cells import threads
from farm.rules.planning import compiled, refusals, workload_refusals
from farm.rules.planning.parts import PROGRAM, SESSION, WORKLOAD, Part
from farm.rules.planning.refusals import RuleContext

Rule = Callable[[CellSpec, RuleContext], Reason | None]
# the rules in the order in which a person would want to know, each with the parts of a cell that it looks at
RULES: tuple[tuple[Rule, tuple[int, ...]], ...] = (
    (refusals.refuse_unlisted_package, (PROGRAM,)),
    (refusals.refuse_unknown_runtime, (PROGRAM,)),
    (refusals.refuse_missing_provider, (PROGRAM,)),
    (refusals.refuse_outside_browsers, (PROGRAM,)),
    (refusals.refuse_by_engine, (PROGRAM, SESSION, WORKLOAD)),
    (lambda spec, context: compiled.refusal(spec, context.model), (PROGRAM,)),
    (refusals.refuse_policy, (PROGRAM, SESSION)),
    (refusals.refuse_memory_limit, (PROGRAM, SESSION)),
    (refusals.refuse_call, (PROGRAM, SESSION, WORKLOAD)),
    (refusals.refuse_webgpu, (PROGRAM, SESSION)),
    (refusals.refuse_unloadable, (PROGRAM,)),
    (refusals.refuse_conversion, (PROGRAM,)),
    (refusals.refuse_variant, (PROGRAM,)),
    (refusals.refuse_int4, (PROGRAM,)),
    (refusals.refuse_simulation, (PROGRAM,)),
    (refusals.refuse_pinning, (SESSION,)),
    (lambda spec, context: threads.refusal(spec, cores=context.cores), (PROGRAM, SESSION, WORKLOAD)),
    (workload_refusals.refuse_batch, (WORKLOAD,)),
    (workload_refusals.refuse_shapes, (WORKLOAD,)),
    (workload_refusals.refuse_inputs, (WORKLOAD,)),
    (workload_refusals.refuse_tolerances, (WORKLOAD,)),
    (workload_refusals.refuse_by_scenario, (PROGRAM, WORKLOAD)),
    (workload_refusals.refuse_without_inputs, (WORKLOAD,)),
)
# rules that look at the same parts, each with its place in RULES, and what picks these parts of a cell
_GROUPS = [
    ([(place, rule) for place, (rule, looked_at) in enumerate(RULES) if looked_at == parts], itemgetter(*parts))
    for parts in dict.fromkeys(looked_at for _, looked_at in RULES)
]
_PlacedReason = tuple[int, Reason]


class FirstRefusals:
    """Finds the first refusal of each cell; a rule is evaluated once for cells that share the parts it looks at."""

    def __init__(self) -> None:
        self._refusals: dict[object, _PlacedReason | None] = {}

    def find(self, spec: CellSpec, context: RuleContext, parts: tuple[Part, Part, Part]) -> Reason | None:
        """Return the first reason, in the order of RULES, why the cell cannot run; None where it can.

        `parts` are the cell's program, session and workload, in this order.
        """
        first: _PlacedReason | None = None
        for rules, pick_parts in _GROUPS:
            key = pick_parts(parts)
            if key not in self._refusals:
                reasons = ((place, rule(spec, context)) for place, rule in rules)
                self._refusals[key] = next(((place, reason) for place, reason in reasons if reason is not None), None)
            refusal = self._refusals[key]
            if refusal is not None and (first is None or refusal[0] < first[0]):
                first = refusal
        return None if first is None else first[1]
