"""A user's own function that judges: what it is given and may give, and its own lines where it fails."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from worker.runner import faults
from worker.runner.judges import user_function

OUTPUTS = {"y": np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])}
DATA = {"x": np.zeros((3, 4)), "labels": np.array([1, 1, 1])}


def judged(folder: Path, text: str, *, function: str = "score", limit_s: float = 5.0) -> tuple[Any, bool]:
    (folder / "laid.py").write_text(text)
    source = user_function.UserJudge(str(folder / "laid.py"), "mine.py", function)
    return source.judge(OUTPUTS, DATA, count=3, limit_s=limit_s)


def test_it_is_given_the_outputs_and_the_data_and_gives_a_float_a_sample(tmp_path: Path) -> None:
    found, is_lower = judged(
        tmp_path,
        "def score(outputs, data):\n    return outputs['y'][range(3), data['labels']]\nscore.lower_is_better = 1\n",
    )
    assert (found.tolist(), is_lower) == ([0.9, 0.2, 0.7], True)


def test_it_may_say_of_each_sample_whether_it_is_right(tmp_path: Path) -> None:
    found, is_lower = judged(tmp_path, "def score(outputs, data):\n    return [True, False, True]\n")
    assert (found.dtype.kind, is_lower) == ("b", False)


def test_it_may_give_one_float_of_all(tmp_path: Path) -> None:
    assert judged(tmp_path, "def score(outputs, data):\n    return 0.25\n") == (0.25, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def score(outputs, data):\n    return [1.0, 2.0]\n", "float64 of shape [2]: return one float, or"),
        ("def score(outputs, data):\n    return None\n", "return one float"),
        ("def score(outputs, data):\n    return 'good'\n", "return one float"),
        ("def score(outputs, data):\n    return [0.0, float('nan'), 1.0]\n", "no finite number"),
        ("def score(outputs, data):\n    return 1e300\n", "no finite number"),
        ("def other(outputs, data):\n    return 1.0\n", "is not a function there; functions: other"),
        ("score = 1\n", "is not a function there; functions: none"),
        ("def score(outputs):\n    return 1.0\n", "takes 1 positional argument"),
        ("def score(outputs, data)\n    return 1.0\n", "SyntaxError: expected ':'; line 1"),
        ("import torch_of_nobody\n", "of packages numpy alone is there"),
        ("def score(outputs, data):\n    raise SystemExit(3)\n", "SystemExit: 3; line 2, in score"),
        ("def score(outputs, data):\n    return outputs['z']\n", "KeyError: 'z'; line 2, in score: return outputs["),
    ],
)  # fmt: skip
def test_what_cannot_be_used_ends_in_a_sentence(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(faults.Refusal) as refused:
        judged(tmp_path, text)
    assert words in refused.value.text
    assert refused.value.text.startswith("score of mine.py ")
    assert refused.value.code == "inference_failed"


def test_of_a_traceback_the_lines_of_its_own_file_are_told(tmp_path: Path) -> None:
    text = "import numpy\ndef part():\n    return numpy.concatenate([])\ndef score(outputs, data):\n    return part()\n"
    with pytest.raises(faults.Refusal) as refused:
        judged(tmp_path, text)
    assert "line 5, in score: return part(); line 3, in part: return numpy.concatenate([])" in refused.value.text
    assert "own.py" not in refused.value.text
    assert str(tmp_path) not in refused.value.text


def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(faults.Refusal, match="was not done after") as refused:
        judged(tmp_path, "def score(outputs, data):\n    while True: pass\n", limit_s=0.2)
    assert refused.value.code == "timeout"
    assert time.monotonic() - began < 4


def test_one_that_swallows_its_interruption_is_ended_too(tmp_path: Path) -> None:
    text = (
        "def score(outputs, data):\n    try:\n        while True: pass\n    except BaseException:\n        return 1.0\n"
    )
    with pytest.raises(faults.Refusal, match="was not done after"):
        judged(tmp_path, text, limit_s=0.2)
