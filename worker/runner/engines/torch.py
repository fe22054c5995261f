"""PyTorch as an engine: it runs the .pt2 of torch.export, eager or by torch.compile.

The farm's workshop writes the archive so that nothing in it has to be unpickled (farm.workshop.child.programs), and
`worker.runner.entry` forbids unpickling before torch is imported.
"""

import functools
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
from torch.utils import _pytree as pytree

from worker.runner import faults
from worker.runner.arrays import Arrays
from worker.runner.engines import protocol
from worker.runner.order import CPU, Order, PhaseTimer

COMPILERS = ("g++", "c++", "clang++")
_PORTS = "extra/onnxfarm.json"
# keeps the object of the mode without gradients alive, because the mode ends when the object is deleted
_modes: list[torch.inference_mode] = []


@dataclass(frozen=True)
class Port:
    """An input of a program.

    `name` is its name in the model, and `key` its keyword in the program, empty for a positional input. A size of None
    is any size.
    """

    name: str
    key: str
    dtype: str
    sizes: tuple[int | None, ...]


@dataclass(frozen=True)
class Ports:
    """The inputs and outputs of a program; `outputs` are names in the model.

    The first `positional` inputs are positional. `saved_by` is the release of PyTorch that saved the program.
    """

    saved_by: str
    positional: int
    inputs: tuple[Port, ...]
    outputs: tuple[str, ...]


@dataclass
class Program:
    """A loaded program, which runs on the CPU."""

    module: Callable[..., object]
    ports: Ports
    requested: list[str]
    active: list[str]
    device: str = "cpu"
    provider_options: dict[str, object] = field(default_factory=dict)
    provider_facts: dict[str, str] = field(default_factory=dict)
    is_simulated: bool = False


def open_program(order: Order, *, timer: PhaseTimer) -> Program:
    """Load the order's program, and wrap it in torch.compile if the order says so.

    This sets PyTorch's threads, and turns gradients off for the rest of the process. Raises Refusal where the program
    does not load, was saved by a newer PyTorch, or where a compiler is missing.
    """
    ports = _read_ports(order.model)
    _refuse_newer(ports.saved_by)
    if order.program == "compile":
        _refuse_without_compiler()
        # the cache is kept from launch to launch, like the engines of other providers
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(order.work_dir, "inductor")
        # compile without a pool of processes, because the sandbox allows only compilers
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        # precompiling PyTorch's headers takes a minute
        os.environ["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] = "0"
    torch.set_num_threads(order.session.threads)
    torch.set_num_interop_threads(order.session.inter_op_threads)
    with timer.phase("session"), faults.translate_errors("session"):
        module = _plain_module(torch.export.load(order.model))
        if order.program == "compile":
            module = torch.compile(module, dynamic=False)
    if not _modes:
        _modes.append(torch.inference_mode())
        _modes[0].__enter__()
    return Program(
        module=module,
        ports=ports,
        requested=[CPU],
        active=[CPU],
        provider_facts={
            "program": f"{order.program}, saved by PyTorch {ports.saved_by}",
            "threads": str(torch.get_num_threads()),
            "processor extensions": torch.backends.cpu.get_cpu_capability(),
        },
    )


def choose_inputs(program: Program, arrays: Arrays) -> Arrays:
    """Choose the program's inputs by the model's names, and leave other arrays out.

    Raises Refusal where one is missing, or where its type or sizes do not fit.
    """
    missing = [port.name for port in program.ports.inputs if port.name not in arrays]
    if missing:
        raise faults.Refusal(
            "inference_failed",
            f"the inputs hold no array named {', '.join(missing)}; they hold {', '.join(arrays) or 'nothing'}",
        )
    for port in program.ports.inputs:
        _refuse_misfit(port, arrays[port.name])
    return {port.name: arrays[port.name] for port in program.ports.inputs}


class ProgramFeed:
    """A program with its inputs as tensors. PyTorch allocates the outputs of each inference."""

    def __init__(self, program: Program, inputs: Arrays) -> None:
        # arrays from a file may be read-only, which PyTorch warns of
        tensors = [torch.from_numpy(np.array(inputs[port.name])) for port in program.ports.inputs]
        by_place = program.ports.positional
        keywords = {
            port.key: tensor for port, tensor in zip(program.ports.inputs[by_place:], tensors[by_place:], strict=True)
        }
        self._call = functools.partial(program.module, *tensors[:by_place], **keywords)
        self._names = program.ports.outputs
        self._last: object = None

    def run_first(self) -> None:
        """Run once, at which torch.compile compiles. Raises Refusal where its C++ compiler fails.

        Any other error of PyTorch is raised as it is.
        """
        try:
            self.run()
        except Exception as error:
            # the message has the compiler's command line before its output
            message = re.search(r"(?:error|cannot|fatal)[: ].*", str(error).partition("Output:")[2])
            if message is None:
                raise
            cause = faults.extract_message(message[0])[:300]
            text = (
                f"the C++ compiler of torch.compile failed here ({cause}); measure the program eager, without +compile"
            )
            raise faults.Refusal("not_supported", text) from error

    def settle(self) -> int:
        """Run once, because there are no buffers to bind, and return 1, the number of inferences."""
        self.run()
        return 1

    def run(self) -> None:
        self._last = self._call()

    def timed_call(self) -> Callable[[], object]:
        return self._call

    def outputs(self) -> dict[str, object]:
        """Copy the outputs of the last `run`, not of a `timed_call`, by the model's names.

        In place of an output that is not a tensor stands the name of its type. bfloat16 is converted to float32,
        because numpy does not have it.
        """
        copies: dict[str, object] = {}
        for name, leaf in zip(self._names, pytree.tree_leaves(self._last), strict=True):
            copies[name] = type(leaf).__name__
            if isinstance(leaf, torch.Tensor):
                copies[name] = np.array((leaf.float() if leaf.dtype == torch.bfloat16 else leaf).numpy())
        return copies


def _plain_module(exported: "torch.export.ExportedProgram") -> Callable[..., object]:
    """Make a module of the program without guards, because its inputs are checked once, before the first call."""
    try:
        module: Callable[..., object] = exported.module(check_guards=False)
    except TypeError:  # releases before guards were compiled in
        module = exported.module()
    return module


def _read_ports(path: str) -> Ports:
    try:
        with zipfile.ZipFile(path) as archive:
            member = next(name for name in archive.namelist() if name.endswith(f"/{_PORTS}"))
            saved = json.loads(archive.read(member))
        inputs = tuple(Port(**{**port, "sizes": tuple(port["sizes"])}) for port in saved["inputs"])
        return Ports(str(saved["saved_by"]), int(saved["positional"]), inputs, tuple(saved["outputs"]))
    except (OSError, zipfile.BadZipFile, StopIteration, ValueError, KeyError, TypeError) as error:
        raise faults.Refusal("artifact_unavailable", f"the program at {path} cannot be read: {error!r}") from error


def _refuse_newer(saved_by: str) -> None:
    """Raise Refusal for a program of a newer PyTorch than this one, which could read it only by chance."""
    ours, saved = _parse_release(str(torch.__version__)), _parse_release(saved_by)
    if saved > ours:
        raise faults.Refusal(
            "model_not_loaded",
            f"the program was saved by PyTorch {saved_by}, which {torch.__version__} is too old to read; take that "
            "release or a newer one, or export the model with an older one",
        )


def _parse_release(version: str) -> tuple[int, ...]:
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return tuple(map(int, match.groups())) if match is not None else ()


def _refuse_without_compiler() -> None:
    if not any(shutil.which(compiler) for compiler in (*filter(None, [os.environ.get("CXX")]), *COMPILERS)):
        raise faults.Refusal(
            "not_supported",
            f"compiling takes a C++ compiler, and this machine has none of {', '.join(COMPILERS)} in /usr/bin; "
            "install one, or measure the program eager (the version without +compile)",
        )


def _refuse_misfit(port: Port, array: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> None:
    if str(array.dtype) != port.dtype or array.ndim != len(port.sizes):
        expected = f"{port.dtype} of {len(port.sizes)} dimensions"
        raise faults.Refusal(
            "inference_failed",
            f"input {port.name} is {array.dtype} of {array.ndim} dimensions and the program wants {expected}; give "
            "other inputs, or export the program anew",
        )
    for place, (size, expected_size) in enumerate(zip(array.shape, port.sizes, strict=True)):
        if expected_size is not None and size != expected_size:
            raise faults.Refusal(
                "fixed_batch" if place == 0 else "inference_failed",
                f"input {port.name} has size {size} in dimension {place} and the program wants {expected_size}; set "
                "that batch or shape, or export the program with `dynamic_shapes`",
            )


KIND = protocol.Kind(
    module="torch",
    open_engine=open_program,
    choose_inputs=lambda engine, given: choose_inputs(cast(Program, engine), given),
    feed=lambda engine, inputs, device=None: ProgramFeed(cast(Program, engine), inputs),
    is_first_free=lambda engine: all(port.sizes[:1] == (None,) for port in cast(Program, engine).ports.inputs),
    dimensions=lambda engine: {port.name: list(port.sizes) for port in cast(Program, engine).ports.inputs},
    passes=protocol.PASSES,
)
