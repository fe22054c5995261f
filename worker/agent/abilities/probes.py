"""Finds out what this node can do: tags of its hardware, and providers that executed a small model.

The provider list of a build proves nothing: without CUDA, a session of a GPU build runs on the CPU silently. So a small
model is run like any cell, and the tag is granted when its trace shows the provider.
"""

import ctypes.util
import glob
import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from farm.contract.blocks import ArmOrder
from farm.contract.cells import Bundle, CellSpec, FileRef, Runtime
from farm.contract.node import SelfTest
from farm.contract.reports import Facts
from farm.rules.cells.readers import read_runtime
from farm.rules.runtimes import providers
from worker.agent.installation import cache, stages
from worker.agent.installation.runtimes import Installed
from worker.agent.measurement import checks, runner_process, traces
from worker.agent.measurement.prepared_arms import PreparedArm

logger = logging.getLogger(__name__)

X86 = ("x86_64", "amd64", "i386", "i686", "x86")
ARM = ("aarch64", "arm64", "armv7l", "armv8l")
TIMEOUT_S = 120.0
FILE = "probes.json"

# installed where the agent's environment has no ONNX Runtime
PLAIN = Runtime(distribution="onnxruntime", version="1.31.1")
# the build with which each provider is probed that the runtime PLAIN lacks: short name → runtime
# third-party builds are installed only where the owner allows them
BUILDS = {
    provider.short: read_runtime(provider.probe_with, allowed=provider.packages)
    for provider in providers.PROVIDERS
    if provider.probe_with
}


class NotProvenError(Exception):
    """A provider did not execute here. The message says why, in one sentence."""


@dataclass(frozen=True)
class Abilities:
    """What a node has proven: tags, each with its evidence in words, and providers by ONNX Runtime's names.

    `self_test` is the newest one. A node that did not pass it claims nothing. In `a | b`, the evidence and the
    self-test of `b` replace those of `a`.
    """

    tags: dict[str, str] = field(default_factory=dict)
    providers: tuple[str, ...] = ()
    self_test: SelfTest | None = None

    def __or__(self, other: "Abilities") -> "Abilities":
        names = dict.fromkeys((*self.providers, *other.providers))
        tested = other.self_test or self.self_test
        return Abilities(tags=self.tags | other.tags, providers=tuple(names), self_test=tested)


def list_machine_tags(facts: Facts) -> dict[str, str]:
    """List the tags of the processor, with their evidence: `x86` or `arm` if it is one, and its instruction sets."""
    arch = facts.arch.lower()
    tags = {tag: f"architecture {facts.arch}" for tag, names in (("x86", X86), ("arm", ARM)) if arch in names}
    return tags | {name: f"the processor lists {name}" for name in facts.instruction_sets}


def list_probable_providers(facts: Facts) -> tuple[str, ...]:
    """List the short names of providers whose hardware this machine seems to have, in the table's order.

    Providers without signs to look for, such as the CPU, are left out.
    """
    return tuple(
        provider.short
        for provider in providers.PROVIDERS
        if provider.signs is not None and shows_signs(provider.signs, facts)
    )


def shows_signs(signs: providers.Signs, facts: Facts) -> bool:
    """Say whether this machine has a provider's system and architecture, one of its device files and all its libraries.

    That does not prove that the provider executes. Where the variable that `signs` names lets the processor stand in
    for the device, no device files are needed.
    """
    stands_in = bool(signs.stands_in) and os.environ.get(signs.stands_in) == "1"
    return (
        sys.platform in signs.systems
        and (not signs.machines or facts.arch.lower() in signs.machines)
        and (not signs.files or stands_in or any(glob.glob(pattern) for pattern in signs.files))
        and all(ctypes.util.find_library(name) for name in signs.libraries)
    )


def find_agent_runtime() -> Installed | None:
    """Return the plain ONNX Runtime (`onnxruntime`) of this agent's own environment; None where it has none.

    Other builds in it, such as onnxruntime-gpu, are not found.
    """
    try:
        runtime = Runtime(distribution="onnxruntime", version=version("onnxruntime"))
    except PackageNotFoundError:
        return None
    return Installed(runtime=runtime, folder=Path(sys.prefix))


def probe(
    short: str, *, installed: Installed, stage: Path, folder: Path, is_cancelled: Callable[[], bool]
) -> Abilities:
    """Run the probe model on the provider with the short name `short`, and return its tag, with the evidence.

    The staged runner in `stage` runs the model in a separate process, with its files in `folder`. Where the
    processor simulates the device, the tag is the provider's simulated one. Raises NotProvenError where the model does
    not run, or where its trace does not show the provider, and UnknownProvider for a name that is in no table.
    """
    entry = providers.resolve(short)
    folder.mkdir(parents=True, exist_ok=True)
    stages.compile_stage(stage, python=installed.python)
    model, inputs = folder / "bundle" / "probe.onnx", folder / "files" / "inputs.npz"
    _write_probe_model(model, inputs)
    arm = prepare_arm(model, inputs, entry=entry, installed=installed)
    launcher = runner_process.Launcher(stage=stage, timeout_s=TIMEOUT_S, memory_bytes=None, is_cancelled=is_cancelled)
    with launcher:
        report = checks.run_check(launcher, arm)
        if report.reason is not None:
            raise NotProvenError(
                f"{entry.name} does not run here on {installed.runtime}, it takes {entry.needs}: {report.reason.text}"
            )
        profiled = traces.profile_arm(launcher, arm, trace_round=0)
    trace = traces.make_report(profiled, traces.Mapper(work_dir=folder), store=lambda arm, trace_round, path: None)
    traces.delete_files(profiled)
    shown = next((share for share in trace.providers if share.name == entry.name), None)
    if shown is None:
        ran = ", ".join(share.name for share in trace.providers) or "nothing"
        raise NotProvenError(f"{entry.name} was asked for on {installed.runtime} and {ran} executed.")
    day = datetime.now(UTC).date()
    evidence = f"{day}: a trace on {installed.runtime} shows {shown.nodes} of the probe's nodes on {entry.name}"
    if report.is_simulated:
        return Abilities(tags={entry.simulated_tag: f"{evidence}, simulated by the processor"}, providers=(entry.name,))
    return Abilities(tags={entry.tag: evidence}, providers=(entry.name,))


def load_proven(folder: Path) -> Abilities:
    """Load what `store_proven` stored in this home folder: tags and providers, without a self-test.

    Return no tags for a missing or invalid file.
    """
    try:
        stored = json.loads((folder / FILE).read_text())
        return Abilities(tags=dict(stored["tags"]), providers=tuple(stored["providers"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Abilities()


def store_proven(folder: Path, abilities: Abilities) -> None:
    (folder / FILE).write_text(json.dumps({"tags": abilities.tags, "providers": list(abilities.providers)}, indent=2))


def prepare_arm(
    model: Path, inputs: Path, *, entry: providers.Provider, installed: Installed, reference: Path | None = None
) -> PreparedArm:
    """Prepare a model of the agent's own, to be run as an arm of a block is.

    `model` and `inputs` are in two folders of the same parent folder, and a folder `scratch` is made in that parent.
    """
    bundle = Bundle(main=model.name, files=(_make_file_ref(model),))
    cell = CellSpec(
        artifact_sha256=bundle.digest,
        runtime=installed.runtime,
        provider=entry.name,
        provider_options=dict(entry.defaults),
    )
    order = ArmOrder(arm=0, cell=cell, bundle=bundle, source=bundle, inputs=_make_file_ref(inputs))
    scratch = model.parents[1] / "scratch"
    scratch.mkdir(exist_ok=True)
    return PreparedArm(
        order=order, installed=installed, model=model, source=model, inputs=inputs, reference=reference, scratch=scratch
    )


def _make_file_ref(path: Path) -> FileRef:
    return FileRef(name=path.name, sha256=cache.hash_file(path), bytes=path.stat().st_size)


def _write_probe_model(model: Path, inputs: Path) -> None:
    """Write a model of a matrix product and an activation, which every provider and runtime can run, and its inputs."""
    import numpy as np
    from onnx import TensorProto, helper, save

    for path in (model, inputs):
        path.parent.mkdir(exist_ok=True)
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product"), helper.make_node("Relu", ["y"], ["z"], "bend")],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [8, 64])],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.tobytes(), raw=True)],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), model)
    np.savez(inputs, x=np.ones((8, 64), np.float32))
