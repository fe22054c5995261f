"""Functions of ours, called in a confined child."""

from pathlib import Path

import pytest

from farm.sandbox import child
from farm.sandbox.policy import Policy


def test_a_function_gets_its_payload_and_its_answer_comes_back() -> None:
    ending = child.run_function("json:dumps", {"a": [1, None, "é"]}, policy=Policy(), timeout_s=100)
    assert ending.is_done
    assert ending.parse_reply() == '{"a": [1, null, "\\u00e9"]}'


def test_an_exception_ends_the_child_with_its_own_words() -> None:
    ending = child.run_function("json:loads", {"not": "text"}, policy=Policy(), timeout_s=100)
    assert (ending.kind, ending.exit_code) == ("exited", 1)
    assert "the JSON object must be str" in ending.describe()


def test_a_reply_that_is_no_json_is_an_error_of_value() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        child.run_command(["/bin/true"], policy=Policy(), timeout_s=100).parse_reply()


def test_the_rest_of_the_source_folder_stays_hidden() -> None:
    beside = Path(child.__file__).resolve().parents[2] / "pyproject.toml"
    ending = child.run_function("builtins:open", str(beside), policy=Policy(), timeout_s=100)
    assert not ending.is_done
    assert "Permission denied" in ending.stderr_tail or "No such file" in ending.stderr_tail
