"""The table of kinds of change that somebody must look at, the most serious first.

Watches judge by them, gates and rules name them, and lists filter and sort by them. Packages may add entries.
"""

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from farm.base.entry_points import Group, raise_first_problem
from farm.rules.cells.metric import Judging
from farm.rules.cells.metrics import ALERTING
from farm.rules.findings import checks
from farm.rules.findings.cell_pairs import Pair, series_label
from farm.rules.findings.kind import Change, Compare, Kind, Limit
from farm.rules.wording.numbers import Words
from farm.rules.wording.vocabulary import ELSEWHERE, STATES, VERDICTS, WRONG, Sign, sign_of

logger = logging.getLogger(__name__)

SIZES: Words = ("bigger", "smaller")
OWN = (
    Kind(
        "parity",
        STATES[WRONG],
        "outputs that stop matching the reference, or match it worse",
        compare=checks.find_parity_changes,
        is_noisy=False,
    ),
    Kind(
        "accuracy",
        Sign("▼", "less accurate", "bad"),
        "a new version that is less accurate than the one before on the same labelled data",
        compare=checks.find_accuracy_changes,
        is_noisy=False,
    ),
    Kind(
        "failed",
        Sign("✕", "fails", "bad"),
        "a cell that worked and now fails or is refused",
        compare=checks.find_outcome_changes,
        is_of_endings=True,
    ),
    Kind(
        "slower",
        VERDICTS["slower"],
        "latency more than {limit} slower",
        compare=checks.find_latency_changes,
        limit="latency",
        is_headline=True,
        has_work_around=True,
    ),
    Kind(
        "call",
        Sign("▲", "slower by the other call", "slower"),
        "latency by the other call of short inferences more than {limit} slower",
        limit="latency",
    ),
    Kind(
        "placement",
        STATES[ELSEWHERE],
        "an operator that moved to another provider, more copies, a lost fusion",
        compare=checks.find_placement_changes,
        is_noisy=False,
    ),
    Kind(
        "ttft",
        Sign("▲", "slower first token", "slower"),
        "the first token more than {limit} later",
        limit="latency",
    ),
    Kind(
        "session", Sign("▲", "slower to load", "slower"), "session creation more than {limit} slower", limit="session"
    ),
    Kind(
        "first",
        Sign("▲", "slower first inference", "slower"),
        "the first inference more than {limit} slower",
        limit="first",
    ),
    Kind(
        "memory",
        Sign("▲", "more memory", "slower"),
        "peak memory more than {limit} larger",
        limit="memory",
        words=SIZES,
    ),
    Kind(
        "growth",
        Sign("▲", "growing memory", "slower"),
        "memory that grows more from inference to inference",
        words=SIZES,
    ),
)
# the most characters of a package's `alerts_on`, and the tones that its title may have
MAX_WORDS = 200
TONES = ("bad", "slower", "warn")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,31}")
# checks of a gate that are no kinds of change: verdicts on metrics, and what was not decided or judged
_GATE_CHECKS = ("bigger", "lower", "unjudged", "undecided")


def _accept_entry(entry: Kind, accepted: Sequence[Kind]) -> Kind:
    taken_keys = [*_GATE_CHECKS, *(other.key for other in (*OWN, *accepted))]
    raise_first_problem(_list_problems(entry, taken_keys=taken_keys))
    return entry if entry.compare is None else replace(entry, compare=_guard_compare(entry.key, entry.compare))


def _guard_compare(key: str, compare: Compare) -> Compare:
    """Wrap a package's function: where it raises or returns anything but changes, the kind is undecided."""

    def guarded(pair: Pair, allowed: float) -> list[Change]:
        try:
            return [replace(change, text=str(change.text)) for change in compare(pair, allowed)]
        except Exception as error:
            logger.exception("the kind of change %r broke", key)
            cause = f"{type(error).__name__}: {error}"[:200]
            return [Change("undecided", f"{series_label(pair.new)}: “{key}” could not be compared ({cause}).")]

    return guarded


def _list_problems(entry: Kind, *, taken_keys: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each problem of a package's kind; its fields may have any type."""
    if not isinstance(entry.key, str) or not _KEY.fullmatch(entry.key):
        yield f"key has {entry.key!r:.80}: write small letters, digits and _, 32 at most."
    elif entry.key in taken_keys:
        yield f"{entry.key!r} is taken."
    elif entry.compare is None and entry.key not in (judging.alerts_as for judging in ALERTING.values()):
        yield "compare is missing, and no metric alerts as it."
    title: object = entry.title
    if not isinstance(title, Sign) or not (title.mark and title.word and title.tone in TONES):
        yield f"title has {title!r:.80}: write a Sign of a mark, a word and a tone of {', '.join(TONES)}."
    words: object = entry.alerts_on
    if not isinstance(words, str) or not 0 < len(words) <= MAX_WORDS or set("{}") & set(words.replace("{limit}", "")):
        yield f"alerts_on has {words!r:.80}: write a few words, with no braces but those of {{limit}}."
    own_keys = [kind.key for kind in OWN]
    choices = (("before", entry.before, ["", *own_keys]), ("limit", entry.limit, [None, *get_args(Limit)]))
    yield from (
        f"{name} has {value!r:.80}, which is not one of them." for name, value, valid in choices if value not in valid
    )
    compare: object = entry.compare
    if compare is not None and not callable(compare):
        yield f"compare has {compare!r:.80}: write a function."


# the entry points by which packages add kinds, and the kinds of the packages that are installed
GROUP = Group("onnxfarm.changes", Kind, "kind of change", _accept_entry)
OUTSIDE = GROUP.load_installed()


def sort_kinds(entries: Sequence[Kind]) -> Iterator[Kind]:
    """Yield the built-in kinds, with the `entries` of packages in the places that their `before` asks for."""
    for own in OWN:
        yield from (entry for entry in entries if entry.before == own.key)
        yield own
    yield from (entry for entry in entries if not entry.before)


def warn_of_unknown_kinds(alerting: Mapping[str, Judging], keys: Collection[str]) -> None:
    """Log a warning for each metric that alerts as an unknown kind."""
    for metric, judging in alerting.items():
        if judging.alerts_as not in keys:
            logger.warning("The metric %r alerts nobody: %r is not a kind of change.", metric, judging.alerts_as)


KINDS: Mapping[str, Kind] = {kind.key: kind for kind in sort_kinds(OUTSIDE.entries)}
KEYS = tuple(KINDS)
warn_of_unknown_kinds(ALERTING, KEYS)
# kinds that packages add, and whose changes a function of the package finds
COMPARED_OUTSIDE = tuple(kind for kind in OUTSIDE.entries if kind.compare is not None)
CHECKS = (
    *("slower", "bigger", "lower", "parity", "placement", "failed", "unjudged", "undecided"),
    *(kind.key for kind in COMPARED_OUTSIDE),
)
# checks that a fresh block has to show again; the others are proven by the graph, the outputs or a repeat
NOISY_CHECKS = frozenset({"lower", *(key for key, kind in KINDS.items() if kind.is_noisy and key in CHECKS)})
# Type checkers see plain text, since packages add keys. At run time, pydantic accepts only the keys that exist.
if TYPE_CHECKING:
    Key: TypeAlias = str
    Check: TypeAlias = str
else:
    Key, Check = Literal[KEYS], Literal[CHECKS]


def kind_of(key: str) -> Kind:
    """Return the entry of a kind; where its package is not installed, make one whose title is the key."""
    return KINDS.get(key) or Kind(key, sign_of(key), "")


def rank(key: str) -> int:
    """Return the position of a kind in the table, 0 for the most serious; unknown kinds come last."""
    return KEYS.index(key) if key in KINDS else len(KEYS)
