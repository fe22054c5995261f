"""The browser's modules against what the farm says: numbers that stand in both are equal, and each file is served."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.contract.version import CONTRACT_VERSION
from farm.gateway import tab
from farm.rules.runtimes import providers, web

CONTRACT = (tab.TAB / "contract.js").read_text("utf-8")
MODULES = sorted(tab.TAB.glob("*.js"))


def constant(name: str) -> str:
    found = re.search(rf'^export const {name} = "?([^";]+)"?;', CONTRACT, re.MULTILINE)
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("CONTRACT_VERSION", str(CONTRACT_VERSION)),
        ("DISTRIBUTION", web.DISTRIBUTION),
        ("PROBED_WITH", web.RELEASES[-1]),
        ("PROVIDER", providers.resolve("wasm").name),
        ("TAG", providers.resolve("wasm").tag),
        ("WEBGPU", providers.resolve("webgpu").name),
        ("WEBGPU_TAG", providers.resolve("webgpu").tag),
        ("WEBGPU_SOFTWARE_TAG", providers.resolve("webgpu").simulated_tag),
        ("WEBNN", providers.resolve("webnn").name),
        ("WEBNN_TAG", providers.resolve("webnn").tag),
        ("WEBGPU_MODULE", web.WEBGPU_MODULE),
        ("WEBGPU_GLUE", web.WEBGPU_GLUE),
        ("WEBGPU_BINARY", web.WEBGPU_BINARY),
        ("MODULE", web.MODULE),
        ("GLUE", web.GLUE),
        ("BINARY", web.BINARY),
    ],
)
def test_what_stands_in_the_browser_is_what_the_farm_says(name: str, known: str) -> None:
    assert constant(name) == known


def test_the_browser_ends_a_block_early_for_the_reasons_that_fail_a_cell() -> None:
    told = set(re.findall(r'"(\w+)"', CONTRACT.partition("new Set([")[2].partition("])")[0]))
    failed = (CellStatus.FAILED, CellStatus.CRASHED, CellStatus.TIMEOUT)
    assert told == {code for code in ReasonCode if Reason(code=code, text="x").status in failed}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_imports_only_what_the_farm_serves_beside_it(path: Path) -> None:
    for name in re.findall(r'^import .* from "([^"]+)";', path.read_text("utf-8"), re.MULTILINE):
        assert name.startswith("./")
        assert (tab.TAB / name).is_file(), name


def test_the_page_loads_nothing_from_elsewhere() -> None:
    text = "".join(path.read_text("utf-8") for path in tab.TAB.iterdir() if path.suffix in tab.KINDS)
    assert re.findall(r"https?://[a-z]", text) == []


def test_the_frame_of_a_release_has_no_origin_and_no_connection_and_runs_its_own_script_alone() -> None:
    body, kind, headers = tab.file_of_tab("frame.html")
    policy = headers["Content-Security-Policy"]
    script = body.decode().partition("<script>")[2].rpartition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert kind == "text/html"
    assert f"script-src 'sha256-{digest}' blob: 'wasm-unsafe-eval';" in policy
    assert "sandbox allow-scripts;" in policy
    assert "connect-src 'none';" in policy
    assert "<" + "/" not in script
    assert "<!--" not in script
