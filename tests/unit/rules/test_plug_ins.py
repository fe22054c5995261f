"""Plug-ins of other people: how one is written and allowed, what stands beside it, and what is said of the rest."""

import pytest

from farm.contract.cells import Runtime
from farm.rules.cells.axes import runtime_sort_key
from farm.rules.runtimes import allowances, distributions, plugins, providers, releases
from farm.rules.runtimes.distributions import RuntimeProblem
from farm.rules.wording import titles
from tests.unit.rules.making import only_refusal, plan_of

GGML = frozenset({"onnxruntime-ggml"})
THEIRS = allowances.read_names("their-ep+onnxruntime>=1.25,<1.28")


@pytest.mark.parametrize(
    ("text", "version", "core"),
    [
        ("onnxruntime-ggml==0.2.0", "0.2.0+onnxruntime.1.30.0", "1.30.0"),
        ("onnxruntime-ggml==0.2.0+onnxruntime==1.29.0", "0.2.0+onnxruntime.1.29.0", "1.29.0"),
        ("onnxruntime-ggml == 0.2.0 + onnxruntime == 1.29.0", "0.2.0+onnxruntime.1.29.0", "1.29.0"),
        ("onnxruntime-ggml==0.2.0+onnxruntime.1.29.0", "0.2.0+onnxruntime.1.29.0", "1.29.0"),
        ("onnxruntime-ep-webgpu==0.4.0", "0.4.0", "1.31.1"),
        ("onnxruntime-ep-webgpu==0.4.0+onnxruntime==1.31.1", "0.4.0", "1.31.1"),
        ("onnxruntime-ep-webgpu==0.4.0+onnxruntime==1.30.0", "0.4.0+onnxruntime.1.30.0", "1.30.0"),
    ],
)
def test_a_plug_in_stands_beside_the_named_runtime_or_the_newest_that_it_takes(text, version, core):
    runtime = distributions.parse_runtime(text, allowed=GGML)
    assert (runtime.version, plugins.core_of(runtime).version) == (version, core)
    assert distributions.refusal(runtime, allowed=GGML) is None
    assert distributions.parse_runtime(plugins.format_runtime(runtime), allowed=GGML) == runtime


def test_an_allowance_says_which_onnx_runtime_a_package_takes():
    runtime = distributions.parse_runtime("their-ep==3.1", allowed=THEIRS)
    assert str(runtime) == "their-ep==3.1+onnxruntime.1.27.0"
    assert plugins.packages_of(runtime) == (
        Runtime(distribution="their-ep", version="3.1"),
        Runtime(distribution="onnxruntime", version="1.27.0"),
    )
    assert plugins.library_for(runtime, "theirs") == "their_ep:"
    assert plugins.library_for(runtime, "CPUExecutionProvider") is None


def test_a_package_that_is_allowed_by_its_name_alone_is_a_build_unless_a_runtime_is_named_beside_it():
    alone = distributions.parse_runtime("my-ort==1.0", allowed={"my-ort"})
    beside = distributions.parse_runtime("my-ort==1.0+onnxruntime==1.29.0", allowed={"my-ort"})
    assert plugins.plugin_of(alone) is None
    assert plugins.packages_of(alone) == (alone,)
    assert plugins.core_of(beside).version == "1.29.0"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("onnxruntime-ggml==0.2.0+onnxruntime==1.31.1", "takes ONNX Runtime <1.31,>=1.29 here, and 1.31.1 is not in"),
        ("onnxruntime==1.31.1+onnxruntime==1.30.0", "onnxruntime==1.31.1 is a build of ONNX Runtime"),
        ("onnxruntime-qnn==1.23.2+onnxruntime==1.30.0", "onnxruntime-qnn==1.23.2 is a build of ONNX Runtime"),
        ("onnxruntime-ggml==0.2.0+onnxruntime==new", "one version"),
        ("onnxruntime-ggml==0.2.0+onnxruntime==", "one version"),
        ("onnxruntime-ggml+onnxruntime==1.30.0", "one version"),
        ("onnxruntime-ggml==0.2.0+cpu+onnxruntime==1.30.0", "one version"),
        ("onnxruntime-ggml==0.2.0.dev20260416+onnxruntime==1.30.0", "longer than a runtime's version may be"),
    ],
)
def test_a_runtime_that_cannot_stand_beside_a_package_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(RuntimeProblem, match=sentence):
        distributions.parse_runtime(text, allowed=GGML)


def test_a_plug_in_that_nobody_allowed_says_who_may():
    with pytest.raises(RuntimeProblem) as raised:
        distributions.parse_runtime("onnxruntime-ggml==0.2.0")
    assert str(raised.value) == (
        "onnxruntime-ggml is other people's code, which has to be allowed by its name: by a farm's admin "
        "(ONNXFARM_ALLOWED_PACKAGES) and by the owner of the machine (--allow-package)."
    )


def test_an_owners_own_range_is_held_against_what_an_order_asks():
    asked = Runtime(distribution="onnxruntime-ggml", version="0.2.0+onnxruntime.1.30.0")
    narrow = allowances.read_names("onnxruntime-ggml+onnxruntime==1.29.*")
    assert "1.30.0 is not in it" in str(distributions.refusal(asked, allowed=narrow))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("onnxruntime-ggml+onnxruntime>=banana", "is not a range of ONNX Runtime"),
        ("onnxruntime-ggml+onnxruntime", "is not a range of ONNX Runtime"),
        ("onnxruntime-ggml+torch>=2", "is not a range of ONNX Runtime"),
        ("onnxruntime-ggml+onnxruntime<1.15", "No known release of ONNX Runtime lies in <1.15"),
        ("onnxruntime-ggml+onnxruntime>=1.29,<1.31,-r evil", "not a range of ONNX Runtime|not the name of a package"),
        ("onnxruntime+onnxruntime>=1.29", "onnxruntime is a build of ONNX Runtime"),
        (">=1.29", "is not the name of a package"),
    ],
)
def test_nonsense_in_an_allow_list_is_one_sentence(text, sentence):
    with pytest.raises(RuntimeProblem, match=sentence):
        allowances.read_names(text)


def test_the_commas_of_a_range_do_not_end_an_allowance():
    found = allowances.read_names("a-b, onnxruntime_ggml+onnxruntime>=1.29,<1.31 ,c")
    assert found == {"a-b", "onnxruntime-ggml+onnxruntime<1.31,>=1.29", "c"}
    assert allowances.package_names(found) == {"a-b", "onnxruntime-ggml", "c"}


def test_both_versions_of_a_plug_in_have_an_order_and_are_said():
    runtimes = [
        Runtime.of(f"onnxruntime-ggml=={own}+onnxruntime.{core}")
        for own in ("0.2.0", "0.10.0")
        for core in ("1.9.0", "1.30.0")
    ]
    assert sorted(reversed(runtimes), key=runtime_sort_key) == runtimes
    assert titles.runtime(runtimes[1]) == "ggml 0.2.0 on 1.30.0"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0.1.0+onnxruntime.1.30.0", "0.2.0+onnxruntime.1.30.0", "0.1.0"),
        ("0.2.0+onnxruntime.1.29.0", "0.2.0+onnxruntime.1.30.0", "on ONNX Runtime 1.29.0"),
        ("0.1.0+onnxruntime.1.29.0", "0.2.0+onnxruntime.1.30.0", "0.1.0 on ONNX Runtime 1.29.0"),
        ("1.29.0", "1.31.1", "1.29.0"),
    ],
)
def test_a_comparison_says_which_of_the_two_versions_moved(old, new, words):
    assert plugins.describe_older_version(old, new) == words


@pytest.mark.parametrize(
    ("runtime", "more", "sentence"),
    [
        ("onnxruntime-ggml==9.9.9+onnxruntime.1.30.0", {}, None),
        ("onnxruntime-ep-webgpu==0.4.0+onnxruntime.1.30.0", {}, None),
        ("onnxruntime-ep-webgpu==0.4.0+onnxruntime.1.99.0", {}, "onnxruntime==1.99.0 does not exist"),
        ("onnxruntime-ep-webgpu==9.9.9+onnxruntime.1.30.0", {}, "onnxruntime-ep-webgpu==9.9.9 does not exist"),
        (
            "onnxruntime-ggml==0.2.0+onnxruntime.1.30.0",
            {"yanked": {Runtime.of("onnxruntime-ggml==0.2.0"): "it is broken"}},
            "onnxruntime-ggml==0.2.0 was yanked",
        ),
    ],
)
def test_each_of_the_two_versions_has_to_exist(runtime, more, sentence):
    said = releases.unknown_sentence(Runtime.of(runtime), **more)
    assert (said is None) if sentence is None else (said is not None and sentence in said)


def test_only_its_own_provider_comes_with_a_known_plug_in_of_other_people():
    assert providers.is_carried_by(providers.resolve("ggml"), "onnxruntime-ggml")
    assert providers.is_carried_by(providers.CPU, "onnxruntime-ggml")
    assert not providers.is_carried_by(providers.resolve("cuda"), "onnxruntime-ggml")
    assert not providers.is_carried_by(providers.resolve("ggml"), "onnxruntime")


def test_a_provider_that_only_a_plug_in_knows_has_its_own_name():
    entry = providers.provider_of("theirs")
    assert (entry.name, entry.tag, entry.takes_any_option) == ("theirs", "theirs", True)
    assert providers.provider_of("openvino") is providers.resolve("openvino")


@pytest.mark.parametrize("runtime", ["1.31.1", "onnxruntime-ggml==0.2.0"])
def test_a_provider_that_no_plug_in_of_the_runtime_can_register_is_refused_with_the_nearest_one(runtime):
    asked = {"allowed": GGML, "runtime": runtime, "provider": "openvno"}
    assert only_refusal(plan_of(asked)).text == "Unknown provider 'openvno': did you mean 'openvino'?"


def test_a_plug_in_that_no_table_knows_is_planned_with_the_provider_that_it_registers():
    plan = plan_of({"allowed": THEIRS, "runtime": "their-ep==3.1", "provider": "theirs"})
    spec = plan.blocks[0].arms[0].spec
    assert (str(spec.runtime), spec.provider, spec.hardware) == ("their-ep==3.1+onnxruntime.1.27.0", "theirs", "theirs")
