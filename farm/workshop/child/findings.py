"""Findings about a model: properties that make it slow, fragile or unfit. Runs in the child only."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypedDict

import onnx
from onnx import TensorProto

from farm.rules.quality.findings import RANDOM_DRAWS
from farm.rules.runtimes import opsets
from farm.rules.wording.numbers import counted
from farm.workshop.child import constants, external, quantised, shapes, traversal
from farm.workshop.child.facts import Facts
from farm.workshop.problems import first_line, printable

# near protobuf's limit of 2 GB
_NEARLY_2GB_BYTES = 1_800_000_000
_MIN_DUPLICATE_BYTES = 1024
_LARGE_INT64_SHARE = 0.3
_MAX_PLACES = 20
_DRAWS = {*(f"Random{kind}" for kind in ("Normal", "Uniform", "NormalLike", "UniformLike")), "Multinomial", "Bernoulli"}
_TO_NHWC, _TO_NCHW = [0, 2, 3, 1], [0, 3, 1, 2]


class Finding(TypedDict):
    """The fields of an `inspection.FoundFinding`."""

    id: str
    detail: str
    count: int
    where: list[str]


def find_all_findings(model: onnx.ModelProto, *, facts: Facts, path: Path | None = None) -> list[Finding]:
    """Run all checks on the model, and write the inferred shapes into it.

    `path` is the file that it was read from, or None.
    """
    findings = run_onnx_checks(model, path)
    for check in _CHECKS:
        findings.extend(check(model, facts))
    return findings


def run_onnx_checks(model: onnx.ModelProto, path: Path | None = None) -> list[Finding]:
    """Run ONNX's checker and shape inference, return their complaints, and write the shapes into `model`.

    A model newer than the onnx installed here is neither checked nor given shapes; the one finding says so.
    """
    imports = {entry.domain: entry.version for entry in model.opset_import}
    newest = max((v for domain, v in imports.items() if domain in opsets.ONNX_DOMAINS), default=0)
    if model.ir_version > onnx.IR_VERSION or newest > onnx.defs.onnx_opset_version():
        detail = f"IR version {model.ir_version}, opset {newest}; the checker here knows {onnx.IR_VERSION} and "
        return [_note("not_checked", detail + f"{onnx.defs.onnx_opset_version()}.")]
    complaints = []
    try:
        # the checker gets the file's path if possible, so that no second copy of a large model is in memory
        source = None if external.list_external_files(model) else path
        onnx.checker.check_model(source or _copy_without_data(model))
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        complaints.append(_note("checker_complaint", f"{first_line(error)}."))
    try:
        shapes.set_inferred_shapes(model)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        complaints.append(_note("checker_complaint", f"Shape inference fails: {first_line(error)}."))
    return complaints


def _copy_without_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy the model without external data, which the checker would look for in the working directory."""
    if not external.list_external_files(model):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in traversal.iterate_tensors(copy):
        if external.read_location(tensor):
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]
            del tensor.dims[:]
            tensor.dims.append(0)
    return copy


def _check_training_mode(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    dropouts = [node for node in traversal.iterate_nodes(model) if node.op_type == "Dropout" and len(node.input) > 2]
    flags = constants.read_constants(model, names={node.input[2] for node in dropouts})
    where, unseeded = [], []
    for node in traversal.iterate_nodes(model):
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        is_dropout = node.op_type == "Dropout" and len(node.input) > 2 and bool(flags.get(node.input[2], False))
        if is_dropout or (node.op_type == "BatchNormalization" and attributes.get("training_mode") == 1):
            where.append(_name_of(node))
        if (is_dropout or node.op_type in _DRAWS) and "seed" not in attributes:
            unseeded.append(node.op_type)
    if where:
        yield _note("training_mode", f"In training mode: {counted(len(where), 'operator')}.", where=where)
    if unseeded:
        kinds = sorted(set(unseeded))
        yield _note(RANDOM_DRAWS, f"Drawn by {', '.join(kinds)}.", where=kinds, count=len(unseeded))


def _check_fixed_shapes(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    if facts["batch"] == 1:
        yield _note("fixed_batch_one", "The first dimension of every input is 1.")
    if not facts["dims"] and all(port["shape"] is not None for port in facts["inputs"]):
        yield _note("no_dynamic_axis", "Every dimension of every input is fixed.")


def _check_versions(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    lowest = opsets.find_lowest_runtime(facts["opsets"], facts["ir_version"])
    oldest = f"{opsets.OLDEST[0]}.{opsets.OLDEST[1]}"
    if lowest != oldest:
        needs = f"ONNX Runtime ≥ {lowest}" if lowest else "a release newer than any known"
        yield _note("needs_newer_runtime", f"With {' and '.join(_list_newest(facts, lowest))} it needs {needs}.")
    if facts["unused_opsets"]:
        named = [f"{domain or 'ai.onnx'} {facts['opsets'][domain]}" for domain in facts["unused_opsets"]]
        yield _note("unused_opset", f"No node uses {', '.join(named)}.", where=named)
    if facts["custom_domains"]:
        detail = f"Operators of {', '.join(facts['custom_domains'])}."
        yield _note("custom_domain", detail, where=facts["custom_domains"])


def _list_newest(facts: Facts, lowest: str | None) -> list[str]:
    """List the operator sets, and the IR version, that by themselves need this release."""
    named = {f"{domain or 'opset'} {version}": {domain: version} for domain, version in facts["opsets"].items()}
    versions = [name for name, imports in named.items() if opsets.find_lowest_runtime(imports, 0) == lowest]
    is_ir = opsets.find_lowest_runtime({}, facts["ir_version"]) == lowest
    return [*versions, *([f"IR version {facts['ir_version']}"] if is_ir else [])]


def _check_subgraphs(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    if facts["subgraphs"]:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(facts["subgraphs"].items()))
        yield _note("subgraphs", f"The graph holds {counts}.", count=sum(facts["subgraphs"].values()))


def _check_wide_types(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    kinds = _list_element_types(model)
    doubles = sorted(name for name, kind in kinds.items() if kind == TensorProto.DOUBLE)
    if doubles or facts["dtypes"].get("float64"):
        yield _note(
            "float64", f"In float64: {counted(len(doubles), 'tensor')}.", where=doubles, count=max(1, len(doubles))
        )
    computed = [kinds[name] for node in model.graph.node for name in node.output if name in kinds]
    int64_count = sum(kind == TensorProto.INT64 for kind in computed)
    if len(computed) >= 5 and int64_count > _LARGE_INT64_SHARE * len(computed):
        yield _note("int64_heavy", f"{int64_count} of {len(computed)} nodes compute int64.", count=int64_count)


def _list_element_types(model: onnx.ModelProto) -> dict[str, int]:
    graph = model.graph
    kinds = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.HasField("tensor_type"):
            kinds[value.name] = value.type.tensor_type.elem_type
    return kinds


def _check_stored_inputs(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    stored = {tensor.name for tensor in model.graph.initializer}
    both = [value.name for value in model.graph.input if value.name in stored]
    if both:
        yield _note("initialisers_as_inputs", f"Both stored and an input: {counted(len(both), 'tensor')}.", where=both)


def _check_missing_shapes(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    with_shape = {
        value.name
        for value in (*model.graph.value_info, *model.graph.output, *model.graph.input)
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape")
    }
    missing = [name for node in model.graph.node for name in node.output if name and name not in with_shape]
    if missing:
        yield _note("missing_shapes", f"Without a known shape: {counted(len(missing), 'tensor')}.", where=missing)


def _check_border_transposes(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    inputs = {port["name"] for port in facts["inputs"]}
    outputs = {value.name for value in model.graph.output}
    where = []
    for node in model.graph.node:
        order = traversal.read_attribute(node, "perm", list[int]()) if node.op_type == "Transpose" else []
        if order in (_TO_NHWC, _TO_NCHW) and (set(node.input) & inputs or set(node.output) & outputs):
            where.append(_name_of(node))
    if where:
        yield _note("transpose_sandwich", f"At the graph's borders: {counted(len(where), 'Transpose')}.", where=where)


def _check_duplicates(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    same: defaultdict[tuple[object, ...], list[TensorProto]] = defaultdict(list)
    for tensor in model.graph.initializer:
        if external.count_tensor_bytes(tensor) >= _MIN_DUPLICATE_BYTES and tensor.data_type != TensorProto.STRING:
            same[_make_fingerprint(tensor)].append(tensor)
    spare = [tensor for group in same.values() for tensor in group[1:]]
    if spare:
        wasted = sum(external.count_tensor_bytes(tensor) for tensor in spare)
        detail = f"Stored again: {counted(len(spare), 'tensor')}, {wasted:,} bytes in all."
        yield _note("duplicate_initialisers", detail, where=[tensor.name for tensor in spare])


def _make_fingerprint(tensor: TensorProto) -> tuple[object, ...]:
    place = external.read_location(tensor)
    if place:
        return (tensor.data_type, tuple(tensor.dims), place["location"], place.get("offset", "0"))
    if tensor.HasField("raw_data"):
        return (tensor.data_type, tuple(tensor.dims), hashlib.sha256(tensor.raw_data).hexdigest())
    content = TensorProto()
    content.CopyFrom(tensor)
    for field in ("name", "doc_string"):
        content.ClearField(field)
    return (tensor.data_type, tuple(tensor.dims), hashlib.sha256(content.SerializeToString()).hexdigest())


def _check_size(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    if facts["main_bytes"] > _NEARLY_2GB_BYTES:
        yield _note("near_2gb", f"The file has {facts['main_bytes']:,} bytes.")


def _check_names(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    outputs = [node.output[0] if node.output else node.op_type for node in model.graph.node if not node.name]
    if outputs:
        yield _note(
            "unnamed_nodes",
            f"Without a name: {counted(len(outputs), 'node')} of {len(model.graph.node)}.",
            where=outputs,
        )


def _check_signed_activations(model: onnx.ModelProto, facts: Facts) -> Iterator[Finding]:
    where = quantised.list_signed_activations(model)
    if where:
        yield _note("s8s8_on_x86", f"Quantised as int8: {counted(len(where), 'activation')}.", where=where)


def _note(finding: str, detail: str, *, where: list[str] | None = None, count: int | None = None) -> Finding:
    places = [printable(place) for place in (where or [])[:_MAX_PLACES]]
    if count is None:
        count = len(where) if where else 1
    return {"id": finding, "detail": detail, "count": count, "where": places}


def _name_of(node: onnx.NodeProto) -> str:
    return node.name or (node.output[0] if node.output else node.op_type)


_CHECKS: tuple[Callable[[onnx.ModelProto, Facts], Iterator[Finding]], ...] = (
    _check_training_mode,
    _check_fixed_shapes,
    _check_versions,
    _check_subgraphs,
    _check_wide_types,
    _check_stored_inputs,
    _check_missing_shapes,
    _check_border_transposes,
    _check_duplicates,
    _check_size,
    _check_names,
    _check_signed_activations,
)
