"""The first reason that stands against each cell of a plan. Pure."""

from operator import itemgetter

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason
from farm.rules.planning.parts import Part
from farm.rules.planning.refusals import RULES, Circumstances

# rules that look at the same parts, each with its place among all, and what takes these parts from all of a cell's
_GROUPS = [
    ([(place, rule) for place, (rule, looks_at) in enumerate(RULES) if looks_at == parts], itemgetter(*parts))
    for parts in dict.fromkeys(looks_at for _, looks_at in RULES)
]
_Found = tuple[int, Reason] | None


class FirstRefusals:
    """Finds the first refusal of each cell; a rule is evaluated once for cells that share the parts it looks at."""

    def __init__(self) -> None:
        self._found: dict[object, _Found] = {}

    def find(self, spec: CellSpec, circumstances: Circumstances, parts: tuple[Part, Part, Part]) -> Reason | None:
        """Return the first reason, in the order of RULES, why the cell cannot run; None where nothing stands against
        it.

        `parts` are the cell's program, session and workload, in this order.
        """
        earliest: _Found = None
        for rules, take in _GROUPS:
            key = take(parts)
            try:
                refusal = self._found[key]
            except KeyError:
                reasons = ((place, rule(spec, circumstances)) for place, rule in rules)
                refusal = self._found[key] = next(((place, why) for place, why in reasons if why is not None), None)
            if refusal is not None and (earliest is None or refusal[0] < earliest[0]):
                earliest = refusal
        return None if earliest is None else earliest[1]
