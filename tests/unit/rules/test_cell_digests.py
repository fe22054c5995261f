"""Digests of cells: rows, documents and caches of before go by them, so that no new axis may change one."""

from typing import Any

import pytest

from farm.contract.cells import LaterAxes, SessionSettings
from farm.contract.document_cells import Cell
from farm.rules.cells.axes import FIELD_AXES
from tests.unit.rules.test_cell_matrices import cells_of

EVERYTHING = {
    "runtime": "1.29.0", "batch": 8, "threads": 4, "optimization": "basic", "concurrency": 2, "opset": 15,
    "shapes": [{"sequence": 64}], "hardware": "x86+avx512",
}  # fmt: skip
OPTIONS = {
    "runtime": "1.31.1",
    "precision": [{"precision": "int8-dynamic", "options": {"per-channel": True}}],
    "session": [{"name": "quiet", "spinning": False, "config": {"a.b": "1"}}],
    "provider": [{"name": "openvino", "options": {"device_type": "CPU"}}],
}


@pytest.mark.parametrize(
    ("declared", "digest"),
    [
        ({"runtime": "1.31.1"}, "ceafbaea80122f169562a92e32f856b2bfb3eeb1af9b3e8f1cdb519394ac16bb"),
        (EVERYTHING, "aee17b826ec5d448eef4187470d8c39c4fb87b39acdf68fcd478ceb9778e3655"),
        (OPTIONS, "c65449b61eac754acf77c7787dffabe4609310d2690f303a6a5f051eec483874"),
    ],
)
def test_the_digest_of_a_cell_never_changes(declared: dict[str, Any], digest: str) -> None:
    assert [cell.digest for cell in cells_of(declared)] == [digest]


def test_an_axis_that_came_later_is_left_out_where_it_has_its_default() -> None:
    session, cell = SessionSettings().model_dump(), Cell.model_fields
    for name, field in LaterAxes.model_fields.items():
        assert name not in session
        assert cell[name].default == field.default
        assert name in {axis.field for axis in FIELD_AXES}
