"""How an input is made, as commands and matrices write it."""

import pytest

from farm.rules.cells import fills
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix, settings


@pytest.mark.parametrize(
    ("text", "fill"),
    [
        ("16000", fills.Fill("value", 16000, 16000)),
        ("-0.5", fills.Fill("value", -0.5, -0.5)),
        ("0..177", fills.Fill("range", 0, 177)),
        ("-1.5..1.5@7", fills.Fill("range", -1.5, 1.5, seed=7)),
        ("normal@0", fills.Fill("normal", seed=0)),
        ("positions", fills.Fill("positions")),
        ("positions:past", fills.Fill("positions", dimension="past")),
        ("size:sequence", fills.Fill("size", dimension="sequence")),
        ("below:nodes@3", fills.Fill("below", dimension="nodes", seed=3)),
        ("of:-1|0.5@2", fills.Fill("of", -1, 0.5, seed=2, numbers=(-1, 0.5))),
        ("boxes:1000", fills.Fill("boxes", 0, 1000)),
        ("words", fills.Fill("words")),
        ("words:fox|dog", fills.Fill("words", texts=("fox", "dog"))),
        ("text:a|b c@4", fills.Fill("text", texts=("a", "b c"), seed=4)),
    ],
)
def test_a_text_says_how_an_array_is_made(text: str, fill: fills.Fill) -> None:
    assert fills.parse(text) == fill


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9..1", "ends below its start"),
        ("a..b", "cannot be made of 'a..b'"),
        ("positions@1", "cannot be made of"),
        ("positions:", "cannot be made of"),
        ("text:", "cannot be made of"),
        ("below:", "cannot be made of"),
        ("of:", "cannot be made of"),
        ("of:1|", "cannot be made of"),
        ("boxes:a", "cannot be made of"),
        ("boxes:-1", "boxes:1000"),
        ("boxes:1|2", "boxes:1000"),
        ("", "cannot be made of"),
        ("99999999999999999999", "64 bits"),
        ("1e999", "too large"),
        ("-1e308..1e308", "wider than any floating point number"),
    ],
)
def test_a_text_that_says_nothing_is_told_what_can_be_written(text: str, words: str) -> None:
    with pytest.raises(MatrixProblem, match=words):
        fills.parse(text)


@pytest.mark.parametrize(
    ("text", "dtype", "words"),
    [
        ("normal", "int64", "a normal distribution has fractions"),
        ("0.5", "int32", "0.5 is not a whole number"),
        ("0..1.5", "int32", "1.5 is not a whole number"),
        ("0..256", "uint8", "from 0 to 255"),
        ("-129", "int8", "from -128 to 127"),
        ("0..2", "bool", "from 0 to 1"),
        ("of:0|0.5|2", "int64", "0.5 is not a whole number"),
        ("of:-1|1", "uint8", "from 0 to 255"),
        ("boxes:1000", "uint8", "from 0 to 255"),
        ("of:1", "string", "strings are made by"),
        ("words", "int64", "strings are made by"),
        ("5", "string", "strings are made by"),
    ],
)
def test_numbers_that_a_type_does_not_hold_are_told(text: str, dtype: str, words: str) -> None:
    assert words in str(fills.misfit_reason(fills.parse(text), dtype))


def test_a_type_holds_its_own_usual_numbers() -> None:
    for dtype in ("float32", "float16", "bfloat16", "int8", "uint8", "int64", "uint16", "bool", "string"):
        assert fills.misfit_reason(fills.parse(fills.default_fill(dtype)), dtype) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("normal", "random, standard normal, seed 3"),
        ("0..9@5", "random, 0 to 9, seed 5"),
        ("1", "1 everywhere"),
        ("positions", "0, 1, 2, …"),
        ("positions:past", "counted from the size of past"),
        ("below:nodes", "random, 0 to below the size of nodes, seed 3"),
        ("of:0|1", "random of 0, 1, seed 3"),
        ("boxes:1000", "random boxes, 0 to 1000, seed 3"),
        ("text:a|b", "random of a, b, seed 3"),
        ("words", "random words, seed 3"),
        ("size:seq", "the size of seq"),
        ("what?", "what?"),
    ],
)
def test_how_values_were_made_is_said_in_words(text: str, words: str) -> None:
    assert fills.describe_fill(text, seed=3) == words


def test_a_matrix_says_how_inputs_are_made_and_reads_it_back() -> None:
    declared = matrix.parse({"runtime": ["1.31.1"], "inputs": {"ids": "0..99", "speed": 1}})
    assert declared.inputs == {"ids": "0..99", "speed": "1"}
    assert matrix.parse(declared.as_plain()) == declared


@pytest.mark.parametrize("inputs", [["ids"], {"ids": True}, {"ids": None}, {"ids": "0..x"}, {"ids": "1" * 300}])
def test_inputs_of_a_matrix_that_cannot_be_meant_are_refused(inputs: object) -> None:
    with pytest.raises(MatrixProblem, match="input"):
        matrix.parse({"runtime": ["1.31.1"], "inputs": inputs})


@pytest.mark.parametrize(("text", "words"), [("what?", "what"), ("size:" + "x" * 200, "205 characters")])
def test_a_text_of_a_strangers_process_is_checked(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fills.check_text(text)
    fills.check_text("0..9")


def test_a_matrix_without_inputs_tolerances_and_a_wish_has_none() -> None:
    assert (fills.read_fills(None), settings.read_tolerances(None), settings.read_fraction(None)) == ({}, {}, None)
