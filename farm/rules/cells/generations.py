"""What `generate` is told: lengths, how a token is chosen, the seed, and how many sequences at once. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from farm.rules.cells import samplers
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import count_option
from farm.rules.cells.samplers import Sampler
from farm.rules.runtimes.nearest import choice_sentence

USUAL_PROMPT, MOST_PROMPT = 128, 32_768
# the first token comes with the prompt, so that one more is needed for a time per token
USUAL_NEW, FEWEST_NEW, MOST_NEW = 64, 2, 4096
MOST_BATCH, MOST_SEED = 64, (1 << 31) - 1
OPTIONS: Final = ("prompt", "new", "sampling", "temperature", "seed", "batch", "given")
EXAMPLE: Final = "generate: {prompt: 128, new: 64}"
_DIGEST = re.compile(r"^[0-9a-f]{64}$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Generation:
    """`prompt`, `new`: tokens given and made. `seed`: of prompt and draws; None: the run's own.

    A `prompt` of 0: nobody said how long, and planning does. `given`: digest of the file of prompts; empty: drawn ones.
    `batch`: sequences at once, which a cell says in its workload; None: as the batch of the matrix says.
    """

    prompt: int = 0
    new: int = 0
    sampler: Sampler = samplers.LIKELIEST
    seed: int | None = None
    batch: int | None = None
    given: str = ""

    @property
    def text(self) -> str:
        """As the command line and documents spell it."""
        prompt = [f"prompt={self.prompt}"] if self.prompt else []
        seed = [f"seed={self.seed}"] if self.seed is not None else []
        batch = [f"batch={self.batch}"] if self.batch is not None else []
        given = [f"given={self.given}"] if self.given else []
        return ":".join(["generate", *prompt, f"new={self.new}", *self.sampler.options, *seed, *batch, *given])

    @property
    def label(self) -> str:
        """In a few words: `prompt 128, 64 new, top-p 0.9`."""
        seed = f"seed {self.seed}" if self.seed is not None else ""
        prompt = f"given prompt of {self.prompt}" if self.given else f"prompt {self.prompt or USUAL_PROMPT}"
        words = (prompt, f"{self.new} new", self.sampler.label, seed)
        return ", ".join(word for word in words if word)

    def as_order(self, *, seed: int, batch: int | None) -> dict[str, object]:
        """What a runner is told. `seed`, `batch`: of the cell's workload."""
        sequences = {} if (batch or 1) == 1 else {"batch": batch}
        given = {"given": self.given} if self.given else {}
        return {
            "kind": "generate",
            "prompt": self.prompt or USUAL_PROMPT,
            "new": self.new,
            "seed": seed if self.seed is None else self.seed,
            **self.sampler.as_order(),
            **sequences,
            **given,
        }


NONE: Final = Generation()


def read(options: Mapping[str, object]) -> Generation:
    """The generation of a scenario's options. Raises MatrixProblem."""
    given = dict(options)
    sampler = samplers.take(given)
    found = Generation(
        prompt=_number("prompt", given.pop("prompt"), 1, MOST_PROMPT) if "prompt" in given else 0,
        new=_number("new", given.pop("new", USUAL_NEW), FEWEST_NEW, MOST_NEW),
        sampler=sampler,
        seed=_number("seed", given.pop("seed"), 0, MOST_SEED) if "seed" in given else None,
        batch=_number("batch", given.pop("batch"), 1, MOST_BATCH) if "batch" in given else None,
        given=_digest(given.pop("given", "")),
    )
    if given:
        raise MatrixProblem(choice_sentence("option of generate", next(iter(given)), OPTIONS))
    return found


def _number(name: str, written: object, least: int, most: int) -> int:
    return count_option(name, written, least=least, most=most, of="generate")


def _digest(written: object) -> str:
    text = str(written)
    if text and not _DIGEST.match(text):
        raise MatrixProblem(f"given of generate is {text[:80]!r}: write the SHA-256 digest of a file of prompts.")
    return text
