"""Values of a CSV that a spreadsheet opens."""

import csv
import io

import pytest

from farm.contract.document import Document
from farm.contract.document_cells import Accuracy
from farm.rules.presenting.spreadsheets import ACCURACY, HEADS, escape_formula, list_rows, make_csv
from tests.documents import NEW, make_cell, make_document


def document(accuracy: Accuracy | None) -> Document:
    return make_document(make_cell(runtime=NEW, precision="int8-dynamic", batch=8, accuracy=accuracy))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("https://evil.example")'])
def test_a_text_that_a_spreadsheet_would_run_is_quoted(text: str) -> None:
    assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize(("value", "written"), [(None, ""), ("a=1", "a=1"), ("", ""), (-1.5, -1.5), (True, True)])
def test_numbers_and_other_texts_stay_as_they_are(value: object, written: object) -> None:
    assert escape_formula(value) == written


@pytest.mark.parametrize(
    ("accuracy", "values"),
    [
        (None, [""] * 6),
        (
            Accuracy(metric="top1", value=0.9, ci_low=0.88, ci_high=0.92, n=500, difference=-0.01),
            ["top1", 0.9, 0.88, 0.92, 500, -0.01],
        ),
    ],
)
def test_a_row_and_a_csv_line_of_a_cell_say_the_same_of_its_accuracy(accuracy: Accuracy | None, values: list[object]):
    (row,) = list_rows(document(accuracy))
    (line,) = csv.DictReader(io.StringIO(make_csv(document(accuracy))))
    assert tuple(row) == tuple(line) == HEADS
    assert (row["id"], row["batch"], [row[name] for name in ACCURACY]) == ("c1", 8, values)
    assert [line[name] for name in ACCURACY] == [str(escape_formula(value)) for value in values]
