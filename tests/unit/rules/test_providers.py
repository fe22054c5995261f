"""The provider table and its names."""

import ast
import dataclasses
import re

import pytest

from farm.contract.cells import CellSpec, Runtime, SessionSettings
from farm.rules.runtimes import distributions, plugins, providers, releases
from farm.rules.runtimes.provider import Build, Building, Plugin, Provider, Signs
from farm.rules.runtimes.providers import PROVIDERS, ProviderOptionProblem, UnknownProvider
from tests.conftest import PROJECT

CELL_PATTERN = re.compile(r"^[A-Za-z0-9_]{1,64}$")


@pytest.mark.parametrize("entry", PROVIDERS, ids=lambda entry: entry.short)
def test_every_name_of_a_provider_leads_to_it(entry):
    for name in (entry.name, entry.short, entry.name.lower(), f" {entry.short.upper()} ", *entry.aliases):
        assert providers.resolve(name) is entry


@pytest.mark.parametrize("entry", PROVIDERS, ids=lambda entry: entry.short)
def test_every_entry_is_complete_enough_to_be_measured(entry):
    assert CELL_PATTERN.match(entry.name)
    assert entry.needs
    assert set(entry.defaults) <= entry.options
    assert not any(
        word in option for option in entry.options for word in ("path", "library", "compute_stream", "_file", "config")
    )


def test_a_plug_in_gets_the_threads_of_the_cell_where_its_own_library_has_an_option_for_them(monkeypatch):
    entry = providers.resolve("webgpu")
    (plugin,) = entry.plugins
    cell = CellSpec(
        artifact_sha256="0" * 64,
        runtime=Runtime(distribution=plugin.package, version=plugin.releases[-1]),
        provider=entry.name,
        session=SessionSettings(threads=3),
    )
    assert providers.session_options(entry, cell) == {}
    monkeypatch.setattr(plugins, "plugin_of", lambda runtime: dataclasses.replace(plugin, threads_option="threads"))
    assert providers.session_options(entry, cell) == {"threads": "3"}
    asked = cell.model_copy(update={"provider_options": {"threads": "1"}})
    assert providers.session_options(entry, asked) == {"threads": "1"}


def test_whatever_an_entry_says_is_read_by_somebody():
    read = {
        node.attr
        for package in ("farm", "worker", "onnxfarm", "dashboard")
        for path in (PROJECT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    for kind in (Provider, Build, Plugin, Signs, Building):
        assert {field.name for field in dataclasses.fields(kind)} <= read, kind.__name__


def test_names_are_not_shared():
    # one entry may be called the same by ONNX Runtime and by people
    names = [name for entry in PROVIDERS for name in {n.lower() for n in (entry.name, entry.short, *entry.aliases)}]
    assert len(names) == len(set(names))


def test_an_unknown_provider_is_answered_with_the_nearest_one():
    with pytest.raises(UnknownProvider, match="Unknown provider 'openvno': did you mean 'openvino'"):
        providers.resolve("openvno")


def test_a_word_that_is_near_nothing_is_answered_with_all_providers():
    with pytest.raises(UnknownProvider, match=r"choose one of cpu, xnnpack, .*webgpu"):
        providers.resolve("zzzzzz")


@pytest.mark.parametrize(
    ("name", "distribution", "carried"),
    [
        ("cpu", "onnxruntime", True),
        ("cpu", "onnxruntime-gpu", True),
        ("cuda", "onnxruntime-gpu", True),
        ("cuda", "onnxruntime", False),
        ("openvino", "onnxruntime-openvino", True),
        ("webgpu", "onnxruntime", False),
        ("webgpu", "onnxruntime-ep-webgpu", True),
        ("cpu", "onnxruntime-ep-webgpu", True),
        ("openvino", "onnxruntime-ep-openvino", True),
        ("openvino", "onnxruntime-ep-webgpu", False),
        ("xnnpack", "onnxruntime", False),
    ],
)
def test_a_provider_is_carried_by_its_distributions_only(name, distribution, carried):
    assert providers.is_carried_by(providers.resolve(name), distribution) is carried


def test_a_plug_in_loads_what_the_onnx_runtime_beside_it_loads():
    plugin = Runtime(distribution="onnxruntime-ep-webgpu", version="0.4.0")
    plain = Runtime(distribution="onnxruntime", version="1.20.0")
    assert str(plugins.core_of(plugin)) == "onnxruntime==1.31.1"
    assert plugins.core_of(plain) is plain
    assert plugins.library_for(plugin, "WebGpuExecutionProvider") == "onnxruntime_ep_webgpu:get_library_path"
    assert plugins.library_for(plugin, "CPUExecutionProvider") is None
    assert plugins.library_for(plain, "WebGpuExecutionProvider") is None


def test_plug_ins_number_their_releases_by_themselves():
    def known(version, **more):
        return releases.unknown_sentence(Runtime(distribution="onnxruntime-ep-webgpu", version=version), **more)

    assert known("0.4.0") is None
    assert known("1.31.1") == (
        "onnxruntime-ep-webgpu==1.31.1 does not exist: this farm knows 0.1.0, 0.2.1, 0.3.0, 0.4.0."
    )
    assert known("0.5.0", extra=[Runtime.of("onnxruntime-ep-webgpu==0.5.0")]) is None


def test_a_package_that_became_a_plug_in_was_a_build_before():
    def core(version):
        return plugins.core_of(Runtime(distribution="onnxruntime-qnn", version=version)).distribution

    assert (core("1.23.2"), core("2.7.0")) == ("onnxruntime-qnn", "onnxruntime")


@pytest.mark.parametrize(
    ("name", "options", "needed"),
    [
        ("cpu", {}, False),
        ("openvino", {"device_type": "CPU"}, False),
        ("openvino", {"device_type": "GPU"}, True),
        ("webgpu", {}, True),
        ("tensorrt", {}, True),
    ],
)
def test_only_what_runs_on_an_accelerator_reaches_device_files(name, options, needed):
    assert providers.needs_devices(providers.resolve(name), options) is needed


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CoreMLExecutionProvider", "Core ML"),
        ("CUDAExecutionProvider", "CUDA"),
        ("coreml", "coreml"),
        ("ExecutionProvider", "ExecutionProvider"),
        ("TheirExecutionProvider", "Their"),
    ],
)
def test_people_call_a_provider_by_its_title_or_by_its_own_part_of_the_name(name, words):
    assert providers.title(name) == words


def test_a_word_for_hardware_is_answered_with_the_providers_that_may_be_meant():
    with pytest.raises(UnknownProvider, match="Unknown provider 'radeon': did you mean 'migraphx' or 'rocm'"):
        providers.resolve("radeon")


@pytest.mark.parametrize(
    ("package", "extras", "is_complete"),
    [
        ("onnxruntime", "", True),
        ("onnxruntime-gpu", "[cuda,cudnn]", False),
        ("onnxruntime-migraphx", "", False),
        ("onnxruntime-training", "", False),
    ],
)
def test_a_build_is_installed_as_its_entry_says_and_another_with_all_it_depends_on(package, extras, is_complete):
    build = distributions.build_of(package)
    assert (build.package, build.extras, build.is_complete) == (package, extras, is_complete)


def test_an_option_that_a_provider_does_not_take_is_answered_with_the_nearest_one():
    with pytest.raises(ProviderOptionProblem, match=r"option of OpenVINOExecutionProvider 'device'.*'device_type'"):
        providers.check_options(providers.resolve("openvino"), {"device": "CPU"})


def test_an_option_that_names_a_library_is_refused():
    with pytest.raises(ProviderOptionProblem, match="backend_path"):
        providers.check_options(providers.resolve("qnn"), {"backend_path": "/tmp/evil.so"})


def test_a_provider_without_options_says_so():
    with pytest.raises(
        ProviderOptionProblem, match="CPUExecutionProvider takes no options here: leave out 'device_id'"
    ):
        providers.check_options(providers.CPU, {"device_id": "0"})


def test_options_of_the_table_are_taken():
    providers.check_options(providers.resolve("openvino"), {"device_type": "CPU", "num_streams": "2"})


def test_a_plug_in_takes_any_option():
    providers.check_options(providers.resolve("plug-in"), {"anything": "1"})


def test_options_of_the_matrix_override_the_defaults():
    openvino = providers.resolve("openvino")
    assert providers.with_defaults(openvino, {}) == {"device_type": "CPU"}
    assert providers.with_defaults(openvino, {"device_type": "GPU"}) == {"device_type": "GPU"}


@pytest.mark.parametrize(
    ("name", "options", "tag"),
    [
        ("cpu", {}, "cpu"),
        ("openvino", {"device_type": "CPU"}, "openvino"),
        ("openvino", {"device_type": "GPU.1"}, "openvino-gpu"),
        ("openvino", {"device_type": "NPU"}, "openvino-npu"),
        ("cuda", {"device_id": "0"}, "cuda"),
    ],
)
def test_the_device_in_the_options_decides_which_hardware_is_needed(name, options, tag):
    assert providers.resolve(name).tag_with(options) == tag


def test_a_session_is_asked_for_the_provider_and_then_the_cpu():
    assert providers.requested_list(providers.CPU) == ("CPUExecutionProvider",)
    assert providers.requested_list(providers.resolve("cuda")) == ("CUDAExecutionProvider", "CPUExecutionProvider")
