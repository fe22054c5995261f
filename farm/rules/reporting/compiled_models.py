"""Describes how a provider compiled a model while the model's cell was measured."""

from farm.contract.document_cells import Cell
from farm.rules.runtimes import plugins


def describe_compilation(cell: Cell) -> str:
    """Say with which provider and options, by which runtime and for which device the model was compiled.

    The runtime is a distribution with the ONNX Runtime below it: `onnxruntime-qnn 2.7.0 on ONNX Runtime 1.31.1`.
    """
    options = ", ".join(f"{name}={value}" for name, value in sorted(cell.provider_options.items()))
    distribution = cell.runtime.distribution
    release, _ = plugins.split_pair(cell.runtime.version)
    core = "" if distribution == "onnxruntime" else cell.packages.get("onnxruntime", "")
    compiler = f"{cell.provider}{f' ({options})' if options else ''} of {distribution} {release}"
    device = "a simulator on x86" if cell.simulated else cell.provider_facts.get("device", "")
    on_core, for_device = f" on ONNX Runtime {core}" if core else "", f", for {device}" if device else ""
    return f"Compiled by {compiler}{on_core}{for_device}."
