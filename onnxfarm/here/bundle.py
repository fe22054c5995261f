"""Imports a model from disk as a farm imports an upload: it copies the files, and inspects the copy."""

import contextlib
import hashlib
import re
import shutil
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from farm.contract.cells import PROGRAM_ENDING, Bundle, FileRef
from farm.rules.runtimes.models import PROMPTS, ModelFacts
from farm.workshop import orders
from farm.workshop.inspection import Inspection
from onnxfarm.disk_space import WAY_OUT, check_free_space
from onnxfarm.model_files import check_exported_program, derive_model_name, list_model_files
from onnxfarm.problems import Infrastructure, Usage

MAX_ZIP_ENTRIES = 64
MAX_UNPACKED_BYTES = 64 << 30
_NAME = re.compile(r"^[A-Za-z0-9._-]{1,128}$")


@dataclass
class LocalFiles:
    """The files of a measurement: `paths` by SHA-256. `fetch` copies one, in place of an agent's download.

    `fetch` raises KeyError for a digest that was not added.
    """

    paths: dict[str, Path] = field(default_factory=dict)

    def add(self, path: Path, *, name: str | None = None) -> FileRef:
        """Add a file, which is not copied and must stay in place, and return its reference. `name` None: its own."""
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        self.paths[digest] = path
        return FileRef(name=name or path.name, sha256=digest, bytes=path.stat().st_size)

    def make_bundle(self, folder: Path, main: str, *, names: Sequence[str] | None = None) -> Bundle:
        """Add files of a folder, and return them as a bundle with `main` first, which is always included.

        `names` None: all files that are directly in the folder, by name.
        """
        if names is None:
            names = sorted(path.name for path in folder.iterdir() if path.is_file())
        others = [name for name in names if name != main]
        return Bundle(main=main, files=tuple(self.add(folder / name) for name in (main, *others)))

    def fetch(self, digest: str, to: Path) -> None:
        shutil.copyfile(self.paths[digest], to)


@dataclass(frozen=True)
class ImportedModel:
    """An imported model. `folder` has its files, and `main` is the name of the .onnx in it.

    `name`: what the model is called. `prompts`: the file of prompts that its zip or folder held; None: it held none.
    """

    folder: Path
    main: str
    bundle: Bundle
    inspection: Inspection
    name: str
    prompts: Path | None = None

    def make_facts(
        self, *, inputs: FileRef | None, inputs_batch: int | None, sizes: Mapping[str, int] | None = None
    ) -> ModelFacts:
        """Return the facts that planning needs. The parameters describe the user's inputs; None: the user gave none.

        `inputs_batch`: their batch size. `sizes`: their sizes by dynamic dimension, ignored without `inputs`.
        """
        sha256 = inputs.sha256 if inputs else None
        facts = self.inspection.make_facts(self.bundle, name=self.name, inputs_sha256=sha256, inputs_batch=inputs_batch)
        return facts.model_copy(update={"sizes": dict(sizes or {})}) if inputs else facts


def import_model(model: Path, *, folder: Path, files: LocalFiles, source: Path | None = None) -> ImportedModel:
    """Copy a model with its external data into a new folder, inspect it in the sandbox, and add its files to `files`.

    `folder` must not exist yet. A .zip is unpacked; prompts in it, or in a model's folder, are moved beside `folder`.
    The .onnx may be renamed, so that its name has only A-Z a-z 0-9 . _ -. `source`: the framework's program that the
    model was exported from. Raises Usage if the model cannot be used, and Infrastructure if it cannot be copied.
    """
    folder.mkdir(parents=True)
    given_files = list_model_files(model)
    try:
        with check_free_space(folder, needed_bytes=sum(path.stat().st_size for path in given_files), way_out=WAY_OUT):
            main = _copy_model(given_files, folder)
            if source is not None:
                shutil.copyfile(check_exported_program(source), folder / f"{Path(main).stem}{PROGRAM_ENDING}")
    except OSError as problem:
        raise Infrastructure(f"{model} could not be copied to {folder} ({problem.strerror}).") from problem
    prompts = _move_prompts_aside(folder)
    inspection = orders.inspect(folder, main)
    if inspection.problem is not None:
        raise Usage(f"{model}: {inspection.problem.text}")

    # find inputs that the model runs with
    scratch = folder.with_name(f"{folder.name}-tried")
    scratch.mkdir()
    inspection = inspection.model_copy(update={"feed": orders.choose_feed(folder, main, out_dir=scratch)})
    name = derive_model_name(model) or Path(main).stem
    return ImportedModel(folder, main, files.make_bundle(folder, main), inspection, name=name, prompts=prompts)


def _move_prompts_aside(folder: Path) -> Path | None:
    """Move prompts out of a model's folder, because they are no part of it. Return their new path; None: no prompts."""
    prompts = sorted(folder.glob(f"*{PROMPTS}"))
    if len(prompts) > 1:
        raise Usage(f"{prompts[0].name} and {prompts[1].name} are both prompts: leave one out.")
    return Path(shutil.move(prompts[0], folder.with_name(prompts[0].name))) if prompts else None


def _copy_model(paths: list[Path], folder: Path) -> str:
    """Copy the files of a model, or those in its zip, into the folder. Return the name of the .onnx. Raises Usage."""
    if paths[0].suffix.lower() == ".zip":
        return _unzip(paths[0], folder)
    model, *data = paths
    # the .onnx may be renamed, but not its data files, whose names are in it
    main = model.name if _NAME.match(model.name) else re.sub(r"[^A-Za-z0-9._-]", "_", model.name)[-128:]
    shutil.copyfile(model, folder / main)
    for path in data:
        if not _NAME.match(path.name):
            raise Usage(
                f"The data file {path.name!r} has other characters in its name than A-Z a-z 0-9 . _ -; rename it."
            )
        shutil.copyfile(path, folder / path.name)
    return main


def _unzip(archive: Path, folder: Path) -> str:
    with _open_zip(archive) as zipped:
        entries = [entry for entry in zipped.infolist() if not entry.is_dir()]
        _check_entries(archive, entries)
        for entry in entries:
            with zipped.open(entry) as source, (folder / entry.filename).open("wb") as target:
                _copy_entry(source, target, at_most=entry.file_size)
    models = [entry.filename for entry in entries if entry.filename.lower().endswith(".onnx")]
    if len(models) != 1:
        raise Usage(f"{archive.name} holds {len(models)} .onnx files where one is needed.")
    return models[0]


def _check_entries(archive: Path, entries: list[zipfile.ZipInfo]) -> None:
    if not 0 < len(entries) <= MAX_ZIP_ENTRIES:
        raise Usage(f"{archive.name} holds {len(entries)} files; 1 to {MAX_ZIP_ENTRIES} are taken.")
    for entry in entries:
        if not _NAME.match(entry.filename):
            raise Usage(f"{archive.name} holds {entry.filename[:80]!r}: zip the files without folders (zip -j).")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise Usage(f"{archive.name} holds a link, {entry.filename}: zip the file itself.")
    if len({entry.filename for entry in entries}) < len(entries):
        raise Usage(f"{archive.name} holds two files of one name.")
    if sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise Usage(f"{archive.name} unpacks to more than {MAX_UNPACKED_BYTES // 2**30} GiB.")


@contextlib.contextmanager
def _open_zip(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(archive) as zipped:
            yield zipped
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as problem:
        raise Usage(
            f"{archive.name} is a damaged or encrypted zip ({problem}): zip it again, without a password."
        ) from problem


def _copy_entry(source: IO[bytes], target: IO[bytes], *, at_most: int) -> None:
    remaining = at_most
    while chunk := source.read(min(1 << 20, remaining + 1)):
        remaining -= len(chunk)
        if remaining < 0:
            raise zipfile.BadZipFile("an entry is longer than its directory says")
        target.write(chunk)
