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
    """Asks each rule once for the parts that it looks at, however many cells have them."""

    def __init__(self) -> None:
        self._found: dict[object, _Found] = {}

    def of(self, spec: CellSpec, about: Circumstances, parts: tuple[Part, Part, Part]) -> Reason | None:
        """Of the cell with these parts: its program, session and workload."""
        earliest: _Found = None
        for rules, take in _GROUPS:
            key = take(parts)
            try:
                found = self._found[key]
            except KeyError:
                reasons = ((place, rule(spec, about)) for place, rule in rules)
                found = self._found[key] = next(((place, why) for place, why in reasons if why is not None), None)
            if found is not None and (earliest is None or found[0] < earliest[0]):
                earliest = found
        return None if earliest is None else earliest[1]
