"""The house: what docs/architecture.md names is there, and no room is found by a name in a string."""

import ast
import re
import subprocess
import tomllib
from importlib import import_module

import pytest
import typer

from farm.api.api import ROUTERS
from onnxfarm.command_list import COMMANDS
from tests.conftest import PROJECT

PACKAGES = ("farm", "worker", "onnxfarm", "dashboard")
LONGEST_FILE = 400
PAGE = (PROJECT / "docs/architecture.md").read_text()
CONTRACTS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def test_every_room_that_the_architecture_names_exists() -> None:
    named = [
        name for name in re.findall(r"`([\w/]+(?:\.\w+)?)`", PAGE) if name.split("/")[0] in PACKAGES and "/" in name
    ]
    assert len(named) > 10
    assert [name for name in named if not (PROJECT / name).exists()] == []


@pytest.mark.parametrize(
    ("package", "first"), [("farm.rules", "changes"), ("worker.agent", "main"), ("onnxfarm", "main")]
)
def test_the_drawing_has_the_rooms_in_the_order_of_their_contract(package: str, first: str) -> None:
    layers = next(one["layers"] for one in CONTRACTS if one.get("containers") == [package])
    drawn = next(part for part in re.findall(r'\["(.*?)"\]', PAGE) if f"<b>{package}</b>" in part).replace("<br/>", " ")
    rooms = re.findall(r"\w+", drawn[drawn.index(f"{first} →") :])
    places = [next(place for place, layer in enumerate(layers) if room in re.findall(r"\w+", layer)) for room in rooms]
    assert len(rooms) > 4
    assert places == sorted(places)


def test_no_file_of_code_is_longer_than_any_reader_wants() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.js"],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert len(listed) > 500
    lengths = {name: len((PROJECT / name).read_bytes().splitlines()) for name in listed if (PROJECT / name).is_file()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_no_contract_that_holds_the_rooms_has_an_exception() -> None:
    assert [one["name"] for one in CONTRACTS if "ignore_imports" in one] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_room_of_ours_is_imported_by_a_name_in_a_string(package: str) -> None:
    found = [
        f"{path.relative_to(PROJECT)}:{call.lineno}"
        for path in (PROJECT / package).rglob("*.py")
        # the lazy table of commands, each of which a test below loads
        if path != PROJECT / "onnxfarm/command_list.py"
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and _name(call) in ("import_module", "find_spec", "__import__")
        for word in ast.walk(call)
        if isinstance(word, ast.Constant) and str(word.value).split(".")[0] in PACKAGES
    ]
    assert found == []


def test_every_router_of_the_api_is_served() -> None:
    modules = [import_module(f"farm.api.{path.stem}") for path in sorted((PROJECT / "farm/api").glob("[a-z]*.py"))]
    routers = {one.__name__: one.router for one in modules if hasattr(one, "router")}
    assert [name for name, router in routers.items() if router not in ROUTERS] == []
    assert len(routers) >= len(ROUTERS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_help_can_be_called(name: str) -> None:
    found = COMMANDS[name].load()
    assert isinstance(found, typer.Typer) or callable(found)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
