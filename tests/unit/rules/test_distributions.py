"""What may be installed on other people's machines, and every spelling of it that must not slip through."""

from dataclasses import replace

import pytest

from farm.contract.cells import Runtime
from farm.contract.reasons import ReasonCode
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import NodeOffer
from farm.rules.runtimes import distributions
from farm.rules.runtimes.distributions import RuntimeProblem
from farm.rules.runtimes.provider import Build
from tests.unit.rules.making import make_model


@pytest.mark.parametrize(
    "text",
    [
        "evil-package == 1.31.1",
        "evil-package==1.31.1",
        "evil-package ==1.31.1",
        "evil-package\t==1.31.1",
        "evil-package>=1,==1.31.1",
        "evil~package==1.31.1",
        "evil!package==1.31.1",
        "evil*==1.31.1",
        "onnxruntime,evil-package==1.31.1",
        "onnxruntime evil-package==1.31.1",
        "onnxruntime @ https://evil.example/onnxruntime-1.31.1-cp311-none-any.whl",
        "onnxruntime@https://evil.example/a.whl==1.31.1",
        "https://evil.example/onnxruntime-1.31.1-cp311-none-any.whl",
        "git+https://evil.example/onnxruntime==1.31.1",
        "./onnxruntime==1.31.1",
        "../../evil==1.31.1",
        "onnxruntime[evil]==1.31.1",
        "onnxruntime==1.31.1; python_version > '3'",
        "onnxruntime==1.31.1\nevil-package==1.31.1",
        "onnxruntime==1.31.1\n--index-url=https://evil.example/simple",
        "onnxruntime==1.31.1 --index-url https://evil.example/simple",
        "--index-url=https://evil.example/simple",
        "-r/etc/passwd",
        "onnxruntime==1.31.1#sha256=00",
        "onnxruntime===1.31.1",
        "onnxruntime==1.31.*",
        "onnxruntime==1!1.31.1",
        "onnxruntime==1.31.1,!=1.31.1",
        "onnxruntime==1.30.0,==1.31.1",
        "onnxruntime==1.31.1/../../evil",
        "onnxruntime==١.31.1",
        "onnxruntime==1.31.１",
        "оnnxruntime==1.31.1",  # a Cyrillic o
        "onnxruntıme==1.31.1",  # a dotless i
        "١.31.1",
        "1.31.1 --find-links=/tmp",
        "1.31.1\nevil-package==1",
        "1.31.1 evil-package",
        "1.31.1;evil",
        "1!1.31.1",
        "v1.31.1",
        "1.31.1+evil/../..",
        "1." + "1" * 40,
        "onnxruntime==" + "1." * 40 + "1",
        "o" * 65 + "==1.31.1",
        "",
        "==1.31.1",
        "\0",
    ],
)
def test_a_member_cannot_name_a_package_of_their_choice_however_it_is_spelled(text: str) -> None:
    with pytest.raises(RuntimeProblem):
        distributions.parse_runtime(text)
    with pytest.raises(MatrixProblem):
        matrix.parse({"runtime": [text]})
    with pytest.raises(MatrixProblem):
        matrix.parse({"runtime": ["1.31.1"], "include": [{"runtime": text}]})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1.31.1", "onnxruntime==1.31.1"),
        (" 1.31.1 ", "onnxruntime==1.31.1"),
        ("onnxruntime == 1.31.1", "onnxruntime==1.31.1"),
        ("ONNXRuntime==1.31.1", "onnxruntime==1.31.1"),
        ("onnxruntime_gpu==1.26.0", "onnxruntime-gpu==1.26.0"),
        ("onnxruntime.ep_webgpu==0.4.0", "onnxruntime-ep-webgpu==0.4.0"),
        ("onnxruntime-rocm==1.22.2.post3", "onnxruntime-rocm==1.22.2.post3"),
        ("1.32.0rc1", "onnxruntime==1.32.0rc1"),
        ("1.31.1+Own.1", "onnxruntime==1.31.1+own.1"),
        ("onnxruntime==01.31.1", "onnxruntime==1.31.1"),
    ],
)
def test_a_release_has_one_spelling_whoever_writes_it(text: str, read: str) -> None:
    assert str(distributions.parse_runtime(text)) == read


def test_a_package_beyond_the_list_is_read_where_it_is_allowed_by_its_name() -> None:
    allowed = distributions.read_names("my_ort, Onnxruntime-Training,")
    assert allowed == {"my-ort", "onnxruntime-training"}
    assert str(distributions.parse_runtime("My.ORT==0.3", allowed=allowed)) == "my-ort==0.3"
    with pytest.raises(RuntimeProblem, match=r"Unknown distribution 'evil-package'.*allowed by its name"):
        distributions.parse_runtime("evil-package==0.3", allowed=allowed)
    with pytest.raises(RuntimeProblem, match="not one version"):
        distributions.parse_runtime("my-ort>=0.3", allowed=allowed)


@pytest.mark.parametrize("names", ["my ort", "https://a.example/b.whl", "-r", "*", "óver", "a" * 65, "my-ort==1"])
def test_an_allowance_is_a_name_and_nothing_else(names: str) -> None:
    with pytest.raises(RuntimeProblem, match="not the name of a package"):
        distributions.read_names(names)


@pytest.mark.parametrize(
    ("runtime", "words"),
    [
        (Runtime(distribution="evil-package", version="1.31.1"), "Unknown distribution 'evil-package'"),
        (Runtime(distribution="onnxruntime.", version="1.31.1"), "Unknown distribution 'onnxruntime.'"),
        (Runtime(distribution="onnxruntime", version="1.31.1-evil"), "'1.31.1-evil' of onnxruntime is not a version"),
        (Runtime(distribution="onnxruntime", version="1x"), "is not a version"),
    ],
)
def test_a_runtime_that_did_not_come_through_a_matrix_is_looked_at_too(runtime: Runtime, words: str) -> None:
    assert words in (distributions.refusal(runtime) or "")
    assert distributions.refusal(Runtime(distribution="onnxruntime", version="1.31.1")) is None


def test_a_node_that_says_it_has_a_package_does_not_make_it_a_runtime() -> None:
    node = NodeOffer(
        id="n1", versions=frozenset({"evil-package==9.9"}), providers=frozenset({"XnnpackExecutionProvider"})
    )
    declared = matrix.parse({"runtime": "evil-package==9.9", "provider": "xnnpack"}, allowed=["evil-package"])
    plan = planner.plan(replace(declared, allowed=frozenset()), make_model(), [node])
    assert plan.blocks == ()
    assert [one.reason.code for one in plan.refused] == [ReasonCode.UNKNOWN_RUNTIME]
    assert "evil-package" in (plan.problem or "")


def test_an_allowed_package_is_planned_whatever_its_numbers_are_and_the_allowance_is_never_stored() -> None:
    declared = matrix.parse({"runtime": "my-ort==0.3", "provider": ["cpu", "cuda"]}, allowed=["my-ort"])
    plan = planner.plan(declared, make_model())
    assert [str(arm.spec.runtime) for block in plan.blocks for arm in block.arms] == ["my-ort==0.3"] * 2
    assert plan.problem is None
    with pytest.raises(MatrixProblem, match="Unknown distribution 'my-ort'"):
        matrix.parse(declared.as_plain())


def test_a_package_that_only_its_owner_allows_is_installed_with_all_that_it_depends_on() -> None:
    assert distributions.build_of("my-ort") == Build("my-ort")
    assert distributions.build_of("onnxruntime").package == "onnxruntime"
