"""A build of an index that the farm's admin added, measured by a real node beside a release: named on every result."""

import hashlib
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from farm.contract.blocks import WheelFile
from farm.contract.cells import Runtime
from farm.contract.document import Document
from tests.acceptance.conftest import LiveFarm, accepted, live_farm
from tests.integration.worker.feeds import Feed
from tests.integration.worker.making import runtime_store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]
RELEASE, OWN = "1.31.1", "1.33.0.dev20261120"
BUILD = f"{OWN}+at.nightly"
MATRIX = {"budget": "quick", "matrix": {"runtime": [RELEASE, BUILD], "provider": ["cpu"], "threads": [2]}}


def own_build(folder: Path) -> Path:
    """The release as it is installed here, packed under the build's number, which it says of itself too."""
    python = runtime_store().provide(Runtime(distribution="onnxruntime", version=RELEASE)).python
    (installed,) = Path(python).parents[1].glob("lib/python*/site-packages")
    (info,) = installed.glob(f"onnxruntime-{RELEASE}.dist-info")
    tag = re.findall(r"^Tag: (\S+)$", (info / "WHEEL").read_text(), re.MULTILINE)[-1]
    target = folder / f"onnxruntime-{OWN}-{tag}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
        paths = [path for top in (installed / "onnxruntime", info) for path in top.rglob("*") if path.is_file()]
        names = [str(path.relative_to(installed)).replace(info.name, f"onnxruntime-{OWN}.dist-info") for path in paths]
        for path, name in zip(paths, names, strict=True):
            if path.suffix != ".pyc" and path.name not in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                is_stamped = path.name in ("METADATA", "__init__.py", "build_and_package_info.py")
                content = path.read_bytes()
                wheel.writestr(name, content.replace(RELEASE.encode(), OWN.encode()) if is_stamped else content)
        wheel.writestr(f"onnxruntime-{OWN}.dist-info/RECORD", "".join(f"{name},,\n" for name in wheel.namelist()))
    return target


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[Feed]:
    wheel = own_build(tmp_path)
    content = wheel.read_bytes()
    with Feed() as feed:
        feed.answers[f"/{wheel.name}"] = (200, {}, content)
        digest = hashlib.sha256(content).hexdigest()
        feed.list(WheelFile(name=wheel.name, url=f"{feed.url}{wheel.name}", sha256=digest))
        yield feed


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveFarm]:
    """A farm whose node's owner allows the index by its name."""
    monkeypatch.setenv("ONNXFARM_NODE_ALLOWED_INDEXES", "nightly")
    monkeypatch.setenv("ONNXFARM_HOST_LOCK", os.environ.get("ONNXFARM_HOST_LOCK", str(tmp_path / "lock")))
    yield from live_farm(tmp_path / "home")


def test_a_build_of_the_farms_own_index_is_installed_measured_and_named(farm: LiveFarm, feed: Feed) -> None:
    accepted(farm.api("POST", "/indexes", json={"name": "nightly", "url": feed.url}))
    models = Path(__file__).parents[1] / "models"
    document = Document.model_validate(farm.submit(models / "cnn_dyn.onnx", MATRIX, within_s=400.0))
    first, second = (cell for cell in document.cells if cell.twin_of is None)
    assert [(str(cell.runtime), cell.status) for cell in (first, second)] == [
        (f"onnxruntime=={RELEASE}", "done"),
        (f"onnxruntime=={BUILD}", "done"),
    ]
    assert (first.packages["onnxruntime"], second.packages["onnxruntime"]) == (RELEASE, OWN)
    assert second.parity.verdict == "pass"
    (comparison,) = (found for found in document.comparisons if found.axis == "runtime")
    assert {comparison.baseline, comparison.candidate} == {first.id, second.id}
    assert sum(path.endswith(".whl") for path in feed.seen) == 1, "fetched once, by the node"
    with httpx2.Client(base_url=farm.url, follow_redirects=True, timeout=60) as browser:
        farm.sign_in(browser)
        assert f"{OWN} from nightly" in browser.get(f"/runs/{document.run}/").text
