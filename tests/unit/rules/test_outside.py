"""Entries of other people's packages: what is taken, and the sentence that refuses what is malformed."""

import dataclasses
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from farm.base.entry_points import InstalledEntries
from farm.rules.runtimes import outside, providers
from farm.rules.runtimes.provider import Build, Plugin, Provider
from farm.rules.runtimes.provider_table import OWN

PLUGIN = Plugin("acme-ep", library="acme_ep:library_path", releases=("1.0",), core="1.30.0", beside=">=1.29,<1.31")
ENTRY = Provider(
    name="AcmeExecutionProvider",
    short="acme",
    device="npu",
    tag="acme",
    needs="an Acme card",
    plugins=(PLUGIN,),
    options=frozenset({"speed"}),
    defaults={"speed": "2"},
    probe_with="acme-ep==1.0",
)


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = ModuleType("acme_entry")
    monkeypatch.setitem(sys.modules, "acme_entry", found)
    return found


def point(name: str = "acme", value: str = "acme_entry:ENTRY") -> EntryPoint:
    return EntryPoint(name, value, outside.GROUP)


def of(module: ModuleType, entry: object) -> InstalledEntries[Provider]:
    module.ENTRY = entry  # type: ignore[attr-defined]
    return outside.group(OWN).load([point()])


def test_an_entry_of_a_package_stands_behind_those_of_the_table(module: ModuleType) -> None:
    found = of(module, ENTRY)
    assert (found.entries, found.refused) == ((ENTRY,), {})


def test_an_entry_may_be_carried_by_a_build_of_the_table_or_by_the_owners_own(module: ModuleType) -> None:
    bare = dataclasses.replace(ENTRY, plugins=(), probe_with="")
    assert of(module, bare).entries == (bare,)
    carried = dataclasses.replace(bare, builds=(Build("onnxruntime-gpu"),), quantisation={"activation": "int8"})
    assert of(module, carried).entries == (carried,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Acme Provider"}, "name has 'Acme Provider'"),
        ({"short": "ac/me"}, "short has 'ac/me'"),
        ({"short": ""}, "short has ''"),
        ({"tag": "Acme"}, "tag has 'Acme'"),
        ({"aliases": ("a b",)}, "aliases has 'a b'"),
        ({"builds": (Build("../evil"),)}, "builds has '../evil'"),
        ({"computes_with": ("",)}, "computes_with has ''"),
        ({"device": "tpu"}, "device: Input should be 'cpu', 'gpu' or 'npu'"),
        ({"options": None}, "options: "),
        ({"needs": " "}, "needs is empty"),
        ({"colour": 8}, "colour has 8: write one of 1 to 7"),
        ({"options": frozenset({"cache_path", "speed"})}, "'cache_path' names a file or a library"),
        ({"options": frozenset()}, "defaults has 'speed', which is not one of its options"),
        ({"quantisation": {"activation": "int4"}}, "quantisation has activation=int4"),
        ({"quantisation": {"weight": "int8"}}, "quantisation has weight=int8"),
        ({"probe_with": "acme-ep"}, "probe_with has 'acme-ep'"),
        ({"probe_with": "other==1.0"}, "probe_with has 'other==1.0'"),
        ({"short": "cuda"}, "'cuda' is the name of CUDAExecutionProvider already"),
        ({"aliases": ("CPU",)}, "'cpu' is the name of CPUExecutionProvider already"),
        ({"tag": "openvino"}, "'openvino' is the name of OpenVINOExecutionProvider already"),
    ],
)
def test_a_malformed_entry_is_refused_in_words(module: ModuleType, change: dict[str, object], words: str) -> None:
    found = of(module, dataclasses.replace(ENTRY, **change))
    assert found.entries == ()
    assert found.refused["acme"].startswith("The provider 'acme' is left out: ")
    assert words in found.refused["acme"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"package": "acme ep"}, "plugins has the package 'acme ep'"),
        ({"library": "/usr/lib/evil.so"}, "the library of acme-ep is '/usr/lib/evil.so'"),
        ({"releases": ("newest",)}, "the release 'newest'"),
        ({"releases": ("1.0+" + "9" * 30,)}, "the release '1.0+9"),
        ({"beside": ""}, "beside of acme-ep is ''"),
        ({"beside": "1.30"}, "beside of acme-ep is '1.30'"),
        ({"core": "1.31.1"}, "beside of acme-ep is '>=1.29,<1.31'"),
        ({"package": "onnxruntime-qnn"}, "onnxruntime-qnn carries QNNExecutionProvider already"),
    ],
)
def test_a_malformed_plug_in_is_refused_in_words(module: ModuleType, change: dict[str, object], words: str) -> None:
    plugin = dataclasses.replace(PLUGIN, **change)
    assert words in of(module, dataclasses.replace(ENTRY, plugins=(plugin,), probe_with="")).refused["acme"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("acme_entry:MISSING", "acme_entry:MISSING cannot be imported (AttributeError: "),
        ("no_such_module:ENTRY", "(ModuleNotFoundError: "),
        ("acme_entry:__name__", "acme_entry:__name__ is a str and has to be a Provider."),
    ],
)
def test_a_point_that_leads_to_no_entry_is_refused_in_words(value: str, words: str) -> None:
    assert words in outside.group(OWN).load([point(value=value)]).refused["acme"]


def test_of_two_entries_of_one_name_the_first_has_it(module: ModuleType) -> None:
    module.ENTRY = ENTRY  # type: ignore[attr-defined]
    found = outside.group(OWN).load([point("b"), point("a")])
    assert found.entries == (ENTRY,)
    assert "is the name of AcmeExecutionProvider already" in found.refused["b"]


def test_a_refusal_names_the_package_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    about = tmp_path / "acme_onnxfarm-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-onnxfarm\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{outside.GROUP}]\nacme = acme_entry:ENTRY\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = outside.group(OWN).load_installed()
    assert found.refused["acme"].startswith("The provider 'acme' of acme-onnxfarm is left out: acme_entry:ENTRY cannot")
    assert found.refused["acme"] in caplog.messages


def test_who_asks_for_a_provider_whose_entry_was_left_out_reads_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "OUTSIDE", InstalledEntries(refused={"acme": "The provider 'acme' is left out."}))
    assert providers.unknown_sentence(" Acme ") == "The provider 'acme' is left out."
