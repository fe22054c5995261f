"""`onnxfarm node list`: what people compare and type is whole, however narrow the terminal."""

import io

import pytest
from rich.console import Console

from onnxfarm.commands.fleet import table_of_nodes
from onnxfarm.remote.rows import Node

FINGERPRINT = ":".join(["fc73", "a259", "76f5", "0b1c", "9d2e", "44aa", "58ff", "1203"])


def node() -> Node:
    return {
        "id": 1,
        "name": "a-machine-with-a-long-name-in-the-basement",
        "state": "online",
        "health": "pending",
        "tags": {"cpu": "", "x86": "", "avx512_vnni": ""},
        "owner_tags": [],
        "fingerprint": FINGERPRINT,
        "self_test": None,
    }


@pytest.mark.parametrize("width", [80, 120])
def test_a_fingerprint_and_a_name_are_never_cut(width: int) -> None:
    shown = io.StringIO()
    Console(file=shown, width=width).print(table_of_nodes([node()]))
    assert "…" not in shown.getvalue()
    lines = shown.getvalue().splitlines()
    start = lines[0].index("fingerprint")
    end = lines[0].index("self-test")
    assert "".join(line[start:end].strip() for line in lines[1:]) == FINGERPRINT
