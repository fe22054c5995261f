"""Sorts uploaded files by their names into model, external data and reference data, without opening them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from farm.base.refusals import Invalid
from farm.registry.states import FileRole
from farm.registry.storage import Draft

# files of an upload
MAX_FILES: Final = 64
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
# ONNX's own layout, test_data_set_0/input_0.pb; a bare input_0.pb belongs to set 0
PROTOBUF_DATA: Final = re.compile(
    r"(?:test_data_set_(?P<set>\d{1,3})[/.-])?(?P<side>input|output)_(?P<index>\d{1,4})\.pb"
)
# model.inputs.npz or inputs.npz
NPZ_DATA: Final = re.compile(r"(?:.*[._-])?(?P<what>inputs?|expected|outputs?|prompts?|calibration|evaluation)\.npz")
NPZ_ROLES: Final = {
    "input": FileRole.INPUTS,
    "inputs": FileRole.INPUTS,
    "expected": FileRole.EXPECTED,
    "output": FileRole.EXPECTED,
    "outputs": FileRole.EXPECTED,
    "prompt": FileRole.PROMPTS,
    "prompts": FileRole.PROMPTS,
    "calibration": FileRole.CALIBRATION,
    "evaluation": FileRole.EVALUATION,
}
REFERENCE_ROLES: Final = (FileRole.INPUTS, FileRole.EXPECTED)
SIDE_ROLES: Final = {"input": FileRole.INPUTS, "output": FileRole.EXPECTED}


@dataclass(frozen=True, slots=True)
class Part:
    """A file of an upload: the name under which it is stored, its role and its content."""

    name: str
    role: FileRole
    draft: Draft


def sort_into_parts(drafts: Iterable[Draft], *, roles: Mapping[str, FileRole]) -> list[Part]:
    """Find the role and the stored name of every file of an upload; the model comes first, the others by name.

    `roles` maps file names to the roles that the form gave; all other roles follow from the names. ONNX's own test data
    get the name `test_data_set_N-input_M.pb`; of the roles in `roles` they take only calibration, and that for inputs.
    Raises Invalid where there is not exactly one model, for no files, more than MAX_FILES or an empty one, for names
    that cannot be used or differ only in case, for an `.npz` whose name does not tell its role, for two archives of a
    role, and for expected outputs without inputs.
    """
    parts = [_make_part(draft, role=roles.get(draft.name)) for draft in drafts]
    if len(parts) > MAX_FILES:
        raise Invalid(f"The upload has {len(parts)} files; the limit is {MAX_FILES}.", code="too_many_files")
    _check_names(parts)
    _check_model(parts)
    return sorted(parts, key=lambda part: (part.role != FileRole.MODEL, part.name))


def is_allowed_zip_name(name: str) -> bool:
    """Say whether a file may have this name: 1 to 128 letters, digits or `._-`, but not only dots.

    The only folders are ONNX's own, as in `test_data_set_0/input_0.pb`.
    """
    return bool(PROTOBUF_DATA.fullmatch(name) or (NAME.fullmatch(name) and name.strip(".")))


def make_printable(name: str) -> str:
    """Make an untrusted name fit for a sentence: U+FFFD for unprintable characters, and at most 80 characters."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)
    return clean if len(clean) <= 80 else clean[:77] + "…"


def _make_part(draft: Draft, *, role: FileRole | None) -> Part:
    match = PROTOBUF_DATA.fullmatch(draft.name)
    if match:
        name = f"test_data_set_{int(match['set'] or 0)}-{match['side']}_{int(match['index'])}.pb"
        if role == FileRole.CALIBRATION and match["side"] == "input":
            return Part(f"{FileRole.CALIBRATION}-{name}", FileRole.CALIBRATION, draft)
        return Part(name, SIDE_ROLES[match["side"]], draft)
    return Part(draft.name, role or _find_role(draft.name), draft)


def _find_role(name: str) -> FileRole:
    if name.lower().endswith(".onnx"):
        return FileRole.MODEL
    match = NPZ_DATA.fullmatch(name.lower())
    if match:
        return NPZ_ROLES[match["what"]]
    if name.lower().endswith(".npz"):
        raise Invalid(
            f"What {make_printable(name)} is for is not clear from its name.",
            code="unknown_file",
            hint="Name it inputs.npz, expected.npz, prompts.npz, calibration.npz or evaluation.npz.",
        )
    return FileRole.DATA


def _check_names(parts: list[Part]) -> None:
    names: dict[str, str] = {}
    for part in parts:
        if not is_allowed_zip_name(part.name):
            raise Invalid(
                f"The file name “{make_printable(part.name)}” cannot be used.",
                code="bad_name",
                hint="File names have 1 to 128 letters, digits, dots, dashes and underscores.",
            )
        # the file system of a node may ignore case
        if names.setdefault(part.name.lower(), part.name) is not part.name:
            raise Invalid(f"Two files are called {make_printable(part.name)}; upload each once.", code="same_name")
    for role in (*REFERENCE_ROLES, FileRole.PROMPTS, FileRole.CALIBRATION, FileRole.EVALUATION):
        archives = [part.name for part in parts if part.role == role and part.name.endswith(".npz")]
        if len(archives) > 1:
            raise Invalid(f"{archives[0]} and {archives[1]} are both {role}; upload one.", code="same_role")


def _check_model(parts: list[Part]) -> None:
    names = [part.name for part in parts if part.role == FileRole.MODEL]
    if not parts:
        raise Invalid("The upload has no file.", code="no_file", hint="Send an .onnx file, or a .zip that holds one.")
    if not names:
        raise Invalid(
            f"There is no .onnx file among {', '.join(make_printable(part.name) for part in parts[:5])}.",
            code="no_model",
            hint="Send an .onnx file with its external data, or a .zip of those.",
        )
    if len(names) > 1:
        raise Invalid(f"{names[0]} and {names[1]} are both models; upload one model at a time.", code="many_models")
    roles = {part.role for part in parts}
    if FileRole.EXPECTED in roles and FileRole.INPUTS not in roles:
        raise Invalid(
            "Expected outputs came without the inputs that give them.",
            code="no_inputs",
            hint="Add inputs.npz, or test_data_set_0/input_N.pb.",
        )
    for part in parts:
        if part.draft.bytes == 0:
            raise Invalid(f"{part.name} is empty (0 bytes); export it again.", code="empty_file")
