"""Plug-in execution providers: a library that ONNX Runtime (≥ 1.23) loads, and the devices that it lists."""

import importlib
import os
from collections.abc import Mapping
from typing import Protocol

import onnxruntime

from worker.runner import faults
from worker.runner.order import Order

# the farm's own option, not the library's: the kind of device, for a library that lists several
DEVICE_OPTION = "device_type"

# these functions of a plug-in's package are tried where the name of its own is not known
USUAL_FUNCTIONS = ("library_path", "get_library_path")

_registered: set[str] = set()


class Hardware(Protocol):
    """The hardware of a device, as ONNX Runtime's OrtHardwareDevice describes it."""

    type: object
    vendor: str
    metadata: Mapping[str, str]


class Device(Protocol):
    """A device that a provider lists: ONNX Runtime's OrtEpDevice, which is new in release 1.23."""

    ep_name: str
    ep_metadata: Mapping[str, str]
    device: Hardware


def find_devices(order: Order, *, requested: list[str]) -> list[Device]:
    """Register the plug-in's library, and return the provider's first device of the kind that the cell asks for.

    The list has exactly one device, of any kind where the cell asks for none. A library is registered once in a
    process. `requested` are the cell's providers, for the refusal. Raises Refusal where there is no such device, the
    library is not found, or it does not know an option.
    """
    assert order.plugin is not None
    with faults.translate_errors("provider", requested_providers=requested):
        if order.provider not in _registered:
            library = _find_library(order.plugin)
            _refuse_unknown_options(order, library=library, requested=requested)
            # register it under the provider's name, because some libraries name their provider by it
            onnxruntime.register_execution_provider_library(order.provider, library)
            _registered.add(order.provider)
        listed = [device for device in onnxruntime.get_ep_devices() if device.ep_name == order.provider]
    kind = order.provider_options.get(DEVICE_OPTION, "").upper()
    fitting = [device for device in listed if not kind or name_device_kind(device) == kind.partition(".")[0]]
    if fitting:
        return fitting[:1]
    kind_text = f" {kind}" if kind else ""
    has = f"; it lists {', '.join(map(name_device_kind, listed))}" if listed else ""
    raise faults.Refusal(
        "provider_not_active",
        f"the plug-in of {order.provider} lists no{kind_text} device on this machine{has}, so nothing was measured; "
        "install the device's driver, or leave this provider out",
        requested_providers=requested,
        active_providers=["CPUExecutionProvider"],
    )


def _find_library(plugin: str) -> str:
    """Find the library's path by the named function, or where none is named by those that such packages offer."""
    module, _, function = plugin.partition(":")
    package = importlib.import_module(module)
    for name in (function,) if function else USUAL_FUNCTIONS:
        if callable(find_path := getattr(package, name, None)):
            return str(find_path())
    raise faults.Refusal(
        "provider_not_active",
        f"the module {module} has no {' or '.join(f'{name}()' for name in USUAL_FUNCTIONS)}, so the path of its "
        "library is not known; leave this runtime out",
    )


def _refuse_unknown_options(order: Order, *, library: str, requested: list[str]) -> None:
    """Raise Refusal for an option whose name is not in the library, which would ignore it silently.

    Plug-ins whose options are listed were checked before.
    """
    if order.plugin is None or not order.plugin.endswith(":"):
        return
    with open(library, "rb") as file:
        words = file.read()
    for option in list_library_options(order):
        if option.encode() not in words:
            raise faults.Refusal(
                "provider_not_active",
                f"the plug-in of {order.provider} knows no option {option!r}: the word is nowhere in its library, "
                "which would ignore it silently; correct its name, or leave it out",
                requested_providers=requested,
            )


def list_library_options(order: Order) -> dict[str, str]:
    """Return the cell's provider options that are passed to the library: all but the farm's own DEVICE_OPTION."""
    return {name: value for name, value in order.provider_options.items() if name != DEVICE_OPTION}


def describe_devices(devices: list[Device], *, stands_in: str | None) -> dict[str, str]:
    """Describe the library and its device by their own facts, as texts by name, without the plug-in's paths.

    `stands_in` is the environment variable that lets the processor stand in for the device; where it is on and the
    device is a CPU, `adapter` says so.
    """
    facts: dict[str, str] = {}
    for device in devices:
        hardware = device.device
        facts["device"] = f"{name_device_kind(device)} of {hardware.vendor}".strip()
        facts |= {f"device {name}": str(value) for name, value in dict(hardware.metadata).items()}
        metadata = {name: str(value) for name, value in dict(device.ep_metadata).items() if "path" not in name.lower()}
        facts |= {f"plug-in {name}": value for name, value in metadata.items()}
        if stands_in and os.environ.get(stands_in) == "1" and name_device_kind(device) == "CPU":
            facts["adapter"] = "software: the processor stands in for a GPU"
    return facts


def is_simulated(devices: list[Device], *, is_simulated_on_cpu: bool) -> bool:
    return is_simulated_on_cpu and any(name_device_kind(device) == "CPU" for device in devices)


def name_device_kind(device: Device) -> str:
    return str(device.device.type).rpartition(".")[2]
