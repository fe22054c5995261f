"""onnxruntime-genai as a runtime: a generation loop and samplers around the ONNX Runtime that is installed beside it.

Two releases make one such runtime, `onnxruntime-genai==0.13.2+onnxruntime==1.29.0`. The package's own metadata would
tie the two together, and then nobody could say which of them changed. Its model is a folder: `genai_config.json` with
the .onnx, its data and its tokenizer.
"""

from collections.abc import Iterator

from farm.contract.cells import CellSpec, Runtime
from farm.contract.reasons import Reason
from farm.rules.runtimes.engine import Launched, OnnxRuntime, ignored_settings, not_loaded, unsupported
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.order import known_releases, release_order
from farm.rules.runtimes.provider import Plugin

DISTRIBUTION = "onnxruntime-genai"
MODULE = "onnxruntime_genai"
CONFIG = "genai_config.json"
# PyPI, November 2026, from the first release that takes settings over a configuration
RELEASES = known_releases(DISTRIBUTION)
# it registers no provider; like a plug-in, it has an ONNX Runtime beside it
PACKAGE = Plugin(DISTRIBUTION, library="", releases=RELEASES)


# the seconds that a launch takes beyond a session: for its import, and for each drawn token of a large vocabulary
LAUNCH_S, DRAWN_TOKEN_S = 1.0, 0.02


class _Genai(OnnxRuntime):
    """The engine of onnxruntime-genai, which generates tokens and runs no other scenario."""

    def install_hint(self, core: Runtime) -> str:
        return f"; it may not load beside {core}, so name another one"

    def scenario_launch_s(self, scenario: Launched) -> float:
        return self.launch_s + scenario.drawn_tokens * DRAWN_TOKEN_S

    def refusals(self, spec: CellSpec, model: ModelFacts, scenario: Launched, *, named: str) -> Iterator[Reason]:
        """Yield reasons for a missing or unfit folder, a context that is too short, a scenario that generates nothing,
        and settings of a session or an .onnx."""
        facts = model.genai
        if facts is None:
            yield not_loaded(
                f"{named} runs a folder with {CONFIG}: give the folder or a zip of its files in place of "
                f"{model.name} alone, or leave this runtime out."
            )
        elif facts.problem:
            yield not_loaded(facts.problem)
        elif scenario.context_tokens > facts.context:
            yield not_loaded(
                f"The context of {model.name} is {facts.context:,} tokens in {CONFIG}: prompt and new tokens are "
                f"{scenario.context_tokens:,}, ask for fewer."
            )
        if not scenario.takes_prompts:
            yield unsupported(
                f"{named} generates and does nothing else: write `scenario: generate`, not {scenario.name}, or leave "
                "it out."
            )
        if unfit := ignored_settings(spec, has_streams=True):
            yield unsupported(
                f"{named} runs the folder as it was exported, without {', '.join(unfit)}: leave that out."
            )


GENAI = _Genai("genai", MODULE, DISTRIBUTION, "ONNX Runtime", launch_s=LAUNCH_S, is_session=False)


def is_genai(runtime: Runtime) -> bool:
    return runtime.distribution == DISTRIBUTION


def too_old_sentence(runtime: Runtime) -> str | None:
    """Say why a release is too old to take settings; None where it is not, or it is another runtime."""
    if runtime.distribution != DISTRIBUTION or release_order(runtime.version) >= release_order(RELEASES[0]):
        return None
    return f"{runtime} takes no settings over its {CONFIG}: take {DISTRIBUTION}=={RELEASES[0]} or newer."
