"""Explains each reason code, with an example and what to do: for the terminal and the reference."""

from typing import NamedTuple

from farm.contract.reasons import ReasonCode


class Explanation(NamedTuple):
    """What a reason code means, a case in which it occurs, and what to do then."""

    meaning: str
    example: str
    way_out: str


REASONS = {
    ReasonCode.OPSET_TOO_NEW: Explanation(
        "The model's operator set is newer than the release loads.",
        "opset 22 on ONNX Runtime 1.20.1, which needs 1.21 or newer.",
        "a newer release, or an opset that the release loads (`opset: [21]`).",
    ),
    ReasonCode.IR_TOO_NEW: Explanation(
        "The file's format, its IR version, is newer than the release loads.",
        "IR version 11 on ONNX Runtime 1.19.0.",
        "a newer release, or `opset: [max-of-runtime]`, which puts the stamps in order.",
    ),
    ReasonCode.CUSTOM_DOMAIN: Explanation(
        "The model has operators of a domain that no build of ONNX Runtime has.",
        "a node of the domain `my.company`.",
        "export the model without them, or with a function in the model that defines them.",
    ),
    ReasonCode.FIXED_BATCH: Explanation(
        "The model, or its given inputs, have one batch.",
        "`batch: [8]` of a model with the fixed batch 1.",
        "leave `batch` out, or export it with a dynamic first dimension.",
    ),
    ReasonCode.NO_BATCH: Explanation(
        "The first dimension is not a batch.",
        "`batch: [8]` of a model whose first dimension is a length.",
        "leave `batch` out and set dimensions by `shapes`.",
    ),
    ReasonCode.UNKNOWN_RUNTIME: Explanation(
        "There is no such release, or its package is not allowed.",
        "`onnxruntime==1.31.9`.",
        "the release that the sentence names; a package of others is allowed by the farm and by the node's owner.",
    ),
    ReasonCode.PROVIDER_NOT_IN_BUILD: Explanation(
        "The distribution does not carry the execution provider.",
        "`provider: cuda` with `onnxruntime==1.31.1`.",
        "the package that brings it (`onnxruntime-gpu`), or another provider.",
    ),
    ReasonCode.PROVIDER_NOT_ACTIVE: Explanation(
        "The session did not start the provider; it would have fallen back to the CPU.",
        "CUDA without its driver.",
        "see what the node's page says of its probe, or take `cpu`.",
    ),
    ReasonCode.NO_NODE: Explanation(
        "No node that is online takes the cell: its hardware, its provider or its engine.",
        "`provider: openvino` on a farm without such a node.",
        "add a node (`onnxfarm node invite`), or ask an owner to let one try the provider (`onnxfarm node try`).",
    ),
    ReasonCode.VARIANT_IMPOSSIBLE: Explanation(
        "The precision or opset cannot be made of this model.",
        "`int8-qdq` of a model that is quantised already.",
        "another precision or opset, or leave it out; or upload a model without it.",
    ),
    ReasonCode.EXCLUDED: Explanation(
        "Kept for programs that know it: this release gives it to no point.",
        "none.",
        "none is needed.",
    ),
    ReasonCode.MODEL_NOT_LOADED: Explanation(
        "The runtime does not load the model, or its file cannot be read.",
        "external data that were not uploaded, or code that was compiled for another provider.",
        "upload it whole; what a provider compiled needs that provider; else another release, precision or opset.",
    ),
    ReasonCode.NOT_SUPPORTED: Explanation(
        "A setting, dimension or scenario does not go with this model, runtime or provider.",
        "a dimension that the model does not have, or more threads than cores.",
        "change or leave out what the sentence names.",
    ),
    ReasonCode.SANDBOX_MISSING: Explanation(
        "No sandbox holds on the machine that was to open the model.",
        "a farm on macOS, or a kernel without Landlock and bubblewrap.",
        "a machine with a sandbox; docs/sandbox.md says which, and what its owner may accept.",
    ),
    ReasonCode.RUNTIME_INSTALL_FAILED: Explanation(
        "The node could not install the runtime.",
        "its package index does not answer, or a file has another hash.",
        "look at the node's index, and measure again.",
    ),
    ReasonCode.ARTIFACT_UNAVAILABLE: Explanation(
        "The node could not have a file of the model.",
        "the download broke off.",
        "measure again; if it stays, look at the gateway and the store.",
    ),
    ReasonCode.OUT_OF_MEMORY: Explanation(
        "The process needed more memory than its limit or the machine has.",
        "`memory_limit_mb: [512]` of a model of 1 GiB.",
        "a larger limit, a smaller batch or shapes, or a node with more memory.",
    ),
    ReasonCode.TIMEOUT: Explanation(
        "A step took longer than it may.",
        "an inference of minutes.",
        "a smaller shape, or another node.",
    ),
    ReasonCode.CRASHED: Explanation(
        "The process ended by a signal.",
        "SIGSEGV in a kernel.",
        "another release or provider; it is worth a report to the runtime's tracker.",
    ),
    ReasonCode.FLOODED: Explanation(
        "The process printed or answered more than it may.",
        "a provider that logs without end.",
        "switch its log off.",
    ),
    ReasonCode.GARBLED: Explanation(
        "What the process answered cannot be read.",
        "an answer of another form.",
        "measure again; if it stays, tell us.",
    ),
    ReasonCode.INFERENCE_FAILED: Explanation(
        "The runtime loaded the model and refused to run it.",
        "a shape that does not fit.",
        "other sizes or inputs (`--shape`, `--input`, `--inputs`).",
    ),
    ReasonCode.NODE_LOST: Explanation(
        "The node fell silent while it measured, again and again.",
        "a machine that was switched off.",
        "start it, or measure on another node.",
    ),
    ReasonCode.CANCELLED: Explanation(
        "A person stopped it.",
        "`onnxfarm cancel 7`.",
        "start it again.",
    ),
    ReasonCode.FAIL_FAST: Explanation(
        "Another cell failed, and the matrix says `fail-fast: true`.",
        "the first of eight cells crashed.",
        "mend that one, or leave `fail-fast` out.",
    ),
    ReasonCode.INTERNAL: Explanation(
        "A mistake of ours.",
        "an order that names no file.",
        "tell us, with the sentence.",
    ),
}
