"""What pip says of an index, read."""

import pytest

from farm.contract.cells import Runtime
from farm.rules.runtimes import releases
from farm.rules.runtimes.listings import Listing, read_listing
from farm.rules.runtimes.releases import unknown_sentence, yanked_sentence

FILES = "http://u:****@index.example/files"
TAGS = "cp311-cp311-manylinux_2_28_x86_64.whl"
NO_DEFAULT = f"""1 location(s) to search for versions of onnxruntime:
  Found link {FILES}/onnxruntime-1.29.0-{TAGS}#sha256=00 (from http://index.example/simple/), version: 1.29.0
  Skipping link: yanked for reason: broken: see http://x/y : {FILES}/onnxruntime-1.30.0-{TAGS}#sha256=00 (from http://i/)
  Skipping link: yanked for reason: another word: {FILES}/onnxruntime-1.30.0-cp312-{TAGS} (from http://i/)
  Skipping link: yanked for reason: <none given>: {FILES}/ort-2.0%2Blocal-{TAGS} (from http://i/) (requires-python:>=3)
  Skipping link: yanked for reason: one file of two: {FILES}/onnxruntime-1.29.0-cp312-{TAGS} (from http://i/)
  Skipping link: yanked for reason: : {FILES}/onnxruntime-1.14.0.tar.gz
  Skipping link: yanked for reason: no version: {FILES}/onnxruntime.whl
Skipping link: not a file: http://index.example/simple/onnxruntime/
"""
LISTED = "onnxruntime (1.29.0)\nAvailable versions: 1.29.0, 1.28.0, newest\n"
YANKED = {"1.30.0": "broken: see http://x/y", "2.0+local": "", "1.14.0": ""}


def test_offered_and_yanked_releases_are_told_apart() -> None:
    assert read_listing(NO_DEFAULT + LISTED) == Listing(("1.29.0", "1.28.0"), YANKED)


def test_an_index_where_all_is_yanked_has_answered() -> None:
    assert read_listing(NO_DEFAULT) == Listing((), {**YANKED, "1.29.0": "one file of two"})


@pytest.mark.parametrize("said", ["", "ERROR: No matching distribution found for onnxruntime"])
def test_what_lists_nothing_is_no_listing(said: str) -> None:
    assert read_listing(said) is None


@pytest.mark.parametrize(
    ("runtime", "yanked", "said"),
    [
        ("onnxruntime==1.31.1", {"onnxruntime==1.31.1": "bad."}, "index (bad): the nearest that was not is 1.31.0."),
        (
            "onnxruntime==1.40.0",
            {"onnxruntime==1.40.0": ""},
            f"index: the nearest that was not is {releases.ONNXRUNTIME[-1]}.",
        ),
        (
            "onnxruntime-ep-webgpu==0.4.0",
            {f"onnxruntime-ep-webgpu=={version}": "" for version in ("0.1.0", "0.2.1", "0.3.0", "0.4.0")},
            "index: name another one.",
        ),
    ],
)
def test_a_yanked_release_is_told_with_the_nearest_other_one(runtime: str, yanked: dict[str, str], said: str) -> None:
    asked, taken = Runtime.of(runtime), {Runtime.of(text): why for text, why in yanked.items()}
    sentence = unknown_sentence(asked, extra=[asked], yanked=taken)
    assert sentence == f"{runtime} was yanked from the package {said}"
    assert yanked_sentence(asked, taken) == sentence
