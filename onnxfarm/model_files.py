"""Lists the files of a model on disk. External data are found by searching the .onnx for file names, without onnx."""

import mmap
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from farm.contract.cells import PROGRAM_ENDING
from farm.rules.runtimes.genai import CONFIG
from onnxfarm.problems import Usage

# in a folder with more files, external data are not searched for
MAX_SIBLINGS = 500
# a folder for onnxruntime-genai may have at most this many files
MAX_FILES = 64
# endings of files that are never external data
_NO_DATA = (".onnx", ".npz", ".zip", PROGRAM_ENDING)
# the name that exporters give to every model
_EXPORTED = "model.onnx"
# endings of files in a model's folder that are for people
_NOT_UPLOADED = (".md", ".py", ".zip")
# the only option that also takes a folder, of ONNX's own test data
FOLDER_OPTION = "--calibration"


def list_model_files(model: Path) -> list[Path]:
    """List the files of a model, the .onnx first. `model`: an .onnx, a .zip, or a folder for onnxruntime-genai.

    The other files follow by name. An .onnx comes with its external data, and a .zip is listed by itself. A folder must
    have the configuration of onnxruntime-genai, exactly one .onnx, and at most MAX_FILES files; its hidden files,
    subfolders, and .md, .py and .zip files are left out. Raises Usage for anything else.
    """
    if model.is_dir():
        return _list_folder(model)
    if not model.is_file():
        raise Usage(f"{model} is not a file: give an .onnx, or a .zip of one with its external data.")
    if model.suffix.lower() == ".zip":
        return [model]
    if model.suffix.lower() != ".onnx":
        raise Usage(f"{model.name} is neither an .onnx nor a .zip: give one of those.")
    siblings = (path.name for path in sorted(model.parent.iterdir()) if path != model and path.is_file())
    return [model, *(model.with_name(name) for name in list_external_data(model, siblings))]


def _list_folder(folder: Path) -> list[Path]:
    """List the files of a folder for onnxruntime-genai: its only .onnx first, then the others by name. Raises Usage."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    models = [path for path in files if path.suffix.lower() == ".onnx"]
    if not (folder / CONFIG).is_file():
        raise Usage(f"{folder} is a folder without {CONFIG}: give an .onnx, or a folder that onnxruntime-genai reads.")
    if len(models) != 1:
        raise Usage(f"{folder} holds {len(models)} .onnx files: only a decoder in one .onnx is generated with yet.")
    if len(files) > MAX_FILES:
        raise Usage(f"{folder} holds {len(files)} files, where {MAX_FILES} are taken: leave others out.")
    others = [path for path in files if path != models[0] and path.suffix.lower() not in _NOT_UPLOADED]
    return [models[0], *others]


def derive_model_name(model: Path) -> str:
    """Derive the name of a model that is a folder, or a file called model.onnx, from the name of its folder.

    If that folder is called `onnx`, as exporters call it, the name of its parent is taken. Empty for any other file,
    which has its own name. Characters that a farm refuses become `-`, and a long name is cut to 100 characters.
    """
    if not model.is_dir() and model.name.lower() != _EXPORTED:
        return ""
    folder = model.resolve() if model.is_dir() else model.resolve().parent
    named = folder.parent if folder.name.lower() == "onnx" else folder
    return re.sub(r"[^A-Za-z0-9._-]", "-", named.name)[:100]


def check_exported_program(source: Path) -> Path:
    """Return the same path if it is a file that ends in .pt2, as torch.export.save writes it. Raises Usage otherwise.

    The content is not read.
    """
    if not source.is_file() or source.suffix.lower() != PROGRAM_ENDING:
        raise Usage(
            f"--source {source} is not a file that ends in {PROGRAM_ENDING}: give what torch.export.save wrote."
        )
    return source


def check_files_exist(paths: Mapping[str, Path | None]) -> None:
    """Check the files that options name. `paths`: by option, such as `--inputs`; None for an option without a file.

    Raises Usage for the first path that does not exist, or is a folder; only `--calibration` takes a folder.
    """
    for option, path in paths.items():
        if path is not None and not path.exists():
            raise Usage(f"{option} {path} is not a file: give the path of an .npz.")
        if path is not None and path.is_dir() and option != FOLDER_OPTION:
            raise Usage(f"{option} {path} is a folder: give the path of an .npz.")


def list_external_data(model: Path, siblings: Iterable[str]) -> list[str]:
    """Return those of `siblings`, names of files in the model's folder, that are its external data.

    These are the names that the model's bytes contain, in their order. Names of models, .npz, .zip and .pt2 files are
    left out. Empty if more than MAX_SIBLINGS names remain, or if the model's file is empty.
    """
    names = [name for name in siblings if Path(name).suffix.lower() not in _NO_DATA]
    if not names or len(names) > MAX_SIBLINGS or model.stat().st_size == 0:
        return []
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return [name for name in names if _holds_name(content, os.fsencode(name))]


def _holds_name(content: mmap.mmap, name: bytes) -> bool:
    """Say whether the content has the name as protobuf writes a string: after its length, one byte up to 127."""
    text = bytes([len(name)]) + name if len(name) < 128 else name
    return content.find(text) >= 0
