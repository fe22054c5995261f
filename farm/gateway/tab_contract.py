"""Writes contract.js with the constants and types of farm/contract and farm/rules that the browser's modules use.

python -m farm.gateway.tab_contract    # prints it, for TypeScript (deploy/check-tab)
"""

import functools
import json
from typing import Any

from farm.contract.blocks import Lease
from farm.contract.node import Welcome
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.contract.reports import Reply
from farm.contract.version import CONTRACT_VERSION
from farm.rules.runtimes import providers, web

# the messages that the page reads; the types of their parts are written too
MESSAGES = (Lease, Reply, Welcome, Reason)
SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
# the statuses of a cell that was tried and failed; other reasons refuse a cell
FAILED = (CellStatus.FAILED, CellStatus.CRASHED, CellStatus.TIMEOUT)


@functools.cache
def render_contract_module() -> str:
    """Return the text of contract.js: constants, and a TypeScript typedef for each message and each part of one.

    It is made once in each process.
    """
    lines = [f"export const {name} = {json.dumps(value)};" for name, value in _constants().items()]
    failing = sorted(code for code in ReasonCode if Reason(code=code, text="x").status in FAILED)
    return "\n".join(
        (
            "/** Made of farm/contract and farm/rules by farm/gateway/tab_contract.py. */",
            *lines,
            f"export const FAILING = new Set({json.dumps(failing)});",
            "/** @typedef {{short: string, files: string[], requested: string[], isSecure: boolean}} Engine */",
            f"/** @type {{Record<string, Engine>}} */\nexport const ENGINES = {json.dumps(_engines())};",
            *(f"/** @typedef {{{render_typescript_type(schema)}}} {name} */" for name, schema in _schemas().items()),
            "",
        )
    )


def _constants() -> dict[str, object]:
    wasm, webgpu, webnn = (providers.resolve(name) for name in ("wasm", "webgpu", "webnn"))
    return {
        "CONTRACT_VERSION": CONTRACT_VERSION,
        "DISTRIBUTION": web.DISTRIBUTION,
        # the release that the probe and the self-test run on
        "PROBED_WITH": web.RELEASES[-1],
        "PROVIDER": wasm.name,
        "PROVIDER_IN_PROFILE": web.NAME_IN_PROFILE,
        "TAG": wasm.tag,
        "WEBGPU": webgpu.name,
        "WEBGPU_TAG": webgpu.tag,
        "WEBGPU_SOFTWARE_TAG": webgpu.simulated_tag,
        "WEBNN": webnn.name,
        "WEBNN_TAG": webnn.tag,
    }


def _engines() -> dict[str, dict[str, object]]:
    """Describe each provider for the page, by its name.

    Operators that WebGPU and WebNN do not take run as WebAssembly. Browsers offer both in secure contexts alone
    (worker/tab/frame.js).
    """
    wasm = web.PROVIDER.name
    engines: dict[str, dict[str, object]] = {
        wasm: {"short": web.PROVIDER.short, "files": web.FILES, "requested": [wasm], "isSecure": False}
    }
    for entry in (providers.resolve("webgpu"), web.WEBNN):
        files, requested = web.WEBGPU_FILES, [entry.name, wasm]
        engines[entry.name] = {"short": entry.short, "files": files, "requested": requested, "isSecure": True}
    return engines


def _schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each message and of each part of it, by name."""
    schemas: dict[str, dict[str, Any]] = {}
    for message in MESSAGES:
        schema = message.model_json_schema(mode="serialization")
        schemas |= {**schema.pop("$defs", {}), message.__name__: schema}
    return dict(sorted(schemas.items()))


def render_typescript_type(schema: dict[str, Any]) -> str:
    """Return a JSON schema as a TypeScript type; `any` where it has no simple one. A `$ref` becomes its last word."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(render_typescript_type(choice) for choice in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            items = schema.get("prefixItems") or [schema.get("items", {})]
            return f"({' | '.join(dict.fromkeys(map(render_typescript_type, items)))})[]"
        case "object" if "properties" in schema:
            fields = (f"{name}: {render_typescript_type(field)}" for name, field in schema["properties"].items())
            return f"{{{', '.join(fields)}}}"
        case "object":
            values = schema.get("additionalProperties")
            return f"Record<string, {render_typescript_type(values) if isinstance(values, dict) else 'any'}>"
        case kind:
            return SIMPLE.get(str(kind), "any")


if __name__ == "__main__":
    print(render_contract_module(), end="")
