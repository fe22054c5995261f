"""Data that came with an upload, accepted in the sandboxed child: names, dtypes and shapes fit the model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from farm.registry.models import Artifact, ArtifactFile
from farm.registry.services.room import store_blob
from farm.registry.states import FileRole
from farm.registry.storage import draft_of, fetched
from farm.registry.workbench import copy
from farm.rules.runtimes.models import PromptFacts
from farm.workshop import orders

Side = Literal["input", "output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where an artifact is laid out, and where its child may write."""

    artifact: Artifact
    bundle: Path
    out: Path


def accept_given(bench: Bench) -> Mapping[str, int] | None:
    """Checks the artifact's given inputs and keeps them, and its expected outputs, as `.npz` by name.

    The sizes of dynamic dimensions that they have; None where none were given.
    Raises orders.WorkshopError with the sentence that says what does not fit.
    """
    artifact = bench.artifact
    if not artifact.files_of(FileRole.INPUTS):
        return None
    given = _as_npz(bench, FileRole.INPUTS, side="input")
    accepted = orders.accept_inputs(bench.bundle, artifact.main, inputs=given, out_dir=bench.out)
    if artifact.inputs_id is not None:
        return accepted.sizes
    artifact.inputs = store_blob(team=artifact.team, draft=draft_of(accepted.path))
    artifact.inputs_batch = accepted.batch
    if artifact.files_of(FileRole.EXPECTED):
        expected = _as_npz(bench, FileRole.EXPECTED, side="output")
        artifact.expected = store_blob(team=artifact.team, draft=draft_of(expected))
    artifact.save(update_fields=["inputs", "inputs_batch", "expected"])
    return accepted.sizes


def accept_prompts(bench: Bench) -> None:
    """Checks the artifact's given prompts and keeps them as one `.npz`.

    Raises orders.WorkshopError with the sentence that says what does not fit.
    """
    artifact = bench.artifact
    files = artifact.files_of(FileRole.PROMPTS)
    if not files or artifact.prompts_id is not None:
        return
    laid = _laid(bench, files[0], name="given-prompts.npz")
    accepted = orders.accept_prompts(bench.bundle, artifact.main, prompts=laid, out_dir=bench.out)
    blob = store_blob(team=artifact.team, draft=draft_of(accepted.path))
    known = PromptFacts(
        sha256=blob.sha256, rows=accepted.rows, tokens=accepted.tokens, text_tokens=accepted.text_tokens
    )
    artifact.prompts, artifact.prompts_json = blob, known.model_dump(mode="json")
    artifact.save(update_fields=["prompts", "prompts_json"])


def accept_calibration(bench: Bench) -> None:
    """Checks the artifact's calibration data and keeps them as one `.npz`, or the sentence of why they cannot serve.

    They are `calibration.npz`; without it, every set of ONNX's own test data is a sample or a batch of them.
    """
    artifact = bench.artifact
    if artifact.calibration_id is not None or artifact.calibration_problem:
        return
    files = artifact.files_of(FileRole.CALIBRATION) or [
        file for file in artifact.files_of(FileRole.INPUTS) if not file.name.endswith(".npz")
    ]
    if not files:
        return
    archive = next((file for file in files if file.name.endswith(".npz")), None)
    data = _laid(bench, archive, name="calibration.npz") if archive else None
    sets = [] if archive else _sets(bench, files)
    try:
        accepted = orders.accept_calibration(bench.bundle, artifact.main, data=data, sets=sets, out_dir=bench.out)
    except orders.WorkshopError as problem:
        artifact.calibration_problem = problem.reason.text
    else:
        artifact.calibration = store_blob(team=artifact.team, draft=draft_of(accepted.path))
        artifact.calibration_samples = accepted.samples
    artifact.save(update_fields=["calibration", "calibration_samples", "calibration_problem"])


def _sets(bench: Bench, files: list[ArtifactFile]) -> list[list[Path]]:
    """Test data by set and place, laid out beside the bundle."""
    found: dict[int, list[Path]] = {}
    for file in sorted(files, key=_place):
        number, index = _place(file)
        found.setdefault(number, []).append(_laid(bench, file, name=f"calibration-{number}-{index}.pb"))
    return list(found.values())


def _as_npz(bench: Bench, role: FileRole, *, side: Side) -> Path:
    """The files of a role as one archive; of several test data sets the first."""
    files = bench.artifact.files_of(role)
    archives = [file for file in files if file.name.endswith(".npz")]
    if archives:
        return _laid(bench, archives[0], name=f"given-{side}s.npz")
    first = min(files, key=_place).name.partition("-")[0]
    chosen = sorted((file for file in files if file.name.partition("-")[0] == first), key=_place)
    laid = [_laid(bench, file, name=f"{side}_{number}.pb") for number, file in enumerate(chosen)]
    return orders.unpack_test_data(bench.bundle, bench.artifact.main, files=laid, side=side, out_dir=bench.out)


def _place(file: ArtifactFile) -> tuple[int, int]:
    """`test_data_set_1-input_10.pb` by its numbers."""
    folder, _, name = file.name.rpartition("-")
    return int(folder.rpartition("_")[2]), int(name.removesuffix(".pb").rpartition("_")[2])


def _laid(bench: Bench, file: ArtifactFile, *, name: str) -> Path:
    target = bench.bundle.parent / name
    copy(fetched(team_id=bench.artifact.team_id, sha256=file.blob.sha256), target)
    return target
