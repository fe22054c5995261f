"""`onnxfarm compare BASE NEW`: measures two models side by side, or compares two files of `onnxfarm bench`.

The cells of two files are matched by what they measure. Their launches were not interleaved, so the ratio also contains
changes of the machine between the two files. Therefore the verdict is always `not comparable`, with the command that
measures both in one block. The JSON is `onnxfarm.compare/1`.
"""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from farm.rules.comparing import comparisons, confounders
from farm.rules.comparing.comparisons import MARGIN, Comparison
from onnxfarm import documents
from onnxfarm.commands import options
from onnxfarm.commands.compare_models import ComparisonSettings, measure_both
from onnxfarm.commands.feed_options import parse_sizes
from onnxfarm.commands.verdict import Arms, judge
from onnxfarm.documents import parse_samples, read_object
from onnxfarm.exit_codes import judge_cells_here
from onnxfarm.here import matching_cells
from onnxfarm.here.home import default_home
from onnxfarm.here.matching_cells import Cell, Match
from onnxfarm.here.release_index import resolve_runtimes
from onnxfarm.outputs import STDOUT, make_console, write_document
from onnxfarm.problems import Usage, exit_with_problem
from onnxfarm.screen import show

SCHEMA = "onnxfarm.compare/1"
BENCH_SCHEMA = "onnxfarm.bench/1"
NOT_INTERLEAVED = "They were measured at different times, not side by side in one block."
MAX_CONFOUNDERS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class BenchFile:
    """The parts of a file of `bench` that a comparison needs.

    `done`: the measured cells. `unmeasured`: the others, each with the reason as the predicate of a sentence.
    """

    machine: Mapping[str, object]
    done: list[Cell]
    unmeasured: list[tuple[Cell, str]]


@exit_with_problem()
def compare(  # noqa: PLR0913  every option of the command
    old: Annotated[
        Path,
        typer.Argument(metavar="BASE", help="The model in use now, or an earlier file of `onnxfarm bench --json`."),
    ],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The model that would replace it, or a later file.")],
    ort: options.RuntimesOption = None,
    pre: options.PreOption = False,
    provider: options.ProviderOption = None,
    batch: options.BatchOption = None,
    shape: options.ShapeOption = None,
    threads: options.ThreadsOption = None,
    precision: options.PrecisionOption = None,
    scenario: options.ScenarioOption = None,
    budget: options.BudgetOption = None,
    operators: options.OperatorsOption = False,
    tolerance: options.ToleranceOption = None,
    inputs: options.InputsOption = None,
    evaluation: options.EvaluationOption = None,
    recipe: options.RecipeOption = "",
    judge: options.JudgeOption = "",
    seed: options.SeedOption = 0,
    home: options.HomeOption = None,
    margin: Annotated[
        float | None,
        typer.Option(help="Of two files: changes up to this fraction count as equal.", show_default="0.02"),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Measure two models side by side, in the same rounds; or show two bench files, which is less.

    Exit code 0: both were measured, whatever the verdict; 1: one failed; 2: something given cannot be used.
    """
    axes = {"runtime": ort, "provider": provider, "batch": batch, "shapes": parse_sizes(shape), "threads": threads}
    axes |= {"precision": precision, "scenario": scenario, "budget": budget}
    judging = options.parse_judging(recipe, judge, evaluation)
    settings = ComparisonSettings(axes, tolerance, operators, inputs, evaluation, judging, seed, home)
    if _are_bench_files(old, new):
        if settings.has_measuring_options or pre:
            raise Usage(
                "Two files of `bench` are shown as they are: leave out the options that measure, or give models."
            )
        _show_files(old, new, margin=MARGIN if margin is None else margin, as_json=as_json)
        return
    if margin is not None:
        raise Usage(
            "--margin is for two files of `bench`; models are judged by the margin of this machine: leave it out."
        )
    axes["runtime"] = resolve_runtimes(ort, home=home or default_home(), with_prereleases=pre)
    console = make_console(stderr=as_json)
    document = measure_both(old, new, settings, console=make_console(stderr=True))
    show(document, console=console)
    if as_json:
        write_document(document, STDOUT)
    judge_cells_here(document, strict=False)


def _are_bench_files(old: Path, new: Path) -> bool:
    """Say whether both paths are files of `bench`, by their ending .json. Raises Usage if only one of them is."""
    are_files = [path.suffix.lower() == ".json" for path in (old, new)]
    if any(are_files) and not all(are_files):
        raise Usage(f"{old} and {new} are a model and a file of `bench`: give two models, or two files.")
    return all(are_files)


def _show_files(old: Path, new: Path, *, margin: float, as_json: bool) -> None:
    before, after = (read_bench_file(path) for path in (old, new))
    matching = matching_cells.match_cells(before.done, after.done)
    unmatched = _list_unmatched(matching.only_old, before.unmeasured, path=old)
    unmatched += _list_unmatched(matching.only_new, after.unmeasured, path=new)
    reasons = [entry["reason"] for entry in unmatched]
    if not matching.matches:
        raise Usage(f"{old} and {new} have no measured cell in common: {' '.join(reasons)}")

    # the verdict of each match is calculated, and then marked as not comparable
    differing = confounders.find_confounders(before.machine, after.machine)
    compared = judge([_read_arms(match, old=old, new=new) for match in matching.matches], margin=margin)
    entries = [_make_entry(*pair, differing=differing) for pair in zip(matching.matches, compared, strict=True)]

    wrong_first = sorted(entries, key=lambda entry: not entry["wrong_outputs"])
    for text in [*(entry["sentence"] for entry in wrong_first), *reasons]:
        print(text, file=sys.stderr if as_json else sys.stdout)
    if as_json:
        is_other = confounders.is_other_hardware(before.machine, after.machine)
        answer = {"schema": SCHEMA, "interleaved": False, "different_hardware": is_other, "confounders": differing}
        print(documents.dump_json_line({**answer, "comparisons": entries, "unmatched": unmatched}))


def read_bench_file(path: Path) -> BenchFile:
    """Read a file of `bench`, without its A/A twins. Its cells stay in their order, and are checked for id and status.

    Raises Usage if it is another file, or is not complete.
    """
    document = read_object(path)
    if document.get("schema") != BENCH_SCHEMA:
        raise Usage(
            f"{path} has the schema {document.get('schema')!r}: give files of `onnxfarm bench`, {BENCH_SCHEMA}."
        )
    machine, cells = document.get("machine"), document.get("cells")
    if not isinstance(machine, dict) or not isinstance(cells, list):
        raise Usage(f"{path} has no machine or no cells: it is not a complete file of `onnxfarm bench`.")
    for place, cell in enumerate(cells):
        if not isinstance(cell, dict) or not isinstance(cell.get("id"), str) or not isinstance(cell.get("status"), str):
            raise Usage(f"{path}: cells[{place}] has no id and status: it is not a complete file of `onnxfarm bench`.")
    arms = [cell for cell in cells if not cell.get("twin_of")]
    done = [cell for cell in arms if cell["status"] == "done"]
    unmeasured = []
    for cell in arms:
        if cell["status"] != "done":
            reason = cell.get("reason")
            text = reason.get("text") if isinstance(reason, dict) else None
            unmeasured.append((cell, f"was not measured ({cell['status']}){f': {text}' if text else '.'}"))
    return BenchFile(machine, done, unmeasured)


def _list_unmatched(
    alone: Sequence[Cell], unmeasured: Sequence[tuple[Cell, str]], *, path: Path
) -> list[dict[str, str]]:
    """List the cells of the file `path` that are in no comparison, each with the reason as a sentence."""
    unpaired = [(cell, "has no counterpart, or more than one possible counterpart.") for cell in alone]
    unmatched = []
    for cell, reason in [*unpaired, *unmeasured]:
        sentence = f"{path}: {matching_cells.label_cell(cell)} ({cell['id']}) {reason}"
        unmatched.append({"file": str(path), "cell": cell["id"], "reason": sentence})
    return unmatched


def _read_arms(match: Match, *, old: Path, new: Path) -> Arms:
    sides = []
    for cell, path in ((match.old, old), (match.new, new)):
        samples = parse_samples(cell.get("samples_ms"), where=f"{path}: {cell['id']}: samples_ms")
        if len(samples) < 2:
            raise Usage(f"{path}: {cell['id']} has {len(samples)} sample(s): a comparison needs at least 2 launches.")
        sides.append(samples)
    return Arms(*sides)


def _make_entry(match: Match, comparison: Comparison, *, differing: Sequence[str]) -> dict[str, object]:
    repeat = matching_cells.make_repeat_command(match)
    reasons = [*differing[:MAX_CONFOUNDERS]]
    if len(differing) > len(reasons):
        reasons.append(f"{len(differing) - len(reasons)} more machine facts differ.")
    if repeat:
        way_out = f"Measure both in one block: {repeat.command}"
    else:
        old, new = (str(sha256)[:12] for sha256 in match.differs["model_sha256"])
        way_out = (
            f"The models differ (model file digests {old} and {new}): `onnxfarm compare BASE.onnx NEW.onnx` measures "
            "both in one block."
        )
    not_comparable = comparisons.mark_not_comparable(comparison, reasons=[NOT_INTERLEAVED, *reasons, way_out])
    sides = {
        "BASE": matching_cells.explain_wrong_outputs(match.old),
        "NEW": matching_cells.explain_wrong_outputs(match.new),
    }
    wrong = [f"Wrong outputs of {side}: {reason}" for side, reason in sides.items() if reason]
    label = matching_cells.label_cell(match.new)
    axes = ", ".join(f"{axis} {a} → {b}" for axis, (a, b) in match.differs.items()) or "nothing but the time differs"
    return {
        "baseline": match.old["id"],
        "candidate": match.new["id"],
        "differs": {axis: list(sides) for axis, sides in match.differs.items()},
        "interleaved": False,
        "baseline_p50_ms": match.old.get("p50_ms"),
        "candidate_p50_ms": match.new.get("p50_ms"),
        **dataclasses.asdict(not_comparable),
        "command": repeat.command if repeat else None,
        "matrix": repeat.matrix if repeat else None,
        "wrong_outputs": wrong,
        "sentence": " ".join([*wrong, f"{label} ({axes}): {comparisons.describe_comparison(not_comparable)}"]),
    }
