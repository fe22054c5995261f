"""The requirements of each runtime's environment, and the versions of Python that it has wheels for.

The tables are those of PyPI's wheels of onnxruntime 1.15–1.31 in November 2026. A runtime that is not in them is tried
with this agent's own interpreter, and the installer's message becomes the reason if that fails.
"""

from dataclasses import dataclass
from pathlib import Path

from farm.contract.cells import Runtime
from farm.rules.runtimes import distributions, engines, frameworks, plugins
from farm.rules.runtimes.order import minor_of
from farm.rules.runtimes.releases import ONNXRUNTIME

# numpy is the only dependency that inference imports; it is pinned, so that a runtime stays the same
NUMPY_1 = "numpy==1.26.4"
NUMPY_2 = "numpy==2.4.6"

# (first release, (lowest, highest) minor version of Python 3), newest first
_WHEELS: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = (
    ((1, 24), (11, 14)),
    ((1, 20), (10, 13)),
    ((1, 17), (8, 12)),
    ((1, 0), (8, 11)),
)

# stands for the highest minor version of releases that are newer than the table
_UNKNOWN = 99

# the same table for PyTorch, as of November 2026
_FRAMEWORK_WHEELS: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = (((2, 9), (10, 14)), ((0, 0), (9, 13)))


@dataclass(frozen=True)
class Recipe:
    """The requirements of an environment. `with_dependencies`: their dependencies are installed too."""

    requirements: tuple[str, ...]
    with_dependencies: bool


def make_recipe(runtime: Runtime, *, wheel: Path | None = None) -> Recipe:
    """Make the requirements of a runtime's environment, with numpy 1 up to ONNX Runtime 1.18, else numpy 2.

    `wheel`: the file of a build that is on no index; it is ignored for plug-ins and frameworks. A plug-in is installed
    together with plain ONNX Runtime. Dependencies are installed for frameworks, for third-party plug-ins, and for
    builds that do not run without theirs.
    """
    engine = engines.engine_of(runtime)
    if engine.stands_alone:
        return Recipe(requirements=(str(engine.installed_as(runtime)), NUMPY_2), with_dependencies=True)
    core = plugins.core_of(runtime)
    numpy = NUMPY_1 if minor_of(core.version) < (1, 19) else NUMPY_2
    plugin = plugins.plugin_of(runtime)
    if plugin is not None:
        named = tuple(map(str, plugins.packages_of(runtime)))
        return Recipe(requirements=(*named, numpy), with_dependencies=bool(plugin.beside))
    build = distributions.build_of(runtime.distribution)
    source = f"=={runtime.version}" if wheel is None else f" @ {wheel.as_uri()}"
    return Recipe(
        requirements=(f"{build.package}{build.extras}{source}", numpy),
        with_dependencies=not build.is_complete,
    )


def find_supported_pythons(runtime: Runtime) -> tuple[int, int] | None:
    """Return the lowest and the highest minor version of Python 3 that a runtime has wheels for; None: not known.

    For a release that is newer than the table, the highest is 99.
    """
    if frameworks.is_framework(runtime):
        return _find_pythons(_FRAMEWORK_WHEELS, minor_of(runtime.version), last=frameworks.RELEASES[-1])
    if not runtime.distribution.startswith("onnxruntime") and plugins.plugin_of(runtime) is None:
        return None
    return _find_pythons(_WHEELS, minor_of(plugins.core_of(runtime).version), last=ONNXRUNTIME[-1])


def _find_pythons(
    table: tuple[tuple[tuple[int, int], tuple[int, int]], ...], release: tuple[int, int], *, last: str
) -> tuple[int, int] | None:
    supported = next((pythons for since, pythons in table if release >= since), None)
    return (supported[0], _UNKNOWN) if supported is not None and release > minor_of(last) else supported
