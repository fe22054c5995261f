"""Inspects a model: facts, checks and findings. Runs in the child only."""

import hashlib
import traceback
from collections import Counter
from pathlib import Path

import onnx
from onnx import TensorProto

from farm.rules.runtimes import opsets
from farm.workshop.child import (
    compiled,
    context,
    external,
    findings,
    functions,
    genai_config,
    model_file,
    payloads,
    programs,
    quantised,
    signature,
    traversal,
)
from farm.workshop.child.facts import Facts, FileFacts, GraphFacts
from farm.workshop.problems import Problem, answer_problems, printable

_MAX_OPERATORS = 500


@answer_problems
def inspect(payload: payloads.Model) -> dict[str, object]:
    """Inspect the payload's model and return the fields of an `inspection.Inspection`, or a problem with its code."""
    folder, main = Path(payload["folder"]), payload["main"]
    model = model_file.read_model(folder, main)
    try:
        return _read_facts(model, folder=folder, main=main)
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        # a parsed message may still hold names that are not text, or lack parts
        traceback.print_exc()
        complaint = "a name in it is not text, or a part is missing"
        raise Problem(
            "malformed", f"{printable(main)} breaks the ONNX format: {complaint}; export it again."
        ) from error


def _read_facts(model: onnx.ModelProto, *, folder: Path, main: str) -> dict[str, object]:
    functions.check_expanded_size(model)
    facts: Facts = {
        **signature.read_signature(model),
        **_read_file_facts(folder, main, model),
        **_read_graph_facts(model),
    }
    return {
        **facts,
        "source": programs.describe_program(folder, inputs=facts["inputs"], outputs=facts["outputs"]),
        "findings": findings.find_all_findings(model, facts=facts, path=folder / main),
        "compiled": compiled.read_compiled(model),
        "genai": genai_config.read_config(folder, main, outputs=facts["outputs"]),
        "context": context.find_context_length(model, inputs=facts["inputs"]),
    }


def list_opset_imports(model: onnx.ModelProto) -> dict[str, int]:
    """List the version of each imported domain, ONNX's own under "", and the newest of a domain named twice."""
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        domain = "" if entry.domain == "ai.onnx" else printable(entry.domain)
        versions[domain] = max(entry.version, versions.get(domain, 0))
    return versions


def list_used_domains(model: onnx.ModelProto) -> set[str]:
    """List the domains of the nodes, ONNX's own as ""."""
    return {"" if node.domain == "ai.onnx" else printable(node.domain) for node in traversal.iterate_nodes(model)}


def list_custom_domains(model: onnx.ModelProto) -> list[str]:
    """List the domains of operators that neither the model's own functions nor ONNX Runtime define."""
    defined = {(function.domain, function.name) for function in model.functions}
    used = {node.domain for node in traversal.iterate_nodes(model) if (node.domain, node.op_type) not in defined}
    return sorted(printable(domain) for domain in used if opsets.is_custom(domain))


def _read_file_facts(folder: Path, main: str, model: onnx.ModelProto) -> FileFacts:
    path, data = folder / main, external.list_external_files(model)
    with path.open("rb") as stored:
        digest = hashlib.file_digest(stored, "sha256").hexdigest()
    return {
        "ok": True,
        "main_sha256": digest,
        "main_bytes": path.stat().st_size,
        "data_bytes": sum((folder / name).stat().st_size for name in data),
        "external_files": data,
        "ir_version": model.ir_version,
        "producer": printable(f"{model.producer_name} {model.producer_version}".strip()),
        "graph_name": printable(model.graph.name),
    }


def _read_graph_facts(model: onnx.ModelProto) -> GraphFacts:
    imports, used = list_opset_imports(model), list_used_domains(model)
    operators: Counter[str] = Counter()
    trees = 0
    for node in traversal.iterate_nodes(model):
        if node.domain == "ai.onnx.ml":
            integers = {attribute.name: attribute.ints for attribute in node.attribute}
            trees += len(integers.get("tree_roots", set(integers.get("nodes_treeids", ()))))
        domain = printable(node.domain)
        prefix = "" if domain in opsets.ONNX_DOMAINS else f"{domain}."
        operators[prefix + printable(node.op_type)] += 1
    stored = [tensor for tensor in traversal.iterate_tensors(model) if tensor.data_type != TensorProto.UNDEFINED]
    bytes_by_dtype: Counter[str] = Counter()
    for tensor in stored:
        bytes_by_dtype[signature.name_dtype(tensor.data_type)] += external.count_tensor_bytes(tensor)
    return {
        "opsets": imports,
        "unused_opsets": sorted(set(imports) - used - {function.domain for function in model.functions}),
        "nodes": len(model.graph.node),
        "nodes_below": operators.total() - len(model.graph.node),
        "functions": len(model.functions),
        "operators": dict(operators.most_common(_MAX_OPERATORS)),
        "subgraphs": dict(
            Counter(
                node.op_type for node in traversal.iterate_nodes(model) if any(traversal.iterate_inner_graphs(node))
            )
        ),
        "custom_domains": list_custom_domains(model),
        "parameters": sum(external.count_elements(tensor) for tensor in stored),
        "parameters_bytes": bytes_by_dtype.total(),
        "trees": trees,
        "dtypes": dict(bytes_by_dtype),
        "is_quantised": quantised.is_quantised(model),
    }
