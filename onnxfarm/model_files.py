"""Which files belong to a model on disk. The model is searched for their names, not parsed: the client has no onnx."""

import mmap
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from farm.contract.cells import PROGRAM_ENDING
from farm.rules.runtimes.genai import CONFIG
from onnxfarm.problems import Usage

# a folder with more files than this is not searched
MAX_SIBLINGS = 500
# and of a folder that stands for a model, no more are taken
MAX_FILES = 64
# what holds no external data
_NO_DATA = (".onnx", ".npz", ".zip", PROGRAM_ENDING)
# what exporters leave beside a model for people
_EXPORTED = "model.onnx"
_LEFT_OUT = (".md", ".py", ".zip")
# the option that takes a folder of ONNX's own test data as well
FOLDERS_TOO = "--calibration"


def list_model_files(model: Path) -> list[Path]:
    """List the model and the files beside it that it names; a .zip alone, or all that is in a folder.

    Raises Usage for anything else.
    """
    if model.is_dir():
        return _list_folder(model)
    if not model.is_file():
        raise Usage(f"{model} is not a file: give an .onnx, or a .zip of one with its external data.")
    if model.suffix.lower() == ".zip":
        return [model]
    if model.suffix.lower() != ".onnx":
        raise Usage(f"{model.name} is neither an .onnx nor a .zip: give one of those.")
    return [model, *_list_named_siblings(model)]


def _list_folder(folder: Path) -> list[Path]:
    """List the files of a folder that onnxruntime-genai reads: its one .onnx first, then what is beside it."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    models = [path for path in files if path.suffix.lower() == ".onnx"]
    if not (folder / CONFIG).is_file():
        raise Usage(f"{folder} is a folder without {CONFIG}: give an .onnx, or a folder that onnxruntime-genai reads.")
    if len(models) != 1:
        raise Usage(f"{folder} holds {len(models)} .onnx files: only a decoder in one .onnx is generated with yet.")
    if len(files) > MAX_FILES:
        raise Usage(f"{folder} holds {len(files)} files, where {MAX_FILES} are taken: leave others out.")
    others = [path for path in files if path != models[0] and path.suffix.lower() not in _LEFT_OUT]
    return [models[0], *others]


def derive_model_name(model: Path) -> str:
    """Make a model's name out of its folder's; empty for a file that has a name of its own.

    Exporters call every model `model.onnx`, in a folder that says which, with another called `onnx` between or none.
    """
    if not model.is_dir() and model.name.lower() != _EXPORTED:
        return ""
    folder = model.resolve() if model.is_dir() else model.resolve().parent
    named = folder.parent if folder.name.lower() == "onnx" else folder
    return re.sub(r"[^A-Za-z0-9._-]", "-", named.name)[:100]


def find_program(source: Path) -> Path:
    """Return the path if it is a framework's program. Raises Usage for anything else."""
    if not source.is_file() or source.suffix.lower() != PROGRAM_ENDING:
        raise Usage(
            f"--source {source} is not a file that ends in {PROGRAM_ENDING}: give what torch.export.save wrote."
        )
    return source


def check_files_exist(given: Mapping[str, Path | None]) -> None:
    """Raises Usage for a file that is not there or is a folder; `given`: paths by the option that names them."""
    for option, path in given.items():
        if path is not None and not path.exists():
            raise Usage(f"{option} {path} is not a file: give the path of an .npz.")
        if path is not None and path.is_dir() and option != FOLDERS_TOO:
            raise Usage(f"{option} {path} is a folder: give the path of an .npz.")


def _list_named_siblings(model: Path) -> list[Path]:
    """List the files in the model's folder whose names stand in it, as the locations of external data do."""
    siblings = (path.name for path in sorted(model.parent.iterdir()) if path != model and path.is_file())
    return [model.parent / name for name in list_external_data(model, siblings)]


def list_external_data(model: Path, siblings: Iterable[str]) -> list[str]:
    """List those names of `siblings` that stand in the model, as the locations of external data do.

    More than MAX_SIBLINGS are not searched.
    """
    names = [name for name in siblings if Path(name).suffix.lower() not in _NO_DATA]
    if not names or len(names) > MAX_SIBLINGS or model.stat().st_size == 0:
        return []
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return [name for name in names if _names(content, os.fsencode(name))]


def _names(content: mmap.mmap, name: bytes) -> bool:
    """Say whether the name stands there with its length before it, as protobuf writes a string of up to 127 bytes."""
    return content.find(bytes([len(name)]) + name) >= 0 if len(name) < 128 else content.find(name) >= 0
