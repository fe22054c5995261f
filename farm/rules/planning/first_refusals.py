"""Finds the first reason why a cell of a plan cannot run."""

from collections.abc import Callable
from operator import itemgetter

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason
from farm.rules.cells import threads
from farm.rules.planning import compiled, refusals, workload_refusals
from farm.rules.planning.parts import PROGRAM, SESSION, WORKLOAD, Part
from farm.rules.planning.refusals import RuleContext

Rule = Callable[[CellSpec, RuleContext], Reason | None]
# the rules, the most helpful reason for a user first, each with the parts of a cell that it reads
RULES: tuple[tuple[Rule, tuple[int, ...]], ...] = (
    (refusals.refuse_unlisted_package, (PROGRAM,)),
    (refusals.refuse_unknown_runtime, (PROGRAM,)),
    (refusals.refuse_missing_provider, (PROGRAM,)),
    (refusals.refuse_outside_browsers, (PROGRAM,)),
    (refusals.refuse_by_engine, (PROGRAM, SESSION, WORKLOAD)),
    (compiled.refuse_compiled, (PROGRAM,)),
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
# for each combination of parts: the rules that read them, each with its rank in RULES, and a getter of these parts
_GROUPS = [
    ([(rank, rule) for rank, (rule, rule_parts) in enumerate(RULES) if rule_parts == parts], itemgetter(*parts))
    for parts in dict.fromkeys(rule_parts for _, rule_parts in RULES)
]
_RankedReason = tuple[int, Reason]


class FirstRefusals:
    """Finds the first refusal of each cell; a rule is evaluated once for cells that share the parts it reads."""

    def __init__(self) -> None:
        self._refusals: dict[object, _RankedReason | None] = {}

    def find(self, spec: CellSpec, context: RuleContext, parts: tuple[Part, Part, Part]) -> Reason | None:
        """Return the first reason, in the order of RULES, why the cell cannot run; None where it can.

        `parts` are the cell's program, session and workload, in this order. Cell and context are not looked at where
        rules were evaluated for the same parts before.
        """
        found: list[_RankedReason] = []
        for rules, pick_parts in _GROUPS:
            key = pick_parts(parts)
            if key not in self._refusals:
                reasons = ((rank, rule(spec, context)) for rank, rule in rules)
                self._refusals[key] = next(((rank, reason) for rank, reason in reasons if reason is not None), None)
            refusal = self._refusals[key]
            if refusal is not None:
                found.append(refusal)
        return min(found, key=itemgetter(0))[1] if found else None
