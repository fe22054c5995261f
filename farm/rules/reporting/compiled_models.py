"""A model that a provider compiled while its cell was measured: for what, in words. Pure."""

from farm.contract.document_cells import Cell
from farm.rules.runtimes import plugins


def beside(cell: Cell) -> str:
    """The runtime that compiled it: `onnxruntime-qnn 2.7.0 on ONNX Runtime 1.31.1`."""
    distribution = cell.runtime.distribution
    own, _ = plugins.split_pair(cell.runtime.version)
    core = cell.packages.get("onnxruntime", "")
    return f"{distribution} {own}" + (f" on ONNX Runtime {core}" if core and distribution != "onnxruntime" else "")


def sentence(cell: Cell) -> str:
    """By what, with which options, and on which device it was compiled."""
    options = ", ".join(f"{name}={value}" for name, value in sorted(cell.provider_options.items()))
    told = f"{cell.provider}{f' ({options})' if options else ''} of {beside(cell)}"
    where = "a simulator on x86" if cell.simulated else cell.provider_facts.get("device", "")
    return f"Compiled by {told}{f', for {where}' if where else ''}."
