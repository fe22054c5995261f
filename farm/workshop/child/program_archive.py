"""Reads and writes the archive of a framework's program: a zip of torch.export with JSON and raw tensors. Child only.

Nothing is unpickled. Pickled or compiled members are refused, or left out where they are not needed, as the sample
inputs of `torch.export.save` are. The format is that of PyTorch 2.8 to 2.15. `make_problem` writes a sentence from the
program's name and a predicate without a full stop.
"""

import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from farm.workshop.problems import Problem, printable

GRAPH, SAMPLES = "models/model.json", "data/sample_inputs/model.pt"
# by the JSON file that lists them: the folders of raw tensors
TENSORS = {
    "data/weights/model_weights_config.json": "data/weights/",
    "data/constants/model_constants_config.json": "data/constants/",
}
# small members that are copied as they are
_SMALL = ("archive_format", "archive_version", "byteorder", ".data/version")
_MAX_FILES, _MAX_JSON_BYTES, _MAX_SMALL_BYTES = 100_000, 256 << 20, 64
_EXPORT = "save it with torch.export.save of PyTorch 2.8 or newer"

# a parsed JSON object
Json = dict[str, object]


@dataclass(frozen=True)
class Archive:
    """An open program: its name for messages, the zip, and its members by their names below the one top folder."""

    name: str
    zipped: zipfile.ZipFile
    members: Mapping[str, zipfile.ZipInfo]

    def read_json(self, member: str) -> Json:
        """Read a member as a JSON object. Raises Problem bad_program if it is missing, too large or no object."""
        info = self.members.get(member)
        if info is None or info.file_size > _MAX_JSON_BYTES:
            raise make_problem(self.name, f"has no readable {member}: {_EXPORT}")
        try:
            content = json.loads(self.zipped.read(info))
        except (ValueError, RecursionError) as error:
            raise make_problem(self.name, f"has a {member} that is not JSON: {_EXPORT}") from error
        if not isinstance(content, dict):
            raise make_problem(self.name, f"has a {member} that is not a JSON object: {_EXPORT}")
        return cast(Json, content)

    def read_text(self, member: str) -> str:
        """Read a small member as text; empty if it is missing or has more than _MAX_SMALL_BYTES."""
        info = self.members.get(member)
        if info is None or info.file_size > _MAX_SMALL_BYTES:
            return ""
        return self.zipped.read(info).decode("ascii", errors="replace").strip()


def make_problem(name: str, what: str) -> Problem:
    return Problem("bad_program", f"{printable(name)} {what}.")


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open the program at this path and check its members. Raises Problem bad_program.

    An OSError or EOFError inside the `with` block becomes that Problem too.
    """
    try:
        with zipfile.ZipFile(path) as zipped:
            archive = Archive(path.name, zipped, _list_members(path.name, zipped, path.stat().st_size))
            _check_members(archive)
            yield archive
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, UnicodeError) as error:
        raise make_problem(path.name, f"is not a program of torch.export, or a damaged one: {_EXPORT}") from error


def write_archive(archive: Archive, target: Path, *, graph: Json, more: Mapping[str, bytes]) -> None:
    """Write the program's tensors with this graph and the further members `more`, and nothing else of the archive.

    An empty member stands for the sample inputs, since PyTorch requires such a member.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out:
        for member in (*_SMALL, *TENSORS, *_list_tensor_members(archive)):
            if (info := archive.members.get(member)) is not None:
                with archive.zipped.open(info) as source, out.open(f"model/{member}", "w", force_zip64=True) as copy:
                    shutil.copyfileobj(source, copy, 1 << 20)
        # PyTorch requires a member with sample inputs, which are pickled; it takes an empty one as none
        written = {GRAPH: json.dumps(graph).encode(), SAMPLES: b"", **more}
        for member, content in written.items():
            out.writestr(f"model/{member}", content)


def _list_members(name: str, zipped: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """List the members by name. `size` is the archive's in bytes, which its files cannot exceed. Raises Problem."""
    entries = [entry for entry in zipped.infolist() if not entry.is_dir()]
    if len(entries) > _MAX_FILES:
        raise make_problem(name, f"holds {len(entries):,} files; {_MAX_FILES:,} are taken")
    filenames = {entry.filename for entry in entries}
    if "serialized_exported_program.json" in filenames:
        raise make_problem(name, f"is of the format before PyTorch 2.8, whose weights are pickled: {_EXPORT}")
    if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries):
        raise make_problem(name, f"is compressed or encrypted, which programs of torch.export are not: {_EXPORT}")
    if sum(entry.file_size for entry in entries) > size:
        raise make_problem(
            name, f"has files that lie over one another, which programs of torch.export have not: {_EXPORT}"
        )
    members = {entry.filename.partition("/")[2]: entry for entry in entries}
    if len(members) < len(entries) or len({entry.filename.partition("/")[0] for entry in entries}) != 1:
        raise make_problem(name, f"is a zip, but not a program of torch.export: {_EXPORT}")
    return members


def _check_members(archive: Archive) -> None:
    name, members = archive.name, archive.members
    if "data.pkl" in members:
        raise make_problem(name, f"is a pickled file of torch.save or TorchScript, which is not opened: {_EXPORT}")
    if any(member.startswith("data/aotinductor/") for member in members):
        raise make_problem(name, f"holds code compiled by AOTInductor, which is not run: {_EXPORT}")
    if archive.read_text("archive_format") != "pt2" or GRAPH not in members:
        raise make_problem(name, f"is a zip, but not a program of torch.export: {_EXPORT}")
    if (version := archive.read_text("archive_version")) != "0":
        raise make_problem(name, f"has the archive version {version!r}, and 0 is read here")
    if archive.read_text("byteorder") != "little":
        raise make_problem(
            name, "was saved on a big-endian machine, and the nodes are little-endian: save it on such a one"
        )
    missing = next((member for member in _list_tensor_members(archive) if member not in members), None)
    if missing is not None:
        raise make_problem(
            name, f"names the tensor file {printable(missing)} and does not hold it: save or upload it again"
        )


def _list_tensor_members(archive: Archive) -> list[str]:
    """List the members with raw tensors. Raises Problem for a pickled tensor."""
    members: dict[str, None] = {}
    for listing, folder in TENSORS.items():
        entries = archive.read_json(listing).get("config")
        if not isinstance(entries, dict):
            raise make_problem(archive.name, f"has a {listing} that lists nothing: {_EXPORT}")
        for tensor, entry in entries.items():
            members[folder + _find_tensor_file(archive, str(tensor), entry)] = None
    return list(members)


def _find_tensor_file(archive: Archive, tensor: str, entry: object) -> str:
    if not isinstance(entry, dict) or entry.get("use_pickle") is not False or entry.get("tensor_meta") is None:
        complaint = f"keeps {printable(tensor)} pickled, which is not opened: make it a plain, dense tensor on the CPU"
        raise make_problem(archive.name, complaint)
    name = entry.get("path_name")
    if not isinstance(name, str) or not name.replace("_", "").isalnum():
        raise make_problem(
            archive.name,
            f"keeps {printable(tensor)} in {printable(str(name))!r}, which is not the name of a tensor file",
        )
    return name
