"""Calibration data on disk: an `.npz`, or a folder with ONNX's own `test_data_set_N/input_M.pb`."""

import re
from pathlib import Path

from onnxfarm.problems import Usage

_SET = re.compile(r"test_data_set_(\d{1,3})")
_INPUT = re.compile(r"input_(\d{1,4})\.pb")
# fewer than MIN_SAMPLES give unreliable ranges; more than GOOD_SAMPLES change little
MIN_SAMPLES, GOOD_SAMPLES = 100, 500

CALIBRATION_HELP = "Samples for int8-qdq and int8-qoperator: inputs by name, or a folder of test_data_set_*."


def list_sets(folder: Path) -> list[list[Path]]:
    """List the sets of inputs in a folder of ONNX's test data, by N of test_data_set_N; each lists input_M.pb by M.

    A folder without such sets is itself the only set. Raises Usage if a set has no input_M.pb.
    """
    numbered = [(int(match[1]), path) for path in folder.iterdir() if (match := _SET.fullmatch(path.name))]
    sets = [_list_inputs(path) for _, path in sorted(numbered)] if numbered else [_list_inputs(folder)]
    if not all(sets):
        raise Usage(f"{folder} holds no test_data_set_N/input_M.pb: give an .npz of the inputs by name.")
    return sets


def list_upload_files(path: Path) -> list[tuple[str, Path]]:
    """List the files to upload for a path, as pairs of the name on the farm and the path.

    A file keeps its name. Whether it exists is not checked. A folder of test data gives files
    `test_data_set_N-input_M.pb`, whose sets are numbered anew from 0; as in `list_sets`, a bad folder raises Usage.
    """
    if not path.is_dir():
        return [(path.name, path)]
    return [
        (f"test_data_set_{number}-{file.name}", file) for number, files in enumerate(list_sets(path)) for file in files
    ]


def make_sample_warning(samples: int) -> str:
    """Return a warning for fewer than MIN_SAMPLES, and a hint for fewer than GOOD_SAMPLES; otherwise empty."""
    if samples < MIN_SAMPLES:
        return f"Warning: {samples} calibration samples are few: take at least {MIN_SAMPLES}, better {GOOD_SAMPLES}."
    if samples < GOOD_SAMPLES:
        return f"{samples} calibration samples: {GOOD_SAMPLES} or more give steadier ranges."
    return ""


def _list_inputs(folder: Path) -> list[Path]:
    numbered = [(int(match[1]), path) for path in folder.iterdir() if (match := _INPUT.fullmatch(path.name))]
    return [path for _, path in sorted(numbered)]
