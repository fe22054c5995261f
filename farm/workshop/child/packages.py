"""Unpacks the few wanted files of an npm package, under limits. Runs in the child only."""

import tarfile
from pathlib import Path

from farm.workshop.child import payloads
from farm.workshop.problems import Problem, answer_problems

PIECE_BYTES = 1 << 20
UNREADABLE = "The package is not an archive as npm packs it."


@answer_problems
def unpack_package(payload: payloads.Package) -> dict[str, object]:
    """Write the wanted files of the payload's package to the folder `out`, by their own names.

    Only plain files of its folder `dist` count; links and other paths are ignored. `limit_files` limits how many
    members the package lists, and `limit_bytes` the size of the wanted files together. Returns a problem with the code
    bad_package or missing_file.
    """
    out, names = Path(payload["out"]), set(payload["names"])
    bytes_left = payload["limit_bytes"]
    try:
        with tarfile.open(Path(payload["folder"]) / payload["main"], "r|gz") as archive:
            for number, member in enumerate(archive):
                if number >= payload["limit_files"]:
                    raise Problem("bad_package", f"The package lists more than {payload['limit_files']} files.")
                top, _, name = member.name.partition("/dist/")
                if member.isreg() and "/" not in top and name in names:
                    names.discard(name)
                    bytes_left = _copy_member(archive, member, out / name, bytes_left=bytes_left)
    except (tarfile.TarError, EOFError, OSError, ValueError) as problem:
        raise Problem("bad_package", UNREADABLE) from problem
    if names:
        raise Problem("missing_file", f"The package has no {' and no '.join(sorted(names))}: take another release.")
    return {}


def _copy_member(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, *, bytes_left: int) -> int:
    """Copy one file and return how many bytes are left for the others."""
    if member.size > bytes_left:
        raise Problem("bad_package", f"{member.name[:80]} is larger than the limit.")
    source = archive.extractfile(member)
    if source is None:
        raise Problem("bad_package", UNREADABLE)
    with source, target.open("wb") as file:
        while piece := source.read(PIECE_BYTES):
            file.write(piece)
    return bytes_left - member.size
