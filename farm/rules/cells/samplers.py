"""How `generate` chooses a token from its scores: the likeliest, or one drawn among the likeliest by a seed."""

import re
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Final, Literal

from farm.rules.cells.problems import MatrixProblem

GREEDY: Final = "greedy"
MAX_K: Final = 1024
_TEMPERATURES: Final = (0.01, 10.0)
_P = re.compile(r"^top-p=(0\.\d{1,6}|1(?:\.0+)?)$", re.ASCII)
_K = re.compile(r"^top-k=([1-9]\d{0,3})$", re.ASCII)
_NUMBER = re.compile(r"^\d{1,2}(?:\.\d{1,6})?$", re.ASCII)

Kind = Literal["greedy", "top-p", "top-k"]


@dataclass(frozen=True, slots=True)
class Sampler:
    """How tokens are chosen: `greedy` takes the likeliest, `top-p` and `top-k` draw one of the likeliest."""

    kind: Kind = GREEDY
    # the probability that the candidates of `top-p` sum up to, or the number of candidates of `top-k`; 0 for `greedy`
    limit: float = 0.0
    temperature: float = 1.0

    @property
    def draws_tokens(self) -> bool:
        return self.kind != GREEDY

    @property
    def options(self) -> dict[str, str]:
        """The sampler's options in the text of `generate`, such as `sampling`: `top-p=0.9`; empty for `greedy`."""
        if not self.draws_tokens:
            return {}
        temperature = {"temperature": f"{self.temperature:g}"} if self.temperature != 1.0 else {}
        return {"sampling": f"{self.kind}={self.limit:g}", **temperature}

    @property
    def label(self) -> str:
        """The sampler in words: `top-p 0.9, temperature 0.8`; empty for `greedy`."""
        words = f"{self.kind} {self.limit:g}" if self.draws_tokens else ""
        return words + (f", temperature {self.temperature:g}" if self.temperature != 1.0 else "")

    def runner_settings(self) -> dict[str, object]:
        """Return the settings that the runner gets for the sampler; empty for `greedy`."""
        if not self.draws_tokens:
            return {}
        return {"sampling": self.kind, "limit": self.limit, "temperature": self.temperature}


LIKELIEST: Final = Sampler()


def pop_sampler(options: MutableMapping[str, object]) -> Sampler:
    """Remove `sampling` and `temperature` from the options of `generate`, and read them. Raises MatrixProblem."""
    written, temperature = options.pop("sampling", GREEDY), options.pop("temperature", None)
    sampler = _parse_sampling(str(written).strip())
    if sampler is None:
        raise MatrixProblem(
            f"sampling of generate is {written!r}: write greedy, top-p=0.9 (up to 1) or top-k=40 (1 to {MAX_K})."
        )
    if temperature is None:
        return sampler
    if not sampler.draws_tokens:
        raise MatrixProblem("temperature of generate changes nothing for greedy: leave it out, or write top-p=0.9.")
    return Sampler(sampler.kind, sampler.limit, _read_temperature(temperature))


def _parse_sampling(text: str) -> Sampler | None:
    if text == GREEDY:
        return LIKELIEST
    if (p := _P.match(text)) is not None and float(p[1]) > 0:
        return Sampler("top-p", float(p[1]))
    if (k := _K.match(text)) is not None and int(k[1]) <= MAX_K:
        return Sampler("top-k", float(k[1]))
    return None


def _read_temperature(written: object) -> float:
    lowest, highest = _TEMPERATURES
    text = str(written).strip()
    if not _NUMBER.match(text) or not lowest <= float(text) <= highest:
        raise MatrixProblem(f"temperature of generate is {written!r}: write a number from {lowest:g} to {highest:g}.")
    return float(text)
