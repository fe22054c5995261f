"""What an entry of the table of execution providers says: one provider, its packages, its options, its hardware."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Device = Literal["cpu", "gpu", "npu"]
# what counts the energy of an inference
Meter = Literal["processor", "nvidia"]


@dataclass(frozen=True, slots=True)
class Build:
    """A distribution of ONNX Runtime that carries the provider.

    `extras`: asked for with it, where its metadata leave out what it needs. `is_complete`: it runs without the packages
    that it names as its dependencies, so that they are not installed.
    """

    package: str
    extras: str = ""
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class Plugin:
    """A package that adds the provider to a plain `onnxruntime`."""

    package: str
    # "module:function"; the function returns the path of the plug-in's library
    library: str
    releases: tuple[str, ...]
    # the onnxruntime installed with every release: another one would change what is measured under the same digest
    core: str = "1.31.1"
    # releases of earlier major versions were whole builds of ONNX Runtime
    first_major: int = 0
    # the library's own option for the number of threads
    threads_option: str = ""
    # of a package of other people: the releases of onnxruntime that it accepts. It is installed only where an admin of
    # the farm and the machine's owner allow it by name
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Signs:
    """What of a machine makes a probe worth its download; all that is given must hold. It proves nothing.

    `systems`: values of sys.platform. `machines`: architectures. `files`: one of them exists (patterns). `libraries`:
    the loader finds each. `stands_in`: an environment variable of the agent that, set to 1, replaces `files`; a device
    of kind CPU is then the processor standing in.
    """

    systems: tuple[str, ...] = ("linux",)
    machines: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    stands_in: str = ""


@dataclass(frozen=True, slots=True)
class Building:
    """A provider that compiles the graph: how its engine is kept and what shapes it is built for.

    `cache`: the option that names the cache folder, which is the agent's to set, so that every launch of a cell loads
    the engine of the first. `shapes`: the options for the smallest, usual and largest shapes, filled from the workload
    where the matrix sets none of them.
    """

    cache: str
    shapes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provider:
    """One execution provider.

    `title`: what people call it, where that is not ONNX Runtime's name without its ending. `meant_by`: words that may
    mean it, answered with a question. `colour`: of its series in charts, 1 to 7, so that those that run one model
    together have different ones; 0: one by its name. `needs`: what a machine has to have, in words that follow "it
    takes".

    `builds`, `plugins`: packages that carry it; none: a node's own build. `computes_with`: beginnings of the names of
    packages that decide its speed, and that a change of runtime may bring along.

    `options`: the names a matrix may set. `defaults`: what is passed when the matrix says nothing. `threads_option`: of
    a provider with a pool of its own, the option that pins its number; the cell's threads unless the matrix sets it.
    `building`: see there. `quantisation`: options of a static recipe that the provider decides.

    `memory`: the name that OrtValue gives its memory, where tensors are bound there; latency is then reported with host
    copies too. `meter`: what counts its energy. `environment`: names that a runner finds as the agent's owner set them.

    `simulated_on`: tags of machines on which its plug-in brings a simulator of the device, whose cells have a tag of
    their own.

    `leaves_context`: what it compiled can be kept in a model (ONNX Runtime's EPContext), which is offered for download.

    `probe_with`: the build that a probe installs, where plain `onnxruntime` has not got the provider, and `signs` of a
    machine that is worth it; None: the owner has to ask.
    """

    name: str
    short: str
    device: Device
    tag: str
    needs: str
    title: str = ""
    colour: int = 0
    aliases: tuple[str, ...] = ()
    meant_by: tuple[str, ...] = ()
    builds: tuple[Build, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    computes_with: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    defaults: Mapping[str, str] = field(default_factory=dict)
    takes_any_option: bool = False
    threads_option: str = ""
    building: Building | None = None
    quantisation: Mapping[str, str] = field(default_factory=dict)
    memory: str = ""
    meter: Meter | None = None
    environment: tuple[str, ...] = ()
    probe_with: str = ""
    signs: Signs | None = None
    simulated_on: frozenset[str] = frozenset()
    leaves_context: bool = False

    @property
    def simulated_tag(self) -> str:
        return f"{self.tag}-simulated"

    def tag_with(self, options: Mapping[str, str]) -> str:
        device = options.get("device_type", "").partition(".")[0].lower()
        return f"{self.tag}-{device}" if device in {"gpu", "npu"} else self.tag

    @property
    def distributions(self) -> tuple[str, ...]:
        return tuple(build.package for build in self.builds)

    @property
    def packages(self) -> tuple[str, ...]:
        return (*self.distributions, *(plugin.package for plugin in self.plugins))
