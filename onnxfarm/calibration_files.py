"""Calibration data on disk: an `.npz`, or a folder with ONNX's own `test_data_set_N/input_M.pb`."""

import re
from pathlib import Path

from onnxfarm.problems import Usage

_SET = re.compile(r"test_data_set_(\d{1,3})")
_INPUT = re.compile(r"input_(\d{1,4})\.pb")
# fewer samples give unreliable ranges, and more than enough change little
FEW, ENOUGH = 100, 500

CALIBRATION_HELP = "Samples for int8-qdq and int8-qoperator: inputs by name, or a folder of test_data_set_*."


def list_sets(folder: Path) -> list[list[Path]]:
    """List the input files of each test_data_set_N in the folder; without any, those of the folder itself.

    Raises Usage where a set has no input files.
    """
    numbered = [(int(match[1]), path) for path in folder.iterdir() if (match := _SET.fullmatch(path.name))]
    sets = [_list_inputs(path) for _, path in sorted(numbered)] if numbered else [_list_inputs(folder)]
    if not all(sets):
        raise Usage(f"{folder} holds no test_data_set_N/input_M.pb: give an .npz of the inputs by name.")
    return sets


def list_upload_files(path: Path) -> list[tuple[str, Path]]:
    """List the name for the upload and the path of a file, or of each input file in a folder of test data."""
    if not path.is_dir():
        return [(path.name, path)]
    return [
        (f"test_data_set_{number}-{file.name}", file) for number, files in enumerate(list_sets(path)) for file in files
    ]


def make_sample_warning(samples: int) -> str:
    """Make the sentence that warns of few calibration samples; empty when they are enough."""
    if samples < FEW:
        return f"Warning: {samples} calibration samples are few: take at least {FEW}, better {ENOUGH}."
    return "" if samples >= ENOUGH else f"{samples} calibration samples: {ENOUGH} or more give steadier ranges."


def _list_inputs(folder: Path) -> list[Path]:
    numbered = [(int(match[1]), path) for path in folder.iterdir() if (match := _INPUT.fullmatch(path.name))]
    return [path for _, path in sorted(numbered)]
