"""What is made of the status with which a gate's process ended."""

import signal

import pytest

from onnxfarm import gate_process


@pytest.mark.parametrize(
    ("status", "is_judged", "code"),
    [(0, False, 0), (1, True, 1), (1, False, 70), (2, False, 2), (70, True, 70), (-signal.SIGTERM, False, 143)],
)
def test_a_gate_that_failed_without_having_judged_failed_itself(status: int, is_judged: bool, code: int) -> None:
    assert gate_process.compute_exit_code(status, is_judged=is_judged) == code


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "onnxfarm: no index"),
        (70, "The gate itself failed: onnxfarm: no index; nothing is said of the model."),
        (137, "The gate itself failed: it was ended by SIGKILL; nothing is said of the model."),
        (255, "The gate itself failed: it was ended by signal 127; nothing is said of the model."),
        (130, "Cancelled before the end: nothing is said of the model."),
        (143, "Cancelled before the end: nothing is said of the model."),
    ],
)
def test_what_nothing_was_judged_for_is_said_in_a_sentence(code: int, words: str) -> None:
    assert gate_process.explain_end(code, "onnxfarm: no index") == words


def test_a_gate_that_printed_nothing_is_told_to_have() -> None:
    assert gate_process.explain_end(70, "").endswith("it printed nothing; nothing is said of the model.")
