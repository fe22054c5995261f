from typing import NamedTuple, get_args

import pytest

from farm.contract.cells import Runtime
from farm.contract.reasons import CellStatus
from farm.contract.verdicts import ItemsVerdict, MetricVerdict, Verdict
from farm.rules.wording import titles
from farm.rules.wording.vocabulary import VERDICTS, opposite_of, rank, sign_of, with_mark


@pytest.mark.parametrize("word", [*get_args(Verdict), *(status.value for status in CellStatus)])
def test_every_verdict_and_status_has_a_sign_and_its_own_word(word: str) -> None:
    sign = sign_of(word)
    assert sign.mark
    assert sign.word == word


def test_every_verdict_of_documents_is_in_the_vocabulary() -> None:
    assert {*get_args(Verdict), *get_args(ItemsVerdict), *get_args(MetricVerdict)} == set(VERDICTS)


@pytest.mark.parametrize("word", VERDICTS)
def test_the_opposite_of_the_opposite_is_the_word(word: str) -> None:
    assert opposite_of(opposite_of(word)) == word
    assert {VERDICTS[word].tone, VERDICTS[opposite_of(word)].tone} in ({"quiet"}, {"slower", "faster"})


def test_losses_come_before_gains_and_gains_before_what_is_open() -> None:
    words = ["not comparable", "equal", "undecided", "faster", "slower"]
    assert sorted(words, key=rank) == ["slower", "faster", "undecided", "equal", "not comparable"]
    assert rank("unheard of") > rank("not comparable")


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("slower", "▲ slower"),
        ("timeout", "✕ timeout"),
        ("refused", "⊘ refused"),
        ("done", "done"),
    ],
)
def test_a_sign_never_stands_alone(word: str, shown: str) -> None:
    assert with_mark(word) == shown


def test_an_unknown_state_is_shown_as_it_is() -> None:
    assert sign_of("half_done").word == "half done"


def test_providers_are_shortened_for_pages_only() -> None:
    assert titles.provider("CPUExecutionProvider") == "CPU"
    assert titles.provider("FancyExecutionProvider") == "Fancy"
    assert titles.provider("ExecutionProvider") == "ExecutionProvider"


def test_runtimes_keep_the_part_of_their_name_that_tells_them_apart() -> None:
    assert titles.runtime(Runtime.of("onnxruntime==1.31.1")) == "1.31.1"
    assert titles.runtime(Runtime.of("onnxruntime-openvino==1.24.1")) == "openvino 1.24.1"
    assert titles.runtime(Runtime.of("nightly")) == "nightly"
    assert titles.runtime_in_words(Runtime.of("onnxruntime==1.31.1")) == "ONNX Runtime 1.31.1"
    assert titles.runtime_in_words(Runtime.of("onnxruntime-gpu==1.31.1")) == "ONNX Runtime 1.31.1 (onnxruntime-gpu)"
    assert titles.runtime_in_words(Runtime.of("nightly")) == "nightly"


def test_a_plug_in_is_named_with_the_onnx_runtime_beside_it() -> None:
    requirement = "ggml==0.2.0+onnxruntime.1.30.0"
    assert titles.runtime(Runtime.of(requirement)) == "ggml 0.2.0 on 1.30.0"
    assert titles.runtime_in_words(Runtime.of(requirement)) == "ggml 0.2.0 on ONNX Runtime 1.30.0"


class Setting(NamedTuple):
    runtime: str
    provider: str
    precision: str
    batch: int | None
    threads: int | None


@pytest.mark.parametrize(
    ("batch", "threads", "shown"),
    [
        (8, 1, "1.31.1, CPU, int8-dynamic, batch 8, 1 thread"),
        (None, 4, "1.31.1, CPU, int8-dynamic, 4 threads"),
        (1, None, "1.31.1, CPU, int8-dynamic, batch 1"),
    ],
)
def test_a_setting_names_the_batch_and_threads_that_were_chosen(batch: int | None, threads: int | None, shown: str):
    setting = Setting("onnxruntime==1.31.1", "CPUExecutionProvider", "int8-dynamic", batch, threads)
    assert titles.setting(setting) == shown


def test_since_when_is_no_more_than_was_measured() -> None:
    known = {"good": "1.29.0", "bad": "1.32.0"}
    assert titles.format_since("onnxruntime", **known) == "between 1.29.0 and 1.32.0"
    assert titles.format_since("onnxruntime", **known, first_bad="1.30.0") == "since 1.30.0"
