"""The scenario `generate`: a prompt, tokens generated after it, how they are chosen, and for how many sequences."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

from farm.contract.cells import CellSpec, Workload
from farm.contract.document_cells import Input
from farm.rules.cells import samplers
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import read_count
from farm.rules.cells.samplers import Sampler
from farm.rules.cells.scenario import UNKNOWN_LATENCY_MS, Scenario, ShapeProblem, read_options
from farm.rules.runtimes import engines, providers
from farm.rules.runtimes.models import PROMPTS, ModelFacts
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.wording.numbers import counted

USUAL_PROMPT, MAX_PROMPT = 128, 32_768
# the first token comes with the prompt: a time per token needs a second one
USUAL_NEW, MIN_NEW, MAX_NEW = 64, 2, 4096
MAX_BATCH, MAX_SEED = 64, (1 << 31) - 1
_OPTIONS: Final = ("prompt", "new", "sampling", "temperature", "seed", "batch", "given")
_DIGEST = re.compile(r"^[0-9a-f]{64}$", re.ASCII)
# how many times a launch generates, warming up included, as worker.runner.scenarios.generate does
GENERATIONS = 7
# the time of a token as a share of one inference over the whole input; the prompt takes about one such inference
TOKEN_SHARE = 0.25


@dataclass(frozen=True)
class Generate(Scenario):
    """A generation of `new` tokens after a prompt of `prompt` tokens. `Scenario` documents the methods."""

    kind: ClassVar[str] = "generate"
    takes_prompts: ClassVar[bool] = True
    # how many tokens; 0 where planning decides
    prompt: int = 0
    new: int = USUAL_NEW
    sampler: Sampler = samplers.LIKELIEST
    # the seed of random prompts and tokens; None: that of the run
    seed: int | None = None
    # how many sequences run at once; None: the batch of the matrix
    batch: int | None = None
    # the SHA-256 of a file of prompts; empty where the prompt is random
    given: str = ""

    @classmethod
    def read(cls, options: object, /) -> Scenario:
        """Make the scenario from its options; without `prompt` its length is left to planning. Raises MatrixProblem."""
        written = read_options(cls.kind, options, example="generate: {prompt: 128, new: 64}")
        sampler = samplers.pop_sampler(written)
        digest = str(written.pop("given", ""))
        if digest and not _DIGEST.match(digest):
            text = f"given of generate is {digest[:80]!r}: write the SHA-256 digest of a file of prompts."
            raise MatrixProblem(text)
        scenario = cls(
            prompt=_read_number("prompt", written.pop("prompt"), 1, MAX_PROMPT) if "prompt" in written else 0,
            new=_read_number("new", written.pop("new", USUAL_NEW), MIN_NEW, MAX_NEW),
            sampler=sampler,
            seed=_read_number("seed", written.pop("seed"), 0, MAX_SEED) if "seed" in written else None,
            batch=_read_number("batch", written.pop("batch"), 1, MAX_BATCH) if "batch" in written else None,
            given=digest,
        )
        if written:
            raise MatrixProblem(choice_sentence("option of generate", next(iter(written)), _OPTIONS))
        return scenario

    @property
    def text(self) -> str:
        options = {"prompt": self.prompt or None, "new": self.new, **self.sampler.options}
        return self._format_text({**options, "seed": self.seed, "batch": self.batch, "given": self.given})

    @property
    def label(self) -> str:
        """The options in words, without the batch: `prompt 128, 64 new, top-p 0.9`."""
        seed = f"seed {self.seed}" if self.seed is not None else ""
        prompt = f"given prompt of {self.prompt}" if self.given else f"prompt {self.prompt or USUAL_PROMPT}"
        words = (prompt, f"{self.new} new", self.sampler.label, seed)
        return ", ".join(word for word in words if word)

    @property
    def short(self) -> str:
        # the digest of given prompts would fill a line
        return self.label

    @property
    def differing_phrase(self) -> str:
        return "of the later generations of a launch"

    @property
    def new_tokens(self) -> int:
        return self.new

    @property
    def context_tokens(self) -> int:
        return self.prompt + self.new

    @property
    def draws_tokens(self) -> bool:
        return self.sampler.draws_tokens

    @property
    def drawn_tokens(self) -> int:
        return GENERATIONS * self.new if self.draws_tokens else 0

    @property
    def prompts_sha256(self) -> str:
        return self.given

    def axes_it_sets(self) -> Mapping[str, str]:
        text = "batch says the sequences of the scenario generate too: leave one of the two out."
        return {"batch": text} if self.batch is not None else {}

    def workload_fields(self, work: Mapping[str, object]) -> dict[str, object]:
        """Move the scenario's batch, if it has one, into the workload's field `batch`."""
        if self.batch is None:
            return dict(work)
        return {**work, "scenario": replace(self, batch=None).text, "batch": self.batch}

    def runner_settings(self, work: Workload) -> dict[str, object]:
        """Make the runner's settings: prompt and new tokens, seed and sampler; a batch of 1 is left out."""
        sequences = {} if (work.batch or 1) == 1 else {"batch": work.batch}
        given = {"given": self.given} if self.given else {}
        return {
            "kind": self.kind,
            "prompt": self.prompt or USUAL_PROMPT,
            "new": self.new,
            "seed": self._choose_seed(work),
            **self.sampler.runner_settings(),
            **sequences,
            **given,
        }

    def _choose_seed(self, work: Workload) -> int:
        return work.seed if self.seed is None else self.seed

    def fit_to_model(self, model: ModelFacts, *, is_batched: bool) -> Self:
        """Fill in the prompt where its length is not set: the prompts that came with the model, or 128 random tokens.

        Where neither the scenario nor the matrix sets a batch, it becomes the number of given prompts, if there are
        several. A scenario that names other prompts, or a length and no prompts, comes back unchanged.
        """
        prompts = model.prompts
        if prompts is None or not (self.given == prompts.sha256 or not (self.given or self.prompt)):
            return self if self.prompt or self.given else replace(self, prompt=USUAL_PROMPT)
        rows = prompts.rows if prompts.rows > 1 and self.batch is None and not is_batched else self.batch
        return replace(self, prompt=self.prompt or prompts.tokens, given=prompts.sha256, batch=rows)

    def refusals(self, spec: CellSpec, model: ModelFacts, *, shape_problem: ShapeProblem) -> Iterator[str]:
        """Say why the cell cannot be measured.

        The model, runtime or provider does not generate, the context is too short, or the prompts are not the model's.
        """
        yield from super().refusals(spec, model, shape_problem=shape_problem)
        if model.generation_problem:
            yield model.generation_problem
        # the last token is generated and never read
        if model.context is not None and (needed := self.context_tokens - 1) > model.context.tokens:
            yield (
                f"A prompt of {self.prompt:,} and {self.new:,} new tokens are {needed:,} that {model.name} reads, "
                f"and its context is {model.context.tokens:,}: {model.context.where}; ask for fewer."
            )
        if not engines.engine_of(spec.runtime).generates:
            yield f"{spec.runtime} is not measured generating yet: leave generate out for it."
        if spec.provider != providers.CPU.name:
            yield f"generate is measured on the CPU provider alone yet, not on {spec.provider}: leave that out."
        if self.given:
            yield from self._refuse_prompts(model, batch=spec.workload.batch or 1)

    def _refuse_prompts(self, model: ModelFacts, *, batch: int) -> Iterator[str]:
        prompts = model.prompts
        if prompts is None or prompts.sha256 != self.given:
            yield (
                f"The scenario names the prompts {self.given[:12]}…, which {model.name} did not come with: give the "
                f"{PROMPTS} of that digest, or leave `given` out."
            )
        elif self.prompt != prompts.tokens:
            yield (
                f"prompt of generate is {self.prompt:,} and each row of {PROMPTS} has "
                f"{counted(prompts.tokens, 'token')}: leave `prompt` out."
            )
        elif batch != prompts.rows:
            yield (
                f"{PROMPTS} has {counted(prompts.rows, 'row')} and the batch is {batch}: give as many rows, or leave "
                "the batch out."
            )

    def extra_launch_s(self, latency_ms: float | None, *, timed_s: float) -> float:
        latency_s = (latency_ms or UNKNOWN_LATENCY_MS) / 1000.0
        return max(0.0, GENERATIONS * (1 + TOKEN_SHARE * self.new) * latency_s - timed_s)

    def describe_inputs(self, work: Workload) -> list[Input]:
        """Describe the prompt as the only input: its shape, and that it was drawn by a seed or given."""
        made_by = f"token ids of the vocabulary, drawn by seed {self._choose_seed(work)}"
        if self.given:
            made_by = f"token ids that were given ({PROMPTS})"
        shape: list[int | str] = [work.batch or 1, self.prompt or USUAL_PROMPT]
        return [Input(name="prompt", dtype="int64", shape=shape, made_by=made_by)]


def _read_number(name: str, written: object, minimum: int, maximum: int) -> int:
    return read_count(name, written, minimum=minimum, maximum=maximum, scenario=Generate.kind)
