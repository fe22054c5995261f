"""The browser's modules: what is made of the contract, what they import, and the policy of a release's frame."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import cast

import pytest

from farm.contract.version import CONTRACT_VERSION
from farm.gateway import tab
from farm.gateway.tab_contract import render_typescript_type
from farm.rules.runtimes import providers, web

MODULES = sorted(path for path in tab.TAB.glob("*.js") if path.name != "contract.js")
CONTRACT = tab.load_page_file("contract.js")[0].decode()


def constant(name: str) -> object:
    found = re.search(rf"^export const {name} = (.*);$", CONTRACT, re.MULTILINE)
    assert found is not None, name
    value: object = json.loads(found[1].removeprefix("new Set(").removesuffix(")"))
    return value


def test_the_contract_is_made_when_it_is_asked_for_whatever_lies_in_the_folder() -> None:
    assert constant("CONTRACT_VERSION") == CONTRACT_VERSION
    assert constant("PROBED_WITH") == web.RELEASES[-1]
    assert set(cast("dict[str, object]", constant("ENGINES"))) == {
        providers.resolve(name).name for name in ("wasm", "webgpu", "webnn")
    }


def test_the_browser_ends_a_block_early_for_the_reasons_that_fail_a_cell() -> None:
    told = constant("FAILING")
    assert isinstance(told, list)
    assert "timeout" in told
    assert not {"cancelled", "not_supported", "fail_fast"} & {*told}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "integer"}, "number"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"type": "array", "items": {"$ref": "#/$defs/FileRef"}}, "(FileRef)[]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "Record<string, number>"),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}}, "{a: boolean}"),
        ({"enum": ["x", "y"]}, '"x" | "y"'),
        ({"const": "x"}, '"x"'),
        ({}, "any"),
    ],
)
def test_a_message_is_written_as_a_type(schema: dict[str, object], written: str) -> None:
    assert render_typescript_type(schema) == written


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_imports_only_what_the_farm_serves_beside_it(path: Path) -> None:
    for name in re.findall(r'^import .* from "([^"]+)";', path.read_text("utf-8"), re.MULTILINE):
        assert name.startswith("./")
        assert tab.load_page_file(name.removeprefix("./"))[0], name


def test_the_page_loads_nothing_from_elsewhere() -> None:
    text = "".join(path.read_text("utf-8") for path in tab.TAB.iterdir() if path.suffix in tab.KINDS)
    assert re.findall(r"https?://[a-z]", text) == []


def test_the_frame_of_a_release_has_no_origin_and_no_connection_and_runs_its_own_script_alone() -> None:
    body, kind, headers = tab.load_page_file("frame.html")
    policy = headers["Content-Security-Policy"]
    script = body.decode().partition("<script>")[2].rpartition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert kind == "text/html"
    assert f"script-src 'sha256-{digest}' blob: 'wasm-unsafe-eval';" in policy
    assert "sandbox allow-scripts;" in policy
    assert "connect-src 'none';" in policy
    assert "<" + "/" not in script
    assert "<!--" not in script
