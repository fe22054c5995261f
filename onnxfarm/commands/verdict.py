"""`onnxfarm verdict FILE.json`: judges samples that anyone measured, by the rules that alerts use.

The file, `onnxfarm.verdict/1` (the key `schema` may be left out), is one of

    {"pairs": [[old, new], …]}               each pair has a process launch of each arm; pairs are in time order
    {"old": […], "new": […]}                 as many launches of each arm, not measured side by side
    {"comparisons": [one of the above, …]}   many comparisons in one call

All samples have the same unit, whichever it is. The answer has the same form. In a list, `holds_across` says whether a
verdict `slower` or `faster` still holds after the correction by Benjamini and Hochberg over the whole list. The list
should have the comparisons of a single matrix.
"""

import dataclasses
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from farm.rules.comparing import comparisons
from farm.rules.comparing.comparisons import MARGIN, Comparison
from onnxfarm import documents
from onnxfarm.commands.options import JsonOption
from onnxfarm.documents import parse_samples, read_object
from onnxfarm.problems import Usage, exit_with_problem, require_extra

SCHEMA = "onnxfarm.verdict/1"
BENCH_SCHEMAS = "onnxfarm.bench/"
MIN_LAUNCHES = 2


class Pairs(NamedTuple):
    """Samples that were measured side by side: [old, new] of each round."""

    rounds: list[list[float]]


class Arms(NamedTuple):
    """Samples of each arm that were not measured side by side."""

    old: list[float]
    new: list[float]


@exit_with_problem()
def verdict(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="Pairs, or old and new samples.")],
    margin: Annotated[float, typer.Option(help="Changes up to this fraction count as equal.")] = MARGIN,
    as_json: JsonOption = False,
) -> None:
    """Say whether new is slower, faster or equal, and how far that can be trusted."""
    document = _check_document(read_object(file), path=file)
    if "comparisons" not in document:
        comparison = judge([parse_entry(document, where=str(file))], margin=margin)[0]
        _print_answer(dataclasses.asdict(comparison), [comparisons.describe_comparison(comparison)], as_json=as_json)
        return
    compared = judge(_parse_entries(document["comparisons"], path=file), margin=margin)
    lines = [f"{place}. {comparisons.describe_comparison(comparison)}" for place, comparison in enumerate(compared)]
    counts = Counter(comparison.verdict for comparison in compared)
    last = f"{len(compared)} comparisons: {', '.join(f'{counts[word]} {word}' for word in counts) or 'none'}."
    _print_answer({"comparisons": _make_figures(compared)}, [] if as_json else lines, as_json=as_json, last=last)


def judge(entries: Sequence[Pairs | Arms], *, margin: float) -> list[Comparison]:
    """Judge comparisons by the rules that alerts use. The results have the order of `entries`.

    Each is judged by itself: nothing is corrected for the number of comparisons. `margin`: changes up to this fraction
    count as equal. Raises Usage for a wrong margin, and Infrastructure if a package is missing.
    """
    with require_extra("node"):
        from farm.rules.comparing import verdicts
    try:
        verdicts.check_margin(margin)
    except ValueError as problem:
        raise Usage(str(problem)) from problem
    paired = iter(verdicts.judge_many([entry.rounds for entry in entries if isinstance(entry, Pairs)], margin=margin))
    return [
        next(paired) if isinstance(entry, Pairs) else verdicts.judge_unpaired(entry.old, entry.new, margin=margin)
        for entry in entries
    ]


def parse_entry(entry: Mapping[str, object], *, where: str) -> Pairs | Arms:
    """Parse the samples of one comparison. `where` names it in errors. Raises Usage if they are missing or wrong.

    Needs at least MIN_LAUNCHES pairs, or that many samples of each arm and as many of both. Other keys are ignored, but
    an entry with `pairs` and also `old` or `new` is refused.
    """
    has_arms = "old" in entry or "new" in entry
    if ("pairs" in entry) == has_arms:
        keys = "both" if has_arms else f"neither, but {', '.join(map(str, list(entry)[:5])) or 'nothing'}"
        raise Usage(f'{where} needs either "pairs" or "old" and "new"; it has {keys}.')
    return _parse_arms(entry, where=where) if has_arms else _parse_pairs(entry["pairs"], where=where)


def _check_document(document: Mapping[str, object], *, path: Path) -> Mapping[str, object]:
    schema = document.get("schema", SCHEMA)
    if isinstance(schema, str) and schema.startswith(BENCH_SCHEMAS):
        raise Usage(
            f"{path} was written by `onnxfarm bench`: its verdicts are in it, and `onnxfarm compare` takes two."
        )
    if schema != SCHEMA:
        raise Usage(f"{path} has the schema {schema!r}: this version reads {SCHEMA}.")
    return document


def _parse_entries(many: object, *, path: Path) -> list[Pairs | Arms]:
    if not isinstance(many, list):
        raise Usage(f'{path}: "comparisons" is not a list.')
    for place, entry in enumerate(many):
        if not isinstance(entry, dict):
            raise Usage(f'{path}: comparisons[{place}] is not an object with "pairs", or "old" and "new".')
    return [parse_entry(entry, where=f"{path}: comparisons[{place}]") for place, entry in enumerate(many)]


def _parse_pairs(rounds: object, *, where: str) -> Pairs:
    if not isinstance(rounds, list):
        raise Usage(f'{where}: "pairs" is not a list of [old, new].')
    if len(rounds) < MIN_LAUNCHES:
        raise Usage(f"{where} has {len(rounds)} pair(s): a comparison needs at least 2, and 8 for a verdict.")
    for place, pair in enumerate(rounds):
        if not isinstance(pair, list) or len(pair) != 2:
            raise Usage(f"{where}: pairs[{place}] is not two samples, [old, new].")
    return Pairs([parse_samples(pair, where=f"{where}: pairs[{place}]") for place, pair in enumerate(rounds)])


def _parse_arms(entry: Mapping[str, object], *, where: str) -> Arms:
    old, new = (parse_samples(entry.get(arm), where=f"{where}: {arm}") for arm in ("old", "new"))
    if len(old) != len(new):
        raise Usage(f"{where} has {len(old)} old and {len(new)} new samples: give as many launches of each.")
    if len(old) < MIN_LAUNCHES:
        raise Usage(f"{where} has {len(old)} launch(es) of each arm: a comparison needs at least 2.")
    return Arms(old, new)


def _make_figures(compared: Sequence[Comparison]) -> list[dict[str, object]]:
    with require_extra("node"):
        from farm.rules.comparing import multiplicity
    decisions = multiplicity.benjamini_hochberg([comparison.p_total for comparison in compared])
    return [
        {
            **dataclasses.asdict(comparison),
            "holds_across": holds if comparison.verdict in ("slower", "faster") else None,
        }
        for comparison, holds in zip(compared, decisions, strict=True)
    ]


def _print_answer(figures: Mapping[str, object], lines: Sequence[str], *, as_json: bool, last: str = "") -> None:
    for line in [*lines, last] if last else lines:
        print(line, file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print(documents.dump_json_line({"schema": SCHEMA, **figures}))
