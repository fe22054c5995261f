"""How `generate` chooses a token from its scores: the likeliest, or one drawn among the likeliest by a seed. Pure."""

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
    """`limit`: the probability that `top-p` sums up to, or how many `top-k` draws from; 0 for the likeliest."""

    kind: Kind = GREEDY
    limit: float = 0.0
    temperature: float = 1.0

    @property
    def draws(self) -> bool:
        return self.kind != GREEDY

    @property
    def options(self) -> list[str]:
        """As options of the scenario's text; none for the likeliest."""
        if not self.draws:
            return []
        warmth = [f"temperature={self.temperature:g}"] if self.temperature != 1.0 else []
        return [f"sampling={self.kind}={self.limit:g}", *warmth]

    @property
    def label(self) -> str:
        """In a few words, empty for the likeliest: `top-p 0.9, temperature 0.8`."""
        words = f"{self.kind} {self.limit:g}" if self.draws else ""
        return words + (f", temperature {self.temperature:g}" if self.temperature != 1.0 else "")

    def order_fields(self) -> dict[str, object]:
        return {"sampling": self.kind, "limit": self.limit, "temperature": self.temperature} if self.draws else {}


LIKELIEST: Final = Sampler()


def pop_sampler(given: MutableMapping[str, object]) -> Sampler:
    """The sampler among the options of `generate`, which are taken out of the mapping. Raises MatrixProblem."""
    written, warmth = given.pop("sampling", GREEDY), given.pop("temperature", None)
    found = _read(str(written).strip())
    if found is None:
        raise MatrixProblem(
            f"sampling of generate is {written!r}: write greedy, top-p=0.9 (up to 1) or top-k=40 (1 to {MAX_K})."
        )
    if warmth is None:
        return found
    if not found.draws:
        raise MatrixProblem("temperature of generate changes nothing for greedy: leave it out, or write top-p=0.9.")
    return Sampler(found.kind, found.limit, _temperature(warmth))


def _read(text: str) -> Sampler | None:
    if text == GREEDY:
        return LIKELIEST
    if (p := _P.match(text)) is not None and float(p[1]) > 0:
        return Sampler("top-p", float(p[1]))
    if (k := _K.match(text)) is not None and int(k[1]) <= MAX_K:
        return Sampler("top-k", float(k[1]))
    return None


def _temperature(written: object) -> float:
    least, most = _TEMPERATURES
    text = str(written).strip()
    if not _NUMBER.match(text) or not least <= float(text) <= most:
        raise MatrixProblem(f"temperature of generate is {written!r}: write a number from {least:g} to {most:g}.")
    return float(text)
