"""Package indexes that an admin adds: names, addresses, and what of a page that a stranger wrote is believed."""

import json
from typing import Any

import pytest

from farm.contract.blocks import WheelFile
from farm.contract.cells import Runtime
from farm.rules.runtimes import indexes, order, plugins, releases
from farm.rules.runtimes.indexes import IndexProblem
from farm.rules.wording import titles

ADDRESS = "https://feed.example/simple/onnxruntime/"
SHA = "a" * 64
NAME = "onnxruntime-1.33.0.dev20261120-cp311-cp311-manylinux_2_28_x86_64.whl"
BUILD = "1.33.0.dev20261120+at.nightly"


def page(body: object, media_type: str = "application/vnd.pypi.simple.v1+json") -> dict[str, tuple[WheelFile, ...]]:
    plain = body if isinstance(body, str) else json.dumps(body)
    return indexes.read_page(plain.encode(), media_type, address=ADDRESS, distribution="onnxruntime", index="nightly")


def entry(**changes: Any) -> dict[str, Any]:
    return {"filename": NAME, "url": f"../../files/{NAME}", "hashes": {"sha256": SHA}, **changes}


WHEEL = WheelFile(name=NAME, url=f"https://feed.example/files/{NAME}", sha256=SHA)


def test_both_forms_of_a_page_say_which_wheels_there_are() -> None:
    assert page({"files": [entry()]}) == {BUILD: (WHEEL,)}
    link = f'<a href="/files/{NAME}?from=here#sha256={SHA}" rel=x>w</a>'
    (found,) = page(f"<!DOCTYPE html><body><a>top</a><a href>none</a>{link}</body>", "text/html")[BUILD]
    assert (found.name, found.sha256, found.url) == (NAME, SHA, f"{WHEEL.url}?from=here")


@pytest.mark.parametrize(
    "changes",
    [
        {"filename": "../../onnxruntime-1.33.0-py3-none-any.whl"},
        {"filename": "evil-1.33.0-py3-none-any.whl"},
        {"filename": "onnxruntime_gpu-1.33.0-py3-none-any.whl"},
        {"filename": "onnxruntime-1.33.0.tar.gz"},
        {"filename": "onnxruntime-new-py3-none-any.whl"},
        {"filename": "onnxruntime-1!33.0-py3-none-any.whl"},
        {"filename": f"onnxruntime-1.33.0.dev{'1' * 30}-py3-none-any.whl"},
        {"filename": None},
        {"filename": ["onnxruntime"]},
        {"hashes": {}},
        {"hashes": {"sha256": "A" * 64}},
        {"hashes": {"md5": SHA}},
        {"hashes": SHA},
        {"url": f"http://feed.example/{NAME}"},
        {"url": f"http://127.0.0.1:8000/{NAME}"},
        {"url": f"file:///etc/{NAME}"},
        {"url": f"https://ada:secret@feed.example/{NAME}"},
        {"url": f"https://[feed.example/{NAME}"},
        {"url": f"https://feed.example:port/{NAME}"},
        {"url": f"https://:443/{NAME}"},
        {"url": f"https://feed.example/a b/{NAME}"},
        {"url": f"https://feed.example/{'x' * 1000}"},
        {"url": 7},
        {"yanked": True},
        {"yanked": "broken on Arm"},
    ],
    ids=str,
)
def test_a_file_that_is_not_what_was_asked_for_is_passed_over(changes: dict[str, Any]) -> None:
    assert page({"files": [entry(**changes), 3, None]}) == {}


@pytest.mark.parametrize("body", ["", "null", "[]", '{"files": {}}', '{"files": 1}', "[" * 100_000])
def test_an_answer_that_is_no_list_of_files_is_a_problem(body: str) -> None:
    with pytest.raises(IndexProblem, match="something else than a list of files"):
        page(body)


def test_of_one_version_no_more_files_are_kept_than_an_order_takes() -> None:
    many = [entry(filename=f"onnxruntime-1.33.0-py3-none-linux_{number}.whl") for number in range(100)]
    assert [len(files) for files in page({"files": many}).values()] == [indexes.MAX_FILES]


@pytest.mark.parametrize(
    ("own", "version"),
    [("1.33.0.dev20261120", BUILD), ("1.33.0", "1.33.0+at.nightly"), ("1.33.0+acme1", "1.33.0+acme1.at.nightly")],
)
def test_a_build_names_its_index_in_its_version(own: str, version: str) -> None:
    ((found, _),) = page({"files": [entry(filename=f"onnxruntime-{own}-py3-none-any.whl")]}).items()
    assert found == version
    assert indexes.split_index(version) == (own, "nightly")
    assert titles.runtime(Runtime.of(f"onnxruntime=={version}")) == f"{own} from nightly"
    assert titles.runtime(Runtime.of(f"onnxruntime-gpu=={version}")) == f"gpu {own} from nightly"
    assert titles.runtime_in_words(Runtime.of(f"onnxruntime=={version}")) == f"ONNX Runtime {own} from nightly"
    assert plugins.describe_older_version(version, "1.34.0") == f"{own} from nightly"
    assert order.is_prerelease(version), "only who asks for early builds gets one"


@pytest.mark.parametrize("version", ["1.33.0", "1.33.0+sha3f2a91b", "1.33.0+attic.x", "1.33.0+at.Nightly", "1.33.0+at"])
def test_other_versions_are_of_the_usual_index(version: str) -> None:
    assert indexes.split_index(version) == (version, "")
    assert indexes.describe_version(version) == version


@pytest.mark.parametrize("distribution", ["onnxruntime", "onnxruntime-gpu", "torch"])
def test_a_build_exists_where_its_index_was_seen_to_offer_it(distribution: str) -> None:
    runtime = Runtime(distribution=distribution, version=BUILD)
    assert releases.unknown_sentence(runtime, extra=[runtime]) is None
    sentence = releases.unknown_sentence(runtime, extra=[Runtime.of(f"{distribution}==1.33.0.dev20261120")])
    assert sentence == f"{distribution} 1.33.0.dev20261120 is not on the index nightly, as far as is known here."


@pytest.mark.parametrize("name", ["", "Nightly", "night-ly", "9lives", "a" * 11, "näch", "a b", "a\n"])
def test_a_name_that_could_not_stand_in_a_version_is_refused(name: str) -> None:
    with pytest.raises(IndexProblem, match="small letters and digits"):
        indexes.read_name(name)


@pytest.mark.parametrize(
    "address",
    [
        "https://ada:hunter2@feed.example/simple/",
        "https://hunter2@feed.example/simple/",
        "http://feed.example/hunter2/",
        "ftp://feed.example/hunter2/",
        "feed.example/hunter2",
        "https:///hunter2",
        "https://feed.example/simple/?token=hunter2",
        "https://feed.example/simple/#hunter2",
        "https://feed.example:hunter2/",
        "https://feed.example:0/hunter2",
        "https://[hunter2/",
        "https://feed.example/hunt er2",
        "https://feed.example/h\x00unter2",
        f"https://feed.example/{'hunter2' * 60}",
        "",
    ],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(IndexProblem) as refused:
        indexes.read_address(address)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("address", ["https://feed.example/simple", " https://feed.example/simple/ "])
def test_an_address_ends_with_a_slash(address: str) -> None:
    assert indexes.read_address(address) == "https://feed.example/simple/"
    assert indexes.page_address("https://feed.example/simple/", "onnxruntime") == ADDRESS


def test_this_machine_alone_is_asked_without_encryption_and_by_nobody_else() -> None:
    assert indexes.read_address("http://127.0.0.1:8000/simple") == "http://127.0.0.1:8000/simple/"
    assert indexes.may_be_fetched("http://localhost/a.whl", beside="http://127.0.0.1:8000/simple/")
    assert not indexes.may_be_fetched("http://10.0.0.1/a.whl", beside="http://127.0.0.1:8000/simple/")
    assert not indexes.may_be_fetched("http://127.0.0.1/a.whl", beside=ADDRESS)
    assert indexes.may_be_fetched("https://files.example/a.whl", beside=ADDRESS)


def test_several_indexes_of_ones_own_are_read_from_one_text() -> None:
    text = "nightly=https://feed.example/simple, own=http://localhost:1/"
    assert indexes.read_addresses(text) == {"nightly": "https://feed.example/simple/", "own": "http://localhost:1/"}
    assert indexes.read_addresses(" ") == {}
    for wrong in ("nightly", "https://feed.example/", "a=https://b.example/,a=https://c.example/"):
        with pytest.raises(IndexProblem):
            indexes.read_addresses(wrong)
