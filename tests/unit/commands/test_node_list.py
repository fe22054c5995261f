"""`onnxfarm node list`: what people compare and type is whole, however narrow the terminal."""

import io

import pytest
from rich.console import Console

from farm.contract.api.fleet import NodeOut
from onnxfarm.commands.fleet import HEADS, make_node_row
from onnxfarm.outputs import make_table
from tests.answers import answer

FINGERPRINT = ":".join(["fc73", "a259", "76f5", "0b1c", "9d2e", "44aa", "58ff", "1203"])
NAME = "a-machine-with-a-long-name-in-the-basement"


@pytest.mark.parametrize("width", [80, 120])
def test_a_fingerprint_and_a_name_are_never_cut(width: int) -> None:
    tags = {"cpu": "", "x86": "", "avx512_vnni": ""}
    node = answer(NodeOut, name=NAME, state="online", health="pending", tags=tags, fingerprint=FINGERPRINT)
    shown, table = io.StringIO(), make_table(*HEADS)
    table.add_row(*make_node_row(node))
    Console(file=shown, width=width).print(table)
    assert "…" not in shown.getvalue()
    lines = shown.getvalue().splitlines()
    start = lines[0].index("fingerprint")
    end = lines[0].index("self-test")
    assert "".join(line[start:end].strip() for line in lines[1:]) == FINGERPRINT
