from typing import get_args

import pytest

from dashboard import words
from farm.contract.reasons import CellStatus
from farm.rules.comparing.comparisons import Verdict


@pytest.mark.parametrize("word", [*get_args(Verdict), *(status.value for status in CellStatus)])
def test_every_verdict_and_status_has_a_sign_and_its_own_word(word: str) -> None:
    sign = words.sign_of(word)
    assert sign.mark
    assert sign.word == word


def test_an_unknown_state_is_shown_as_it_is() -> None:
    assert words.sign_of("half_done").word == "half done"


def test_providers_are_shortened_for_pages_only() -> None:
    assert words.provider("CPUExecutionProvider") == "CPU"
    assert words.provider("FancyExecutionProvider") == "Fancy"
    assert words.provider("ExecutionProvider") == "ExecutionProvider"


def test_runtimes_keep_the_part_of_their_name_that_tells_them_apart() -> None:
    assert words.runtime("onnxruntime==1.31.1") == "1.31.1"
    assert words.runtime("onnxruntime-openvino==1.24.1") == "openvino 1.24.1"
    assert words.runtime("nightly") == "nightly"
    assert words.runtime_in_words("onnxruntime==1.31.1") == "ONNX Runtime 1.31.1"
    assert words.runtime_in_words("onnxruntime-gpu==1.31.1") == "ONNX Runtime 1.31.1 (onnxruntime-gpu)"
    assert words.runtime_in_words("nightly") == "nightly"
