"""What an entry of the table of execution providers says: one provider, its packages, its options, its hardware."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Device = Literal["cpu", "gpu", "npu"]
# the counter that measures the energy of an inference
Meter = Literal["processor", "nvidia"]


@dataclass(frozen=True, slots=True)
class Build:
    """A distribution of ONNX Runtime that carries the provider."""

    package: str
    # the extras that are installed with it, where its metadata leave out what it needs
    extras: str = ""
    # whether it runs without the packages that it depends on by its metadata, which are then not installed
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
    # for a third-party package, the releases of onnxruntime that it accepts, and empty for any other. A third-party
    # package is installed only where an admin of the farm and the machine's owner allow it by name
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs that a machine may have the provider, so that a probe is worth its download. All that are given must hold.

    They prove nothing: the probe does.
    """

    # values of sys.platform
    systems: tuple[str, ...] = ("linux",)
    # processor architectures, in lower case
    machines: tuple[str, ...] = ()
    # patterns of files, of which at least one has to exist
    files: tuple[str, ...] = ()
    # libraries, all of which the loader has to find
    libraries: tuple[str, ...] = ()
    # an environment variable of the agent that, set to 1, replaces `files`; a device of kind CPU then stands in
    stands_in: str = ""


@dataclass(frozen=True, slots=True)
class Building:
    """How a provider that compiles the graph keeps its engine, and for which shapes it builds it."""

    # the option that names the cache folder; the agent sets it, so that every launch of a cell loads the first one's
    # engine
    cache: str
    # the options for the smallest, usual and largest shapes, which follow the workload where the matrix sets none of
    # them
    shapes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provider:
    """One execution provider.

    `distributions` are the packages of its builds alone, `packages` those of its plug-ins too.
    """

    name: str
    short: str
    device: Device
    tag: str
    # what a machine has to have, in words that follow "it takes"
    needs: str
    # what people call it, where that is not ONNX Runtime's name without its ending
    title: str = ""
    # the colour of its series in charts, 1 to 7: providers that often run the same model have different ones. With 0
    # the name decides the colour
    colour: int = 0
    aliases: tuple[str, ...] = ()
    # words that may mean this provider: a message about an unknown name asks whether it was meant
    meant_by: tuple[str, ...] = ()
    # packages that carry it; none for a node's own build
    builds: tuple[Build, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    # prefixes of the names of packages that decide its speed: another runtime may install other versions of them
    computes_with: tuple[str, ...] = ()
    # the names that a matrix may set
    options: frozenset[str] = frozenset()
    # options that are passed where the matrix sets none
    defaults: Mapping[str, str] = field(default_factory=dict)
    takes_any_option: bool = False
    # the option for the number of threads of a provider with a pool of its own; the cell's threads unless the matrix
    # sets it
    threads_option: str = ""
    building: Building | None = None
    # the options of a static recipe that the provider decides
    quantisation: Mapping[str, str] = field(default_factory=dict)
    # the name that OrtValue gives its memory, where tensors are bound there; latency is then reported with host copies
    # too
    memory: str = ""
    # the counter that measures its energy; None where there is none
    meter: Meter | None = None
    # environment variables that the agent passes on to the runner
    environment: tuple[str, ...] = ()
    # the build that a probe installs where plain `onnxruntime` lacks the provider, and the signs of a machine that is
    # worth it; without signs the owner has to ask
    probe_with: str = ""
    signs: Signs | None = None
    # tags of machines on which its plug-in brings a simulator of the device, whose cells have a tag of their own
    simulated_on: frozenset[str] = frozenset()
    # whether what it compiled can be kept in a model (ONNX Runtime's EPContext), which is offered for download
    leaves_context: bool = False

    @property
    def simulated_tag(self) -> str:
        return f"{self.tag}-simulated"

    def tag_with(self, options: Mapping[str, str]) -> str:
        """Return the hardware tag of a cell with these options: its own, or `TAG-gpu` and `TAG-npu` by device_type."""
        device = options.get("device_type", "").partition(".")[0].lower()
        return f"{self.tag}-{device}" if device in {"gpu", "npu"} else self.tag

    @property
    def distributions(self) -> tuple[str, ...]:
        return tuple(build.package for build in self.builds)

    @property
    def packages(self) -> tuple[str, ...]:
        return (*self.distributions, *(plugin.package for plugin in self.plugins))
