"""A watch on onnxruntime-genai: a release appears on an index of this machine, and its sampler is an alert.

A farm of real processes with a node; wheels come from the index that pip is set up for, once, and then from our own.
"""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from farm.workshop.samples import decoder, genai
from tests.acceptance import long_watch, watched_farm

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1000)]

GENAI = "onnxruntime-genai"
OLD, NEW = "0.13.1", "0.13.2"
# of the flat head, on which the newer sampler takes longer
MATRIX = {"matrix": {"scenario": ["generate:prompt=16:new=4:sampling=top-p=0.9"], "threads": [1]}, "budget": "quick"}
MINUTES = 15.0


def zipped(folder: Path) -> Path:
    """The folder as one file to upload, under the name that a farm gives its model: that of the .onnx."""
    target = folder.with_name(Path(genai.MAIN).stem).with_suffix(".zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, path.name)
    return target


def test_a_slower_sampler_of_a_new_release_is_an_alert_that_says_it_is_outside_the_graph(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    long_watch.fetch(wheels, [f"{GENAI}=={OLD}", f"{GENAI}=={NEW}", "onnxruntime==1.31.1", "numpy==2.4.6"])
    model = zipped(genai.write_folder(tmp_path / "flat", decoder.make_wide(is_flat=True)))
    with watched_farm.opened(tmp_path / "scene", wheels=wheels, first=["1.31.1"], minutes=MINUTES) as scene:
        scene.index.offer(GENAI, [OLD])
        watch = scene.watch("samplers", distribution=GENAI, models=[scene.model(model)], reference=OLD, matrix=MATRIX)
        asked = scene.index.asked.get(GENAI, 0)
        scene.until(lambda: True if scene.index.asked.get(GENAI, 0) > asked + 1 else None)
        assert scene.get(f"/watches/{watch}/rounds") == []
        scene.index.offer(GENAI, [NEW])
        (found,) = long_watch.judged(scene, watch, count=1)
        scene.say(found["sentence"])
        assert (found["cause"], found["old"], found["new"], found["outcome"]) == ("release", OLD, NEW, "alert")
        (alert,) = alerts(scene, watch)
        slower = [one for one in alert["symptoms"] if one["kind"] == "slower"]
        assert slower, alert
        assert "outside the graph: choosing a token, " in slower[0]["explanation"]


def alerts(scene: watched_farm.Scene, watch: int) -> list[Any]:
    """The watch's alerts, each with its symptoms."""
    return [scene.get(f"/alerts/{one['id']}") for one in scene.get(f"/alerts?list=all&watch={watch}")]
