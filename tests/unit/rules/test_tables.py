"""Tables: their columns and rows, who sorts them, and how long the bars in them are."""

from datetime import UTC, datetime

import pytest

from farm.rules.presenting.tables import (
    Column,
    Entry,
    Head,
    Number,
    Prose,
    Table,
    as_count,
    as_number,
    as_time,
    move_shared_note,
    verdict_entry,
)

NAME = Column[str]("Model", lambda name: Entry(name), order="model")
LENGTH = Number[str]("letters", lambda name: as_count(len(name)), note="of its name")
NOTE = Prose[str]("Note", lambda name: Entry(f"{name} is a model."))


def test_a_table_has_a_head_a_column_and_a_line_a_row() -> None:
    table = Table.of("models", "Models", [NAME, LENGTH, NOTE], ["encoder", "vad"])
    assert table.heads == [
        Head("Model", order="model"),
        Head("letters", is_number=True, note="of its name"),
        Head("Note", is_text=True),
    ]
    assert [[entry.text for entry in row] for row in table.rows] == [
        ["encoder", "7", "encoder is a model."],
        ["vad", "3", "vad is a model."],
    ]


def test_the_server_sorts_a_table_where_any_of_its_columns_has_an_order() -> None:
    assert Table.of("models", "Models", [LENGTH, NAME], []).is_ordered
    assert not Table.of("models", "Models", [LENGTH, NAME.unordered], []).is_ordered


def test_rows_are_named_and_can_be_chosen_where_there_is_a_box() -> None:
    table = Table.of("models", "Models", [NAME], ["encoder", "vad"])
    assert (table.with_row_keys([1, 2]).keys, table.with_row_keys([1, 2]).box) == (["1", "2"], "")
    assert table.with_row_keys([1, 2], box="models").box == "models"


def test_the_beginning_of_a_table_says_of_how_many_rows() -> None:
    table = Table.of("models", "Models", [NAME], "abcde").with_row_keys(range(5))
    assert table.first(5) is table
    beginning = table.first(2)
    assert (beginning.caption, len(beginning.rows), beginning.keys) == ("Models: the first 2 of 5", 2, ["0", "1"])


@pytest.mark.parametrize(
    ("share", "bar"), [(None, "0.0"), (0.0, "0.0"), (0.1234, "12.3"), (1.0, "100.0"), (1.5, "100.0"), (-0.5, "0.0")]
)
def test_a_bar_is_never_longer_than_its_place(share: float | None, bar: str) -> None:
    assert Entry(share=share).bar == bar


@pytest.mark.parametrize(
    ("entry", "text", "value"),
    [
        (as_number(None), "not measured", None),
        (as_number(1.5, lambda value: f"{value} ms"), "1.5 ms", 1.5),
        (as_count(1200), "1200", 1200),
        (as_time(None), "not yet", None),
        (as_time(datetime(2026, 11, 22, 9, 5, tzinfo=UTC)), "2026-11-22 09:05 UTC", 1795338300.0),
        (verdict_entry("slower"), "", "slower"),
    ],
)
def test_an_entry_is_sorted_by_the_value_behind_its_words(entry: Entry, text: str, value: float | str | None) -> None:
    assert (entry.text, entry.value) == (text, value)


@pytest.mark.parametrize(
    ("notes", "own", "shared"),
    [
        (["5 rounds. Late: 2 s. 8 would do.", "2. Late: 2 s."], ["5 rounds. 8 would do.", "2."], "Late: 2 s."),
        (["Time ran out.", "Time ran out."], None, "Time ran out."),
        (["Time ran out.", ""], ["Time ran out.", ""], ""),
        (["Time ran out."], ["Time ran out."], ""),
        ([], [], ""),
    ],
)  # fmt: skip
def test_sentences_that_all_notes_have_stand_once_and_an_empty_column_goes(
    notes: list[str], own: list[str] | None, shared: str
) -> None:
    table = Table.of(
        "models", "Models", [Column[str]("Name", lambda note: Entry("a")), Prose[str]("Note", Entry)], notes
    )
    found, said = move_shared_note(table)
    assert said == shared
    assert [len(row) for row in found.rows] == [len(found.heads)] * len(notes)
    assert own is None or [row[1].text for row in found.rows] == own


def test_a_table_without_notes_shares_none() -> None:
    table = Table.of("models", "Models", [NAME], ["encoder", "vad"])
    assert move_shared_note(table) == (table, "")


def test_columns_of_which_nothing_was_measured_are_left_out() -> None:
    missing = Number[str]("p50", lambda name: as_number(None))
    table = Table.of("models", "Models", [NAME, missing, LENGTH], ["vad"]).without_unmeasured()
    assert [head.text for head in table.heads] == ["Model", "letters"]
    assert [[entry.text for entry in row] for row in table.rows] == [["vad", "3"]]
