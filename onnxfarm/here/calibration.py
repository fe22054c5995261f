"""Calibration data that the user gives `bench`: looked at before anything is made or measured."""

from pathlib import Path

from farm.contract.cells import FileRef
from farm.workshop import orders
from onnxfarm.calibration_files import sets_in
from onnxfarm.here.bundle import LocalFiles, Uploaded
from onnxfarm.here.given import copied
from onnxfarm.problems import Usage


def take_calibration(model: Uploaded, given: Path, *, folder: Path, files: LocalFiles) -> tuple[FileRef, int]:
    """The accepted samples and how many they are. Raises Usage with the sentence of what does not fit the model."""
    out = folder / "calibration"
    out.mkdir()
    try:
        if given.is_dir():
            laid = [
                [copied(file, folder / f"calibration-{number}-{file.stem}") for file in inputs]
                for number, inputs in enumerate(sets_in(given))
            ]
            accepted = orders.accept_calibration(model.folder, model.main, sets=laid, out_dir=out)
        else:
            data = copied(given, folder / "given-calibration")
            accepted = orders.accept_calibration(model.folder, model.main, data=data, out_dir=out)
    except orders.WorkshopError as error:
        raise Usage(f"{given}: {error.reason.text}") from error
    return files.add(accepted.path, name="calibration.npz"), accepted.samples
