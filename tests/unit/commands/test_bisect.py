"""`onnxfarm bisect`: the search on a made-up bench, and what cannot be asked."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from farm.contract.cells import CellSpec, Runtime
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.changes.watch_rounds import Rule
from farm.rules.matrices import matrix as matrices
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.releases import ONNXRUNTIME
from farm.rules.searches.bisection import Outcome
from onnxfarm.here import bisection
from onnxfarm.main import app
from onnxfarm.problems import Infrastructure, Usage
from tests.conftest import MODELS
from tests.unit.commands.made_up import MadeUpBench

# what an index says is kept nowhere
NOWHERE = Path(os.devnull)
RULE = Rule(kinds=("slower", "parity", "placement", "failed"))


pytestmark = pytest.mark.usefixtures("package_index")


def runtime(version: str) -> Runtime:
    return Runtime(distribution="onnxruntime", version=version)


def search(bench: MadeUpBench, *, good: str = "1.15.0", bad: str = "1.31.1", rule: Rule = RULE) -> dict[str, Any]:
    sides = runtime(good), runtime(bad)
    declared = matrices.parse({"batch": [1], "precision": ["fp32"]})
    versions = bisection.list_candidates(*sides, home=NOWHERE)
    return bisection.LocalBisection(bench, declared, rule, *sides, versions=versions).run()


def slower_from(first: str, factor: float = 1.24) -> MadeUpBench:
    def latency(spec: CellSpec) -> float:
        return factor if release_order(spec.runtime.version) >= release_order(first) else 1.0

    return MadeUpBench(p50_ms=latency)


def refused_on(*versions: str) -> Any:
    reason = Reason(code=ReasonCode.MODEL_NOT_LOADED, text="This runtime does not load it.")

    def checks(spec: CellSpec) -> Mapping[str, Any]:
        return {"reason": reason} if spec.runtime.version in versions else {}

    return checks


def test_the_first_bad_release_is_named_with_its_interval_and_cause() -> None:
    bench = slower_from("1.26.0")
    answer = search(bench)
    assert (answer["first_bad"], answer["last_good"], answer["is_exact"]) == ("1.26.0", "1.25.1", True)
    assert answer["low"] < 1.24 < answer["high"]
    assert answer["sentence"].startswith("1.26.0 is the first bad release; 1.25.1 was still good (")
    assert "24" in answer["change"]
    assert answer["explanation"].startswith(
        "MatMul: 1 node, 1\N{NARROW NO-BREAK SPACE}000 → 1\N{NARROW NO-BREAK SPACE}240 µs"
    )
    # the bad end, log2 of 34, and one check on each side; the good release stands beside each of them
    assert len(answer["steps"]) == answer["probes"] <= 1 + 6 + 2
    assert all(versions[0] == "1.15.0" and len(versions) == 2 for versions in bench.measured)


def test_only_the_cell_that_changed_most_is_measured_on() -> None:
    bench = MadeUpBench(
        p50_ms=lambda spec: 1.5 if (spec.workload.batch, spec.runtime.version) == (8, "1.31.1") else 1.0
    )
    sides = runtime("1.30.0"), runtime("1.31.1")
    declared = matrices.parse({"batch": [1, 8], "precision": ["fp32"]})
    versions = bisection.list_candidates(*sides, home=NOWHERE)
    answer = bisection.LocalBisection(bench, declared, RULE, *sides, versions=versions).run()
    assert [len(versions) for versions in bench.measured] == [4, 2]
    assert answer["first_bad"] == "1.31.1"


def test_a_release_that_cannot_load_the_model_is_skipped_and_stays_a_suspect() -> None:
    bench = slower_from("1.30.0")
    bench.checks = refused_on("1.30.0")
    answer = search(bench, good="1.29.0", bad="1.31.1")
    assert answer["skipped"] == ["1.30.0"]
    assert answer["suspects"] == ["1.30.0", "1.31.0"]
    assert next(step for step in answer["steps"] if step["version"] == "1.30.0")["text"].startswith("This runtime")


def test_bad_then_fixed_then_bad_again_is_said() -> None:
    worse = ("1.17.0", "1.17.1", "1.17.3", "1.18.0", "1.18.1", "1.19.0", "1.19.2", "1.20.0", "1.31.0", "1.31.1")
    answer = search(MadeUpBench(p50_ms=lambda spec: 1.3 if spec.runtime.version in worse else 1.0))
    assert answer["is_monotone"] is False
    assert "It changed more than once" in answer["sentence"]


def test_a_small_change_elsewhere_is_not_the_one_that_is_looked_for() -> None:
    def latency(spec: CellSpec) -> float:
        return {"1.29.0": 1.0, "1.30.0": 1.04, "1.31.0": 1.04, "1.31.1": 1.3}[spec.runtime.version]

    assert search(MadeUpBench(p50_ms=latency, noise=0.02), good="1.29.0")["first_bad"] == "1.31.1"


@pytest.mark.parametrize(
    ("bench", "words"),
    [
        (MadeUpBench(), "1.31.1 was given as bad, but here it is not worse than 1.29.0"),
        (slower_from("1.31.1", 0.7), "faster than 1.29.0"),
        (MadeUpBench(checks=refused_on("1.29.0")), "1.29.0 was given as good, but here it does not run the model"),
        (MadeUpBench(checks=refused_on("1.29.0", "1.31.1")), "Neither 1.29.0 nor 1.31.1 runs the model: This runtime"),
    ],
)
def test_a_wrong_question_is_said_in_a_sentence(bench: MadeUpBench, words: str) -> None:
    with pytest.raises(Usage) as raised:
        search(bench, good="1.29.0")
    assert words in str(raised.value)
    assert len(bench.measured) == 1


def test_a_release_without_a_wheel_is_the_askers_affair_only_while_the_index_answers(package_index: list[str]):
    reason = Reason(code=ReasonCode.RUNTIME_INSTALL_FAILED, text="It has wheels for Python 3.8 to 3.11 only.")
    bench = MadeUpBench(checks=lambda spec: {"reason": reason} if spec.runtime.version == "1.15.0" else {})
    with pytest.raises(Infrastructure, match="index does not answer"):
        search(bench)
    package_index.append("1.31.1")
    with pytest.raises(Usage, match="wheels for Python"):
        search(bench)
    # what the index has for this Python was kept from being installed by something else
    package_index.append("1.15.0")
    with pytest.raises(Infrastructure, match="wheels for Python"):
        search(bench)


def test_a_broken_model_that_worked_is_bisected_too() -> None:
    later = [version for version in ONNXRUNTIME if release_order(version) >= release_order("1.24.1")]
    answer = search(MadeUpBench(checks=refused_on(*later)))
    assert (answer["kind"], answer["first_bad"], answer["ratio"]) == ("failed", "1.24.1", None)
    assert {step["outcome"] for step in answer["steps"]} == {Outcome.GOOD, Outcome.BAD}


def command(*words: object) -> Result:
    model = MODELS / "relu_op13_ir7.onnx"
    return CliRunner().invoke(app, ["bisect", str(model), *map(str, words)])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--good", "1.31.1", "--bad", "1.20.1"], "swap them"),
        (["--good", "1.20.1", "--bad", "1.20.1"], "are both onnxruntime==1.20.1"),
        (["--good", "1.17.2", "--bad", "1.31.1"], "1.17.2 does not exist"),
        (["--good", "1.20.1", "--bad", "9.9"], "9.9 does not exist"),
        (["--good", "good", "--bad", "1.31.1"], "'good'"),
        (["--good", "1.20.1", "--bad", "onnxruntime-openvino==1.24.1"], "two releases of one"),
        (["--good", "1.20.1", "--bad", "1.31.1", "--for", "slow"], "did you mean 'slower'"),
        (["--good", "1.20.1", "--bad", "1.31.1", "--for", "peak_memory"], "did you mean 'peak_memory_bytes'"),
        (["--good", "1.20.1", "--bad", "1.31.1", "--threshold", "-1"], "--threshold -1"),
        (["--good", "1.20.1", "--bad", "1.31.1", "--threshold", "nan"], "--threshold nan"),
        (["--good", "1.20.1", "--bad", "1.31.1", "--matrix", '{"runtime": ["1.31.1"]}'], "leave `runtime` out"),
        (["--good", "1.20.1", "--bad", "1.31.1", "--matrix", '{"opset": ["max-of-runtime"]}'], "write the opset as"),
        (["--good", "1.20.1", "--bad", "1.31.1", "--expected", "x.npz"], "--inputs"),
    ],
)
def test_what_cannot_be_asked_ends_with_2(words: list[str], said: str, tmp_path: Path) -> None:
    result = command(*words, "--home", tmp_path)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    assert said in line


def test_a_model_that_no_release_loads_ends_with_2(tmp_path: Path) -> None:
    words = ["--good", "1.20.1", "--bad", "1.23.0", "--home", str(tmp_path)]
    result = CliRunner().invoke(app, ["bisect", str(MODELS / "custom_op.onnx"), *words])
    assert result.exit_code == 2, result.output
    assert "Neither 1.20.1 nor 1.23.0 runs the model" in result.stderr.splitlines()[-1]


def test_a_new_release_of_the_index_may_be_asked_for(package_index: list[str]) -> None:
    package_index += ["1.32.0", "1.31.1", "1.14.9", "1.33.0rc1"]
    versions = bisection.list_candidates(runtime("1.31.0"), runtime("1.32.0"), home=NOWHERE)
    assert versions == ["1.31.0", "1.31.1", "1.32.0"]
