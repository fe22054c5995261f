"""What did not finish, each reason once."""

from farm.contract.reasons import Reason, ReasonCode, WayOut
from farm.rules.presenting.refusals import describe_reason, group_by_reason, list_ways_out
from farm.rules.wording.reasons import REASONS
from tests.documents import make_cell


def test_reasons_stand_once_with_whom_they_are_about_the_largest_group_first() -> None:
    old, none = (Reason(code=ReasonCode.OPSET_TOO_NEW, text=text) for text in ("Take a newer one.", "There is none."))
    cells = [make_cell("c1", reason=none), make_cell("c2"), make_cell("c3", reason=old), make_cell("c4", reason=old)]
    found = group_by_reason(cells)
    assert {reason.text: [cell.id for cell in alike] for reason, alike in found.items()} == {
        "Take a newer one.": ["c3", "c4"],
        "There is none.": ["c1"],
    }
    assert next(iter(found)) == old


def test_the_way_out_of_one_reason_is_said_with_its_command_where_there_is_one() -> None:
    here, there = WayOut(label="Take 1.32.0", command="onnxfarm bench m.onnx"), WayOut(label="Leave hardware out")
    cells = [make_cell("c1", way_out=way) for way in (here, there, None)]
    ways = [["Take 1.32.0: onnxfarm bench m.onnx"], ["Leave hardware out"], []]
    assert [list_ways_out([cell]) for cell in cells] == ways


def test_what_explains_a_reason_is_said_after_its_way_out() -> None:
    reason = Reason(code=ReasonCode.NO_NODE, text="No node has it.")
    cell = make_cell("c1", reason=reason, way_out=WayOut(label="Leave hardware out"))
    assert list_ways_out([cell]) == ["Leave hardware out", "More: onnxfarm docs no_node"]
    assert describe_reason(reason) == "No node has it. More: onnxfarm docs no_node"


def test_every_code_is_explained() -> None:
    assert list(REASONS) == list(ReasonCode)
    assert all(all(told) for told in REASONS.values())
