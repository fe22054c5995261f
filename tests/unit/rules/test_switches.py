"""Session options that undo a change: which are tried, and what the trials say."""

from dataclasses import replace
from typing import Any

import pytest

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell, Parity
from farm.contract.document_comparisons import Comparison
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.points import expand
from farm.rules.planning.blocks import list_comparisons
from farm.rules.planning.planner import plan
from farm.rules.searches import optimizer_names, switches
from farm.rules.searches.switches import CANDIDATES, Candidate, Trial
from tests.documents import NEW, OLD
from tests.unit.rules.making import make_model
from tests.unit.rules.test_watching import cell

NAMES = ["AlphaFusion", "BetaElimination", "GammaTransformer"]


def ort(requirement: str) -> Runtime:
    return Runtime.of(requirement)


def test_names_are_found_among_the_texts_of_a_library() -> None:
    library = (
        b"\x00AlphaFusion\x00an alpha text\x00N11onnxruntime15BetaEliminationE\x00EliminateGamma\x00SomethingElse\x00"
    )
    assert optimizer_names.find_optimizer_names(library) == ["AlphaFusion", "BetaElimination", "EliminateGamma"]
    assert optimizer_names.find_optimizer_names(b"\xff\x00") == []


def test_names_that_resemble_what_changed_come_first() -> None:
    names = ["ConvAddFusion", "SkipNormFusion", "GateFusion", "CastElimination"]
    assert optimizer_names.rank_names(names, words=["SkipNormalization", "MatMul"])[0] == "SkipNormFusion"
    assert optimizer_names.rank_names(names, words=[]) == sorted(names)
    assert optimizer_names.rank_names([], words=["Add"]) == []


def test_levels_stand_first_then_single_names_then_groups_of_all_others() -> None:
    names = [f"Name{letter}Fusion" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    found = switches.plan_first_candidates(names)
    assert [one.level for one in found[:3]] == ["extended", "basic", "disable"]
    assert [len(one.names) for one in found[3:8]] == [1] * 5
    assert len(found) <= switches.MAX_CANDIDATES
    assert sorted(name for one in found for name in one.names) == names


def test_without_names_only_levels_are_tried() -> None:
    assert [one.label for one in switches.plan_first_candidates([], level="extended")] == [
        "optimization basic",
        "optimization disable",
    ]


def trial(candidate: Candidate, undone: float, *, verdict: Any = "faster", keeps: bool = True) -> Trial:
    comparison = Comparison(baseline="c2", candidate="c3", axis="session", ratio=0.8, verdict=verdict, margin=0.02)
    return Trial(candidate, undone, 1.0, comparison, keeps)


GROUP = Candidate("optimizers", "without four", names=("A1Fusion", "B1Fusion", "C1Fusion", "D1Fusion"))
SINGLE = Candidate("optimizers", "without one", names=("E1Fusion",))
LEVEL = Candidate("level", "optimization basic", level="basic")


def test_the_group_that_undid_most_is_parted_until_one_name_is_left() -> None:
    trials = [trial(GROUP, 0.9), trial(LEVEL, 1.0)]
    assert [one.names for one in switches.plan_next_candidates(trials, max_candidates=2)] == [
        ("A1Fusion", "B1Fusion"),
        ("C1Fusion", "D1Fusion"),
    ]
    assert switches.plan_next_candidates([*trials, trial(SINGLE, 0.95)]) == []
    assert switches.plan_next_candidates([trial(LEVEL, 1.0)]) == []


def test_the_search_goes_down_and_never_back_into_a_larger_group() -> None:
    part = Candidate("optimizers", "without two", names=("A1Fusion", "B1Fusion"))
    found = switches.plan_next_candidates([trial(GROUP, 1.02), trial(part, 0.97)])
    assert [one.names for one in found] == [("A1Fusion",), ("B1Fusion",)]
    known = [trial(one, 0.4) for one in found]
    assert switches.plan_next_candidates([trial(GROUP, 1.02), trial(part, 0.97), *known]) == []


def test_the_smallest_switch_is_offered_of_those_that_give_back_about_as_much() -> None:
    best = switches.find_best_trial([trial(LEVEL, 1.0), trial(GROUP, 0.95), trial(SINGLE, 0.9)])
    assert best.candidate == SINGLE
    assert switches.find_best_trial([trial(LEVEL, 1.0), trial(SINGLE, 0.5)]).candidate == LEVEL


@pytest.mark.parametrize(
    "poor",
    [
        trial(SINGLE, 0.1),
        trial(SINGLE, 0.9, verdict="undecided"),
        trial(SINGLE, 0.9, keeps=False),
    ],
)
def test_what_gives_little_is_undecided_or_changes_outputs_is_not_offered(poor: Trial) -> None:
    assert switches.find_best_trial([poor]) is None


def trial_plan(candidates: list[Candidate]) -> Any:
    matrix = matrices.parse({"runtime": ["1.29.0", "1.31.1"], "batch": [1], "threads": [1]})
    point = expand(matrix).points[0]
    found = switches.make_trial_matrix(matrix, point, old=ort(OLD), new=ort(NEW), candidates=candidates)
    assert matrices.parse(found.as_plain()) == found
    return plan(found, make_model())


def test_one_block_holds_both_releases_and_every_candidate_beside_the_new_one() -> None:
    candidates = switches.plan_first_candidates(NAMES)
    (block,) = trial_plan(candidates).blocks
    assert len(block.arms) == 2 + len(candidates)
    tried = [arm.spec for arm in block.arms if arm.spec.session.disabled_optimizers]
    assert [spec.session.disabled_optimizers for spec in tried] == [(name,) for name in NAMES]
    assert {str(spec.runtime) for spec in tried} == {NEW}
    axes = [axis for _, _, axis in list_comparisons(block.arms)]
    assert axes.count("runtime") == 1


def plain_point() -> Any:
    options = {"arena_extend_strategy": "kSameAsRequested", "do_copy_in_default_stream": "1"}
    provider = {"name": "CUDAExecutionProvider", "options": options}
    return expand(matrices.parse({"runtime": ["1.31.1"], "provider": [provider], "threads": [2]})).points[0]


def test_settings_options_and_threads_come_last_and_once() -> None:
    found = switches.plan_last_candidates(plain_point(), [trial(SINGLE, 0.5)], done=["spinning off"])
    assert [one.label for one in found] == [
        "memory-pattern off",
        "arena off",
        "without arena_extend_strategy",
        "without do_copy_in_default_stream",
        "threads 1",
        "threads 4",
    ]
    assert switches.plan_last_candidates(plain_point(), [], done=[one.label for one in found] + ["spinning off"]) == []
    assert switches.plan_last_candidates(plain_point(), [trial(SINGLE, 0.9)], done=[]) == []


def test_what_comes_last_stands_in_one_block_too_each_on_its_own_axis() -> None:
    point = plain_point()
    candidates = switches.plan_last_candidates(point, [], done=[])
    found = switches.make_trial_matrix(
        matrices.parse({"runtime": ["1.31.1"]}), point, old=ort(OLD), new=ort(NEW), candidates=candidates
    )
    assert matrices.parse(found.as_plain()) == found
    tried = [one.values for one in expand(found).points if str(one.values["runtime"]) == NEW]
    assert len(expand(found).points) == 2 + len(candidates)
    assert sorted(values["threads"] for values in tried) == [1, 2, 2, 2, 2, 2, 2, 4]
    assert sorted(len(values["provider"].options) for values in tried) == [1, 1, 2, 2, 2, 2, 2, 2]
    assert sum(not values["session"].arena for values in tried) == 1


def test_trials_on_other_axes_are_read_by_what_differs() -> None:
    candidates = [
        Candidate("option", "without a", names=("a",)),
        Candidate("threads", "threads 1", threads=1),
        Candidate("setting", "arena off", names=("arena",)),
    ]
    cells = [
        cell("c1", OLD, threads=2, provider_options={"a": "1", "b": "1"}),
        cell("c2", NEW, threads=2, provider_options={"a": "1", "b": "1"}),
        cell("c3", NEW, threads=2, provider_options={"b": "1"}),
        cell("c4", NEW, threads=1, provider_options={"a": "1", "b": "1"}),
        cell("c5", NEW, threads=2, provider_options={"a": "1", "b": "1"}, session={"name": "3 arena off"}),
    ]
    axes = [("c3", "provider", 0.9), ("c4", "threads", 0.8), ("c5", "session", 1.0)]
    compared = [("c1", "c2", "runtime", 1.25), *(("c2", *one) for one in axes)]
    document = Document(machine={}, seed=0, cells=cells, comparisons=[_comparison(*one) for one in compared])
    found = switches.read_trials(document, candidates, old=ort(OLD), new=ort(NEW))
    assert [one.candidate for one in found] == candidates
    assert [round(one.undone, 2) for one in found] == [0.47, 1.0, 0.0]
    # comparisons of cells that are no candidates are passed over
    assert switches.read_trials(document, [], old=ort(OLD), new=ort(NEW)) == []


@pytest.mark.parametrize(
    ("candidate", "words", "code"),
    [
        (Candidate("threads", "threads 1", threads=1), "Running on 1 thread removes", "intra_op_num_threads = 1"),
        (Candidate("setting", "arena off", names=("arena",)), "Switching arena off", "enable_cpu_mem_arena = False"),
        (Candidate("option", "without a", names=("a",)), "Leaving out the provider option a", "without 'a'"),
    ],
)
def test_other_work_arounds_are_said_shown_as_code_and_kept(candidate: Candidate, words: str, code: str) -> None:
    assert switches.describe_trial(trial(candidate, 0.9)).startswith(words)
    assert code in switches.write_python(trial(candidate, 0.9))
    assert CANDIDATES.validate_python(CANDIDATES.dump_python([candidate], mode="json")) == [candidate]


def test_trials_are_read_from_the_block_with_what_they_gave_back() -> None:
    candidates = switches.plan_first_candidates(NAMES[:1])
    cells = [
        cell("c1", OLD),
        cell("c2", NEW),
        cell("c3", NEW, optimization="basic"),
        cell("c4", NEW, session={"name": "4 without AlphaFusion"}, parity=Parity(verdict="fail")),
        cell("c5", NEW, optimization="disable", status="crashed"),
    ]
    compared = [("c1", "c2", "runtime", 1.25), ("c2", "c3", "optimization", 0.8), ("c2", "c4", "session", 1.0)]
    document = Document(machine={}, seed=0, cells=cells, comparisons=[_comparison(*one) for one in compared])
    level, name = switches.read_trials(document, candidates, old=ort(OLD), new=ort(NEW))
    assert (level.candidate.level, level.undone) == ("basic", pytest.approx(1.0))
    assert level.remaining == pytest.approx(1.0)
    assert (name.candidate.names, name.undone, name.keeps_parity) == (("AlphaFusion",), 0.0, False)


def _comparison(baseline: str, candidate: str, axis: str, ratio: float) -> Comparison:
    verdict: Any = "slower" if ratio > 1.02 else "faster" if ratio < 0.98 else "equal"
    return Comparison(baseline=baseline, candidate=candidate, axis=axis, ratio=ratio, verdict=verdict, margin=0.02)


def test_a_block_without_the_change_says_nothing_of_switches() -> None:
    cells: list[Cell] = [cell("c1", OLD), cell("c2", NEW)]
    document = Document(machine={}, seed=0, cells=cells, comparisons=[_comparison("c1", "c2", "runtime", 0.99)])
    assert switches.read_trials(document, [LEVEL], old=ort(OLD), new=ort(NEW)) == []


def test_the_work_around_is_said_with_what_is_left_and_as_code() -> None:
    one = trial(SINGLE, 0.96)
    assert switches.describe_trial(one) == "Disabling E1Fusion removes the regression."
    assert "disabled_optimizers=['E1Fusion']" in switches.write_python(one)
    assert "ORT_ENABLE_BASIC" in switches.write_python(trial(LEVEL, 1.0))
    many = Candidate("optimizers", "many", names=tuple(f"N{number}Fusion" for number in range(6)))
    assert "and 2 more" in switches.describe_trial(trial(many, 0.5))


@pytest.mark.parametrize(
    ("remaining", "width", "says"),
    [
        (1.002, 0.14, "; whether it is slower or faster than before is undecided (14 % faster to 14 % slower)."),
        (1.125, 0.01, "; it is 12 % slower than before (11–14 %)."),
        (0.9, 0.03, "; it is 10 % faster than before (7–13 %)."),
    ],
)
def test_what_is_left_has_the_digits_of_its_interval(remaining: float, width: float, says: str) -> None:
    known = replace(
        trial(SINGLE, 1.0), remaining=remaining, interval=(remaining * (1 - width), remaining * (1 + width))
    )
    assert switches.describe_trial(known).endswith(says)


def test_what_is_left_is_as_uncertain_as_both_comparisons_that_it_rests_on() -> None:
    cells = [cell("c1", OLD), cell("c2", NEW), cell("c3", NEW, optimization="basic")]
    compared = [
        _comparison("c1", "c2", "runtime", 1.25).model_copy(update={"ci_low": 1.25 / 1.03, "ci_high": 1.25 * 1.03}),
        _comparison("c2", "c3", "optimization", 0.8).model_copy(update={"ci_low": 0.8 / 1.04, "ci_high": 0.8 * 1.04}),
    ]
    document = Document(machine={}, seed=0, cells=cells, comparisons=compared)
    [found] = switches.read_trials(document, [LEVEL], old=ort(OLD), new=ort(NEW))
    assert found.interval == pytest.approx((1 / 1.0504, 1.0504), abs=0.001)
    assert found.remaining_change is not None
    assert found.remaining_change.word == "undecided"


def test_a_candidate_survives_being_kept() -> None:
    kept = CANDIDATES.dump_python([SINGLE, LEVEL, GROUP], mode="json")
    assert kept[0] == {"kind": "optimizers", "label": "without one", "level": "all", "names": ["E1Fusion"]}
    assert CANDIDATES.validate_python(kept) == [SINGLE, LEVEL, GROUP]


def test_without_options_of_a_provider_and_a_number_of_threads_only_settings_are_left_to_try() -> None:
    point = plain_point()
    bare = replace(point, values={name: value for name, value in point.values.items() if name == "runtime"})
    assert {one.kind for one in switches.plan_last_candidates(bare, [], done=[])} == {"setting"}


def test_an_optimization_level_that_helps_is_named() -> None:
    assert switches.describe_trial(trial(LEVEL, 0.9)).startswith(
        "The optimization level basic removes 90 % of the regression"
    )
