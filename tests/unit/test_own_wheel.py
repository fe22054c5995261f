"""The wheel that a farm makes of its own files: what is in it, and that its metadata are what pyproject.toml says."""

import csv
import io
import tomllib
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

from farm.fleet import farm_wheel
from farm.fleet.farm_wheel import NoWheelError, build_wheel
from tests.conftest import PROJECT


@pytest.fixture(scope="module")
def archive() -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(build_wheel(PROJECT).content))


def about(archive: zipfile.ZipFile, name: str) -> str:
    return archive.read(f"onnxfarm-0.1.0.dist-info/{name}").decode()


def test_it_holds_the_program_and_nothing_else(archive: zipfile.ZipFile) -> None:
    names = set(archive.namelist())
    assert {"farm/__init__.py", "worker/agent/installation/locks.json", "onnxfarm/main.py"} <= names
    assert "dashboard/templates/dashboard/base.html" in names
    assert {name.partition("/")[0] for name in names} == {
        "farm", "worker", "onnxfarm", "dashboard", "onnxfarm-0.1.0.dist-info",
    }  # fmt: skip
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".sqlite3"))]


def test_every_file_has_its_digest_in_the_record(archive: zipfile.ZipFile) -> None:
    rows = {name: (digest, size) for name, digest, size in csv.reader(about(archive, "RECORD").splitlines())}
    assert rows.keys() == set(archive.namelist())
    for name, (digest, size) in rows.items():
        if not name.endswith("/RECORD"):
            content = archive.read(name)
            known = urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={known}", str(len(content))), name


def test_its_metadata_are_valid_and_ask_for_what_pyproject_asks_for(archive: zipfile.ZipFile) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    found = Metadata.from_email(about(archive, "METADATA"), validate=True)
    assert (found.name, str(found.version)) == (project["name"], project["version"])
    assert str(found.requires_python) == project["requires-python"]
    assert found.provides_extra == list(project["optional-dependencies"])
    wanted = found.requires_dist or []
    assert {str(one) for one in wanted if one.marker is None} == {str(Requirement(r)) for r in project["dependencies"]}
    for extra, texts in project["optional-dependencies"].items():
        place = {"extra": extra, "sys_platform": "linux"}
        asked = {one.name for one in wanted if one.marker is not None and one.marker.evaluate(place)}
        assert asked == {Requirement(text).name for text in texts}
    pyseccomp = next(one for one in wanted if one.name == "pyseccomp")
    assert not pyseccomp.marker.evaluate({"extra": "node", "sys_platform": "darwin"})
    assert "onnxfarm = onnxfarm.main:app" in about(archive, "entry_points.txt")
    assert "[pytest11]\nonnxfarm = onnxfarm.pytest_plugin" in about(archive, "entry_points.txt")


def test_every_process_of_a_farm_makes_the_same_bytes() -> None:
    assert build_wheel(PROJECT) == build_wheel(PROJECT)
    assert sha256(build_wheel(PROJECT).content).hexdigest() == build_wheel(PROJECT).sha256


def test_a_farm_whose_files_are_no_checkout_and_no_distribution_says_so(tmp_path: Path) -> None:
    assert farm_wheel.find_checkout(tmp_path) is None
    with pytest.raises(NoWheelError, match=r"has no pyproject.toml, and no distribution 'not-here' is installed"):
        farm_wheel._rebuild_installed("not-here")
