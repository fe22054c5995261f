"""The table of engines, our own and those of third-party packages: it names the engine that runs a runtime's models.

Third-party engines are entry points of `onnxfarm.engines`, each an `Engine`. They may not take a name or package of the
table. They do not allow nodes to install anything: their package has to be allowed by name, like every one beyond the
list.
"""

import re
from collections.abc import Iterator, Sequence

from farm.base.entry_points import Group, raise_first_problem
from farm.contract.cells import Runtime
from farm.rules.runtimes.engine import Engine, OnnxRuntime
from farm.rules.runtimes.frameworks import PYTORCH
from farm.rules.runtimes.genai import GENAI
from farm.rules.runtimes.provider_table import CPU
from farm.rules.runtimes.web import WEB

GROUP = "onnxfarm.engines"
MAX_TITLE, MAX_LAUNCH_S = 60, 600.0
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

# runs every build of ONNX Runtime, and plain ONNX Runtime with any plug-in
ONNXRUNTIME = OnnxRuntime("onnxruntime", "onnxruntime", "onnxruntime", "ONNX Runtime")
OWN: tuple[Engine, ...] = (ONNXRUNTIME, PYTORCH, GENAI, WEB)


def group(own: Sequence[Engine]) -> Group[Engine]:
    """Return the group of entry points by which packages may add engines to our `own`.

    It refuses a malformed entry, and one whose name or package is taken by `own`, by an earlier entry or, for the
    package, by the CPU's table. Nothing is loaded yet.
    """

    def check_entry(entry: Engine, taken: Sequence[Engine]) -> Engine:
        raise_first_problem(_find_malformed(entry, beside=[*own, *taken]))
        return entry

    return Group(GROUP, Engine, "engine", check_entry)


def engine_of(runtime: Runtime) -> Engine:
    """Return the engine of a runtime; it is ONNX Runtime for every package that no other engine has."""
    return _ENGINE_BY_DISTRIBUTION.get(runtime.distribution, ONNXRUNTIME)


def _find_malformed(entry: Engine, *, beside: Sequence[Engine]) -> Iterator[str]:
    words = (
        ("name", entry.name, _NAME),
        ("module", entry.module, _MODULE),
        ("runner", entry.runner, _MODULE),
        ("distribution", entry.distribution, _PACKAGE),
    )
    for what, value, pattern in words:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            yield f"{what} has {value!r:.80}, which cannot be one."
    if entry.name in {other.name for other in beside}:
        yield f"{entry.name!r} is taken."
    if entry.distribution in {*CPU.packages, *(other.distribution for other in beside)}:
        yield f"the package {entry.distribution!r} is taken."
    if not isinstance(entry.title, str) or not 0 < len(entry.title) <= MAX_TITLE:
        yield f"title has {entry.title!r:.80}: write a few words."
    if not 0.0 <= entry.launch_s <= MAX_LAUNCH_S:
        yield f"launch_s has {entry.launch_s!r}: write seconds from 0 to {MAX_LAUNCH_S:.0f}."


OUTSIDE = group(OWN).load_installed()
_ENGINE_BY_DISTRIBUTION = {entry.distribution: entry for entry in (*OWN, *OUTSIDE.entries)}
