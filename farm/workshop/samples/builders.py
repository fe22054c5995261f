"""Makes the sample models from this package alone, with the same bytes every time."""

from pathlib import Path

from farm.workshop import arrays
from farm.workshop.samples import convnet, decoder, digits, transformer

_MODELS = {
    "transformer": transformer.make,
    "convnet": convnet.make,
    "digits": digits.make,
    "decoder": decoder.make,
    "decoder-gqa": decoder.make_gqa,
}
NAMES = tuple(_MODELS)


def write_model(name: str, folder: Path) -> Path:
    """Write `name`.onnx (one of NAMES) into the folder, which is made if it is missing, and return the path.

    Raises KeyError for another name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.onnx"
    path.write_bytes(_MODELS[name]().SerializeToString(deterministic=True))
    return path


def write_all(folder: Path) -> list[Path]:
    """Write every sample model and the digit classifier's evaluation and calibration data, and return the paths.

    The models come first, in the order of NAMES.
    """
    paths = [write_model(name, folder) for name in NAMES]
    for part, data in (("evaluation", digits.make_evaluation_data()), ("calibration", digits.make_calibration_data())):
        paths.append(arrays.write_npz(folder / f"digits.{part}.npz", data))
    return paths
