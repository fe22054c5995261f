"""What did not finish, each reason once."""

from farm.contract.reasons import Reason, ReasonCode, WayOut
from farm.rules.presenting.refusals import by_reason, way_in_words
from tests.documents import make_cell


def test_reasons_stand_once_with_whom_they_are_about_the_largest_group_first() -> None:
    old, none = (Reason(code=ReasonCode.OPSET_TOO_NEW, text=text) for text in ("Take a newer one.", "There is none."))
    cells = [make_cell("c1", reason=none), make_cell("c2"), make_cell("c3", reason=old), make_cell("c4", reason=old)]
    found = by_reason(cells)
    assert {reason: [cell.id for cell in alike] for reason, alike in found.items()} == {
        "Take a newer one.": ["c3", "c4"],
        "There is none.": ["c1"],
    }
    assert next(iter(found)) == "Take a newer one."


def test_the_way_out_of_one_reason_is_said_with_its_command_where_there_is_one() -> None:
    here, there = WayOut(label="Take 1.32.0", command="onnxfarm bench m.onnx"), WayOut(label="Leave hardware out")
    cells = [make_cell("c1", way_out=way) for way in (here, there, None)]
    assert [way_in_words([cell]) for cell in cells] == ["Take 1.32.0: onnxfarm bench m.onnx", "Leave hardware out", ""]
