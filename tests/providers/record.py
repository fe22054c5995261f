"""What a provider says on a real machine, for tests/providers/*.json: `RUNTIME/bin/python -m tests.providers.record`.

Runs inside a runtime's own environment (standard library, numpy, onnxruntime): a small model three times with the
profiler on, and its provider list, devices and node events as one JSON object on stdout.
"""

import argparse
import datetime
import importlib
import json
import os
import platform
import tempfile
from typing import Any

import numpy as np
import onnxruntime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("provider")
    parser.add_argument("--plugin", help="module:function that gives the path of a plug-in's library")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    options = dict(one.split("=", 1) for one in asked.option)
    available = onnxruntime.get_available_providers()
    devices: list[Any] = []
    if asked.plugin:
        module, _, function = asked.plugin.partition(":")
        library = getattr(importlib.import_module(module), function)()
        onnxruntime.register_execution_provider_library(asked.provider, library)
        devices = [one for one in onnxruntime.get_ep_devices() if one.ep_name == asked.provider]
    found = {
        "provider": asked.provider,
        "from": "recorded",
        "when": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "where": f"{platform.machine()}, ONNX Runtime {onnxruntime.__version__}",
        "available_providers": available,
        "devices": [_device(one) for one in devices],
        **_profiled(asked, options=options, devices=devices),
    }
    print(json.dumps(found, indent=1, sort_keys=True))


def _device(one: Any) -> dict[str, Any]:
    kept = {name: value for name, value in dict(one.ep_metadata).items() if "path" not in name}
    return {"name": one.ep_name, "type": str(one.device.type).rpartition(".")[2], "metadata": kept}


def _profiled(asked: argparse.Namespace, *, options: dict[str, str], devices: list[Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        wanted = onnxruntime.SessionOptions()
        wanted.log_severity_level = 3
        wanted.intra_op_num_threads = 1
        wanted.enable_profiling = True
        wanted.profile_file_prefix = os.path.join(folder, "profile")
        try:
            if devices:
                wanted.add_provider_for_devices(devices[:1], options)
                session = onnxruntime.InferenceSession(asked.model, wanted)
            else:
                chosen = [(asked.provider, options), ("CPUExecutionProvider", {})]
                session = onnxruntime.InferenceSession(asked.model, wanted, providers=chosen[: 2 if options else 1])
        except Exception as error:  # a failure is worth recording too
            return {"failure": {"text": str(error)}}
        with np.load(asked.inputs, allow_pickle=False) as archive:
            inputs = {node.name: archive[node.name] for node in session.get_inputs()}
        for _ in range(3):
            session.run(None, inputs)
        with open(session.end_profiling(), encoding="utf-8") as file:
            events = json.load(file)
        return {"active_providers": session.get_providers(), "events": [_short(one) for one in events if _counts(one)]}


def _counts(event: dict[str, Any]) -> bool:
    name = str(event.get("name", ""))
    return name == "model_run" or name.endswith("_kernel_time") or event.get("cat") == "Kernel"


def _short(event: dict[str, Any]) -> dict[str, Any]:
    arguments = event.get("args", {})
    kept = {name: arguments[name] for name in ("op_name", "provider", "node_index") if name in arguments}
    return {**{name: event[name] for name in ("cat", "name", "ts", "dur", "tid") if name in event}, "args": kept}


if __name__ == "__main__":
    main()
