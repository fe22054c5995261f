"""ONNX Runtime Web: which releases there are, what runs them, and what a plan says of everything else."""

import pytest

from farm.contract.cells import Runtime
from farm.rules.planning.plans import NodeOffer
from farm.rules.runtimes import distributions, order, releases, web
from tests.unit.rules.making import only_refusal, plan_of

TAB = NodeOffer(
    id="7",
    name="phone",
    tags=frozenset({"wasm"}),
    providers=frozenset({"WasmExecutionProvider"}),
    is_browser=True,
    cores=8,
)
BENCH = NodeOffer(id="1", name="bench", cores=8)
WEB = f"{web.DISTRIBUTION}=={web.RELEASES[-1]}"
BUILD = "1.26.0-dev.20260416-b7804b056c"
# a browser whose adapter is the processor in a GPU's place
SOFTWARE = TAB.model_copy(
    update={
        "tags": frozenset({"wasm", "webgpu-simulated"}),
        "providers": frozenset({"WasmExecutionProvider", "WebGpuExecutionProvider"}),
    }
)


def asked(fleet=(TAB, BENCH), **options):
    given = {"runtime": [WEB], "provider": ["wasm"], **options}
    return plan_of(given, fleet=fleet)


def test_a_browser_takes_what_is_made_for_browsers_and_no_other_node_does():
    (block,) = asked().blocks
    assert block.nodes == ("7",)
    assert asked(fleet=(BENCH,)).refused[0].reason.code == "no_node"


def test_a_browser_takes_nothing_else_though_it_is_named():
    plan = asked(runtime=["1.31.1"], provider=["cpu"], hardware=["node:phone"])
    assert plan.refused[0].reason.code == "no_node"


def test_two_releases_are_two_arms_of_one_block():
    (block,) = asked(runtime=[f"{web.DISTRIBUTION}==1.29.0", WEB]).blocks
    assert [arm.spec.runtime.version for arm in block.arms] == ["1.29.0", web.RELEASES[-1]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"memory-limit-mb": [1024]}, "has no memory-limit-mb: leave that out for browsers"),
        ({"provider": ["cpu"]}, "which runs in browsers: set `provider: wasm`, `webgpu` or `webnn`"),
        ({"policy": ["prefer-npu"]}, "has no policy: leave that out for browsers"),
        ({"concurrency": [2]}, "has no concurrency: leave that out for browsers"),
        ({"session": [{"name": "side", "execution_mode": "parallel"}]}, "execution_mode: parallel"),
        ({"runtime": ["onnxruntime==1.31.1"]}, "it comes with onnxruntime-web"),
        ({"provider": [{"name": "webgpu", "options": {"preferredLayout": "NHWC"}}]}, "has no options of providers"),
        ({"provider": ["webgpu"], "runtime": [f"{web.DISTRIBUTION}==1.22.0"]}, "WebGPU and WebNN need 1.23.2 or newer"),
        ({"provider": ["webgpu"], "threads": [4]}, "has one thread beside WebGPU or WebNN: set `threads: 1`"),
    ],
)
def test_what_browsers_do_not_do_is_refused_in_words(options, words):
    assert words in only_refusal(asked(**options)).text


def test_a_machine_that_measures_by_itself_is_no_browser():
    assert "runs in browsers and not on this machine" in only_refusal(asked(fleet=None)).text


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (web.RELEASES[0], None),
        ("1.99.0", None),
        (BUILD, None),
        ("1.17.0-dev.20240101-b7804b056c", "is not made of modules: take 1.19.0 or newer"),
        ("1.17.3", "is not made of modules: take 1.19.0 or newer"),
        ("1.30.0.dev1", "does not exist as far as this farm knows: the nearest is 1.30.0"),
        ("1.23.1", "does not exist as far as this farm knows: the nearest is"),
    ],
)
def test_a_release_is_known_newer_than_known_or_answered_with_the_nearest(version, words):
    sentence = releases.unknown_sentence(distributions.parse_runtime(f"{web.DISTRIBUTION}=={version}"))
    assert sentence is None if words is None else words in (sentence or "")


def test_no_node_installs_it_with_python():
    assert web.DISTRIBUTION not in distributions.EVERY_DISTRIBUTION
    assert distributions.is_known(web.DISTRIBUTION)


def test_a_dated_build_is_read_as_npm_writes_it_and_stands_before_its_release():
    assert distributions.parse_runtime(f"{web.DISTRIBUTION}=={BUILD}").version == BUILD
    assert order.is_prerelease(BUILD)
    assert sorted(["1.26.0", BUILD, "1.25.1"], key=order.release_order) == ["1.25.1", BUILD, "1.26.0"]
    assert distributions.refusal(Runtime(distribution=web.DISTRIBUTION, version=BUILD)) is None


@pytest.mark.parametrize("text", [f"onnxruntime=={BUILD}", f"{web.DISTRIBUTION}==1.26.0-dev.x-b7804b056c"])
def test_elsewhere_such_a_number_is_no_version(text):
    with pytest.raises(distributions.RuntimeProblem, match="one version"):
        distributions.parse_runtime(text)


def test_a_browser_with_an_adapter_takes_webgpu_where_its_tag_says_so():
    real = SOFTWARE.model_copy(update={"tags": frozenset({"wasm", "webgpu"})})
    assert asked(fleet=(real,), provider=["webgpu"]).blocks[0].nodes == ("7",)
    assert asked(fleet=(TAB,), provider=["webgpu"]).refused[0].reason.code == "no_node"


def test_software_in_a_gpus_place_is_asked_for_by_its_own_tag():
    text = only_refusal(asked(fleet=(SOFTWARE,), provider=["webgpu"])).text
    assert "`hardware: [webgpu-simulated]` takes a simulator" in text
    (block,) = asked(fleet=(SOFTWARE,), provider=["webgpu"], hardware=["webgpu-simulated"]).blocks
    assert block.arms[0].spec.hardware == "webgpu-simulated"


def test_a_release_that_npm_took_back_is_answered_with_the_nearest_that_it_did_not():
    runtime = distributions.parse_runtime(WEB)
    sentence = releases.unknown_sentence(runtime, yanked={Runtime.of(WEB): "broken on Arm"})
    assert "yanked from the package index (broken on Arm): the nearest that was not is 1.29.0" in sentence


@pytest.mark.parametrize(("version", "files"), [("1.22.0", web.FILES), ("1.30.0", (*web.FILES, *web.WEBGPU_FILES))])
def test_the_files_of_a_release_are_those_that_its_browsers_load(version, files):
    assert web.list_files(version) == files


@pytest.mark.parametrize("version", web.RELEASES)
def test_of_every_known_release_the_wheel_has_the_digest_of_each_file(version):
    assert set(web.pins_of(version)) == set(web.list_files(version))
    assert web.mismatch_sentence(version, web.pins_of(version)) is None


def test_a_file_that_is_not_the_known_one_is_named_with_both_digests():
    files = {**web.pins_of("1.30.0"), web.MODULE: "0" * 64}
    sentence = web.mismatch_sentence("1.30.0", files) or ""
    assert sentence.startswith(
        f"{web.MODULE} of onnxruntime-web 1.30.0 is not the one that this farm knows (000000000000…"
    )
    assert web.pins_of("1.30.0")[web.MODULE][:12] in sentence


def test_a_release_that_the_wheel_does_not_know_is_unpinned():
    assert web.is_unpinned(Runtime.of(f"{web.DISTRIBUTION}=={BUILD}"))
    assert not web.is_unpinned(Runtime.of(WEB))
    assert not web.is_unpinned(Runtime.of("onnxruntime==1.31.1"))
    assert web.mismatch_sentence(BUILD, {web.MODULE: "0" * 64}) is None


def test_webnn_that_no_browser_has_proven_is_refused_in_words():
    (refused,) = asked(provider=["webnn"], fleet=(SOFTWARE,)).refused
    assert refused.reason.code == "no_node"
    assert "webnn" in refused.reason.text
    there = TAB.model_copy(
        update={
            "tags": frozenset({"wasm", "webnn"}),
            "providers": frozenset({"WasmExecutionProvider", "WebNNExecutionProvider"}),
        }
    )
    (block,) = asked(provider=["webnn"], fleet=(there,)).blocks
    assert block.nodes == ("7",)
