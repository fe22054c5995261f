"""The command line that looks for the first divergent node of a cell. Pure."""

import shlex

from farm.contract.cells import CellSpec, Runtime, SessionSettings
from farm.rules.matrices.axes import DEFAULT_DISTRIBUTION

# what `onnxfarm diverge` can be told of a session
_SAID = {"threads", "optimization"}


def diverge_command(spec: CellSpec, main: str, *, against: Runtime | None = None, inputs: str | None = None) -> str:
    """`onnxfarm diverge …` for a cell, `against` another runtime or the CPU without optimisations.

    `inputs`: the name of given ones. Empty where the cell has settings that the command does not take.
    """
    plain = SessionSettings().model_dump(exclude=_SAID)
    if spec.provider_options or spec.recipe.options or spec.session.model_dump(exclude=_SAID) != plain:
        return ""
    words = ["onnxfarm", "diverge", main, "--ort", _named(spec.runtime)]
    if against is not None:
        words += ["--against", _named(against)]
    words += ["--provider", spec.provider, "--threads", str(spec.session.threads)]
    if spec.session.optimization != "all":
        words += ["--level", spec.session.optimization]
    if spec.recipe.precision != "fp32":
        words += ["--precision", spec.recipe.precision]
    return shlex.join([*words, *(["--inputs", inputs] if inputs is not None else _seeded(spec))])


def _seeded(spec: CellSpec) -> list[str]:
    work = spec.workload
    words = ["--batch", str(work.batch)] if work.batch is not None else []
    for name, size in sorted(work.shapes.items()):
        words += ["--shape", f"{name}={size}"]
    return [*words, *(["--seed", str(work.seed)] if work.seed else [])]


def _named(runtime: Runtime) -> str:
    return runtime.version if runtime.distribution == DEFAULT_DISTRIBUTION else str(runtime)
