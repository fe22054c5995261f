"""Suggested comparisons: pairs of measured cells that differ in one setting, each with a link that compares them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from urllib.parse import urlencode

from django.urls import reverse

from farm.base.grouping import group_by
from farm.contract.cells import Runtime
from farm.rules.cells.axes import runtime_sort_key
from farm.rules.wording import numbers, titles
from farm.runs.selectors.cells import MeasuredCell

# the setting that differs, with the heading of its pairs; two versions of a model do not count as two models
KINDS = {"runtime": "Two releases", "node": "Two machines", "model": "Two models"}
# the settings in which two cells of a run may differ, the most interesting first
OF_A_RUN = ("runtime", "provider", "precision", "threads", "batch")
MAX_PAIRS = 4


@dataclass(frozen=True)
class Pair:
    """A suggested comparison. `name`: the two values that differ, the base first; `where`: the settings that both cells
    share; `href`: the page that compares them."""

    name: str
    where: str
    href: str


def list_pairs(cells: Sequence[MeasuredCell]) -> dict[str, list[Pair]]:
    """List pairs of cells that differ in one setting, by heading: at most MAX_PAIRS under each, the newest first. The
    first heading, `Recent runs`, has one pair of each run, which is not repeated below another heading; the others are
    the values of KINDS. Below KINDS, of pairs with equal name and place only the newest is kept. Headings without pairs
    are left out. `cells`: the cells of the newest run must come first."""
    recent = []
    for of_run in group_by(cells, lambda cell: cell.run_id).values():
        # a run suggests only its first pair, that with the most interesting difference
        recent += list(islice((pair for name in OF_A_RUN for pair in _list_pairs_along(of_run, name)), 1))
    found = {"Recent runs": recent[:MAX_PAIRS]}
    for name, title in KINDS.items():
        # of pairs with the same names only the newest is kept
        by_name: dict[tuple[str, str], Pair] = {}
        for pair in _list_pairs_along(cells, name):
            by_name.setdefault((pair.name, pair.where), pair)
        found[title] = [pair for pair in by_name.values() if pair not in found["Recent runs"]][:MAX_PAIRS]
    return {title: pairs for title, pairs in found.items() if pairs}


def _list_pairs_along(cells: Sequence[MeasuredCell], name: str) -> Iterator[Pair]:
    """List a pair for each group of cells that are equal except in `name`: the two newest, the older release or run
    first. Two runtimes make a pair only where they are releases of the same distribution."""
    alike: dict[tuple[object, ...], dict[object, MeasuredCell]] = {}
    own = {"run_id", "name", name, *(["version"] if name == "model" else [])}
    for cell in cells:
        known = asdict(cell)
        rest = (Runtime.of(cell.runtime).distribution, *(known[key] for key in sorted(known.keys() - own)))
        alike.setdefault(rest, {}).setdefault(known[name], cell)
    for found in alike.values():
        if len(found) > 1:
            base, other = sorted(list(found.values())[:2], key=lambda cell: cell.run_id)
            if name == "runtime":
                base, other = sorted((base, other), key=lambda cell: runtime_sort_key(Runtime.of(cell.runtime)))
            yield _make_pair(base, other, name)


def _make_pair(base: MeasuredCell, other: MeasuredCell, name: str) -> Pair:
    first, second = (_format_value(cell, name) for cell in (base, other))
    known = ("model", "runtime", "provider", "precision", "opset", "batch", "threads", "node")
    alike = [_format_value(base, key) for key in known if key != name and getattr(base, key) not in (None, "")]
    where = ", ".join([*alike, *([f"run {base.run_id}"] if base.run_id == other.run_id else [])])
    keys = [("cells", f"{cell.run_id}:{cell.name}") for cell in (base, other)]
    return Pair(f"{first} → {second}", where, f"{reverse('dashboard:compare')}?{urlencode(keys, safe=':')}")


def _format_value(cell: MeasuredCell, name: str) -> str:
    value = getattr(cell, name)
    if name == "runtime":
        return titles.runtime(Runtime.of(value))
    if name == "provider":
        return titles.provider(value)
    if name == "threads":
        return numbers.counted(value, "thread")
    return f"{name} {value}" if name in ("batch", "opset") else str(value)
