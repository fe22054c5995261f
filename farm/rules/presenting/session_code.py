"""Writes the Python or JavaScript program that makes the same session as a cell."""

import json
from collections.abc import Mapping

from farm.contract.document_cells import Cell
from farm.rules.cells.axes import BY_NAME

# axes of a cell that no session option sets
_OUTSIDE_SESSION = ("policy", "concurrency", "memory-limit-mb")
# session settings that may be switched off, with the line that does it
OFF: Mapping[str, str] = {
    "memory-pattern": "options.enable_mem_pattern = False",
    "arena": "options.enable_cpu_mem_arena = False",
    "spinning": 'options.add_session_config_entry("session.intra_op.allow_spinning", "0")',
}
# the optimization levels, by ONNX Runtime's names for them
LEVELS: Mapping[str, str] = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
# the providers of onnxruntime-node, by ONNX Runtime's own names
JAVASCRIPT_PROVIDERS: Mapping[str, str] = {
    "CPUExecutionProvider": "cpu",
    "CUDAExecutionProvider": "cuda",
    "DmlExecutionProvider": "dml",
    "CoreMLExecutionProvider": "coreml",
    "WebGpuExecutionProvider": "webgpu",
}


def make_optimization_level_line(level: str) -> str:
    return f"options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.{LEVELS[level]}"


def make_session_code(cell: Cell, path: str) -> str:
    """Return a Python program that makes exactly the cell's session from the model file at `path`.

    Settings that no session option sets, such as a memory limit, are listed in a comment.
    """
    session = cell.session
    lines = [
        "import onnxruntime",
        "",
        "options = onnxruntime.SessionOptions()",
        f"options.intra_op_num_threads = {cell.threads}",
        f"options.inter_op_num_threads = {session.get('inter_op_threads', 1)}",
        make_optimization_level_line(cell.optimization),
    ]
    if session.get("execution_mode") == "parallel":
        lines.append("options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL")
    lines += [line for name, line in OFF.items() if session.get(name.replace("-", "_")) is False]
    if session.get("spinning") is False and session.get("inter_op_threads", 1) != 1:
        lines.append(OFF["spinning"].replace("intra", "inter"))
    config = session.get("config")
    lines += [
        f"options.add_session_config_entry({name!r}, {value!r})"
        for name, value in (config.items() if isinstance(config, Mapping) else ())
    ]
    unset = [BY_NAME[name].label(cell) for name in _OUTSIDE_SESSION if not BY_NAME[name].is_default(cell)]
    lines += [f"# beside the session: {', '.join(unset)}"] if unset else []
    first, *others = cell.requested_providers or [cell.provider]
    providers = [(first, dict(cell.provider_options)) if cell.provider_options else first, *others]
    optimizers = session.get("disabled_optimizers")
    argument = f", disabled_optimizers={optimizers!r}" if optimizers else ""
    lines.append(f"session = onnxruntime.InferenceSession({path!r}, options, providers={providers!r}{argument})")
    return "\n".join(lines)


def make_javascript(cell: Cell, path: str) -> str:
    """Return a JavaScript program for onnxruntime-node that makes the cell's session from the model file at `path`.

    It is empty for provider options, session config entries, disabled optimizers and providers that are not in
    JAVASCRIPT_PROVIDERS. Settings outside the session, such as a memory limit, are not mentioned.
    """
    session, providers = cell.session, cell.requested_providers or [cell.provider]
    unsupported = (cell.provider_options, session.get("disabled_optimizers"), session.get("config"))
    if any(unsupported) or not JAVASCRIPT_PROVIDERS.keys() >= set(providers):
        return ""
    off = {"arena": "enableCpuMemArena", "memory-pattern": "enableMemPattern"}
    options: dict[str, object] = {
        "executionProviders": [JAVASCRIPT_PROVIDERS[name] for name in providers],
        "intraOpNumThreads": cell.threads,
        "interOpNumThreads": session.get("inter_op_threads", 1),
        "executionMode": session.get("execution_mode", "sequential"),
        "graphOptimizationLevel": cell.optimization.replace("disable", "disabled"),
        **{key: False for name, key in off.items() if session.get(name.replace("-", "_")) is False},
    }
    if session.get("spinning") is False:
        options["extra"] = {"session": {"intra_op": {"allow_spinning": "0"}, "inter_op": {"allow_spinning": "0"}}}
    session_call = f"await ort.InferenceSession.create({json.dumps(path)}, {json.dumps(options, indent=2)});"
    return f"import * as ort from 'onnxruntime-node';\n\nconst session = {session_call}"
