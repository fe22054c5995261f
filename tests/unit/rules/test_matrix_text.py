"""Matrix files as text: bounded, without aliases, without YAML's guesses."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices.matrix_text import MAX_CHARACTERS, read_text


def test_versions_stay_text_and_words_stay_words():
    text = "runtime: [1.20, 1.31.1]\nwords: [no, on, 2026-01-01, 1_0, 010, 0x1f, 1e3]\n"
    assert read_text(text) == {
        "runtime": ["1.20", "1.31.1"],
        "words": ["no", "on", "2026-01-01", "1_0", "010", "0x1f", "1e3"],
    }


def test_true_false_null_and_whole_numbers_are_read_as_such():
    assert read_text("a: [true, False, null, ~, 8, -1, 0]\nb:\n") == {
        "a": [True, False, None, None, 8, -1, 0],
        "b": None,
    }


def test_json_is_read_too():
    assert read_text(' {"batch": [1, 8], "fail-fast": true}') == {"batch": [1, 8], "fail-fast": True}


def test_a_yaml_mapping_in_braces_is_not_taken_for_broken_json():
    assert read_text("{batch: [1, 8]}") == {"batch": [1, 8]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x [1]\nb: *x\n", "Line 2 uses the alias \\*x: write the value out"),
        ("a: &x [*x]\n", "uses the alias"),
        ("batch: 1\nbatch: 2\n", "'batch' is given twice"),
        ('{"batch": 1, "batch": 2}', "'batch' is given twice"),
        ("include: [{batch: 1, batch: 2}]", "'batch' is given twice"),
        ('{"a": NaN}', "NaN is not a value"),
        ('{"a": -Infinity}', "-Infinity is not a value"),
        ('{"a": [1, }', "The matrix is not JSON: .* line 1, column 1"),
        ("a: [1, 2", "The matrix is not YAML: .* line 1"),
        ("a: 1\n---\nb: 2\n", "The matrix is not YAML: .*another document"),
        ("a: \x00", "The matrix is not YAML: "),
        ("a: !!python/object/apply:os.system [x]", "The matrix is not YAML: could not determine a constructor"),
        ("[" * 40, "nested deeper than 16 levels"),
        ("[" * 30_000, "nested deeper than 16 levels"),
        ('{"a":' * 30_000, "nested deeper than 16 levels"),
        ("x" * (MAX_CHARACTERS + 1), "at most 262,144 are read"),
        ("batch: [" + "1," * 10_000 + "]", "more than 10,000 keys and values: use axes"),
        ("\n".join(f"k{number}: 1" for number in range(6000)), "more than 10,000 keys and values"),
        ('{"a": 1e999}', "1e999 is not a value of a matrix"),
        ('{"a": "\\ud800"}', "half a character"),
        ('a: "\\uD800"\n', "half a character"),
        ('a: ["b", "c\\0"]\n', "holds NUL"),
    ],
)
def test_bad_text_is_refused_in_one_sentence(text, words):
    with pytest.raises(MatrixProblem, match=words) as caught:
        read_text(text)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(MatrixProblem):
        read_text(text)


@given(st.binary(max_size=120))
def test_any_bytes_as_text_are_read_or_refused(raw):
    with contextlib.suppress(MatrixProblem):
        read_text(raw.decode("latin-1"))


@pytest.mark.parametrize("form", ['{{"a": {}}}', "a: {}"])
def test_a_number_of_five_thousand_digits_stays_text(form: str) -> None:
    assert read_text(form.format("1" * 5000)) == {"a": "1" * 5000}
    assert read_text(form.format("-" + "9" * 18)) == {"a": -int("9" * 18)}
