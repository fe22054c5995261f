"""Values of a CSV that a spreadsheet opens."""

import pytest

from farm.rules.presenting.spreadsheets import safe


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("https://evil.example")'])
def test_a_text_that_a_spreadsheet_would_run_is_quoted(text: str) -> None:
    assert safe(text) == f"'{text}"


@pytest.mark.parametrize(("value", "written"), [(None, ""), ("a=1", "a=1"), ("", ""), (-1.5, -1.5), (True, True)])
def test_numbers_and_other_texts_stay_as_they_are(value: object, written: object) -> None:
    assert safe(value) == written
