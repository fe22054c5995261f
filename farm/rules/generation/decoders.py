"""A decoder with past, read off the names and shapes of a model's inputs and outputs.

Inputs and outputs are paired as exporters name them: `past_key_values.N.key` → `present.N.key`, `past_key_N` →
`present_key_N`, and `past_N` → `present_N`, which holds keys and values in one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

_CACHE = re.compile(
    r"^(?P<side>past|present)(?:_key_values)?(?:_(?P<early>key|value))?[._](?P<layer>\d{1,4})(?:[._](?P<late>key|value))?$"
)
HINT = "--scenario generate measures it as a user feels it: the first token, and each one after"
_ANY_CACHE = re.compile(r"^(past|present)([._]|$)")
_ENCODER = re.compile(r"(^|[._])(encoder|cross)([._]|$)|^decoder_input_ids$")
_TOKENS = re.compile(r"^(input_ids|input_tokens|tokens?|token_ids|ids)$")
_ROLES = {
    "mask": (re.compile(r"^(attention_)?mask$"), 2),
    "positions": (re.compile(r"^positions?(_ids)?$"), 2),
    "last_places": (re.compile(r"^seqlens?_k$"), 1),
    "total": (re.compile(r"^total_seq(uence)?_len(gth)?$"), 1),
}
_FLOATS = ("float16", "float32", "float64")
# batch, heads, length, size of a head; in front of them 2 where keys and values are one tensor
_APART, _TOGETHER = 4, 5

Shape = Sequence[int | str] | None
# of a cache: its layer, and key, value, or neither where one tensor holds both
Key = tuple[int, str]


class Port(Protocol):
    """An input or output, as an inspection has it."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def shape(self) -> Shape: ...


class NotADecoder(Exception):
    """Why a model with something like a past cannot generate here, in one sentence."""


@dataclass(frozen=True)
class Decoder:
    """What each input and output of a decoder is for, by name; an empty name stands for none."""

    tokens: str
    scores: str
    # each past with its present
    caches: tuple[tuple[str, str], ...]
    layers: int
    # how many heads keys and values have, and the numbers of each
    heads: int
    width: int
    # None where the shape of the scores does not say
    vocabulary: int | None
    mask: str = ""
    positions: str = ""
    last_places: str = ""
    total: str = ""

    def sentence(self) -> str:
        words = f"a decoder with past: {_many(self.layers, 'layer')}, {_many(self.heads, 'head')} of {self.width:,}"
        return words + (f", vocabulary {self.vocabulary:,}" if self.vocabulary is not None else "")


def find_decoder(inputs: Sequence[Port], outputs: Sequence[Port]) -> Decoder | None:
    """Recognise the decoder by its ports; None for a model without past.

    Raises NotADecoder where the model has something like a past, but is not a decoder that is measured here.
    """
    if not any(_ANY_CACHE.match(port.name) for port in inputs):
        return None
    if (other := next((port.name for port in inputs if _ENCODER.search(port.name)), None)) is not None:
        raise NotADecoder(f"The input {other} is of an encoder-decoder, whose generation is not measured yet.")
    pasts, presents = _find_caches(inputs), _find_caches(outputs)
    _check_pairs(pasts, presents)
    heads, width = _find_heads(pasts, presents)
    roles = _find_roles(port for port in inputs if port not in pasts.values())
    scores = _find_scores(port for port in outputs if port not in presents.values())
    last = (scores.shape or [""])[-1]
    return Decoder(
        scores=scores.name,
        caches=tuple((pasts[key].name, presents[key].name) for key in sorted(pasts)),
        layers=len({layer for layer, _ in pasts}),
        heads=heads,
        width=width,
        vocabulary=last if isinstance(last, int) else None,
        **roles,
    )


def generation_problem(inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Say why such a model cannot generate, in one sentence; empty where it can."""
    try:
        decoder = find_decoder(inputs, outputs)
    except NotADecoder as why:
        return str(why)
    if decoder is None:
        return "The model has no past among its inputs: export a decoder with past_key_values.0.key and so on."
    if decoder.vocabulary is None:
        return f"The shape of {decoder.scores} does not say how many tokens it scores: export it with that number."
    return ""


def describe_generation(inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Describe how a model generates, or why it cannot, beginning with a small letter; empty without a past."""
    try:
        decoder = find_decoder(inputs, outputs)
    except NotADecoder as why:
        return f"not as a decoder with past: {why}"
    return decoder.sentence() if decoder is not None else ""


def is_position_input(name: str) -> bool:
    return _ROLES["positions"][0].match(name) is not None


def has_grouped_attention(operators: Iterable[str]) -> bool:
    return any(name.rpartition(".")[2] == "GroupQueryAttention" for name in operators)


def is_mask_input(name: str) -> bool:
    return _ROLES["mask"][0].match(name) is not None


def single_token_sizes(inputs: Sequence[Port], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return sizes with one token in place of several and a past that is as much longer, by names of dimensions.

    For a batch of GroupQueryAttention, which takes no prompt behind a past there. Empty for a model without past, or
    whose lengths are not named or have no size here.
    """
    tokens = next((port for port in inputs if _find_role(port) == "tokens"), None)
    past = next(iter(_find_caches(inputs).values()), None)
    if past is None or tokens is None:
        return {}
    now, before = (tokens.shape or ("",))[-1], (past.shape or ("",))[-2:][0]
    if not isinstance(now, str) or not isinstance(before, str) or now == before or not {now, before} <= set(sizes):
        return {}
    return {now: 1, before: sizes[before] + sizes[now] - 1}


def _find_caches(ports: Iterable[Port]) -> dict[Key, Port]:
    caches: dict[Key, Port] = {}
    for port in ports:
        if (name := _CACHE.match(port.name)) is not None:
            caches[int(name["layer"]), name["early"] or name["late"] or ""] = port
    return caches


def _check_pairs(pasts: Mapping[Key, Port], presents: Mapping[Key, Port]) -> None:
    if not pasts:
        raise NotADecoder("The names of the past inputs say no layer: call them past_key_values.0.key and so on.")
    for ports, other, way in ((pasts, presents, "no present output"), (presents, pasts, "no past input")):
        alone = next((port.name for key, port in ports.items() if key not in other), None)
        if alone is not None:
            raise NotADecoder(f"{alone} has {way} of its layer and part: export the model with both.")


def _find_heads(pasts: Mapping[Key, Port], presents: Mapping[Key, Port]) -> tuple[int, int]:
    """Find the number of heads of keys and values, and the size of each, which all pasts share."""
    (key, first), *others = pasts.items()
    numbers = _read_numbers(first, part=key[1])
    for (layer, part), port in [(key, first), *others]:
        present = presents[layer, part]
        if _read_numbers(port, part=part) != numbers or port.dtype != first.dtype:
            raise NotADecoder(f"The caches {first.name} and {port.name} differ in type, heads or their size.")
        if present.dtype != port.dtype or len(present.shape or ()) != len(port.shape or ()):
            raise NotADecoder(f"{port.name} and {present.name} differ in type or rank: a present is the next past.")
    return numbers


def _read_numbers(port: Port, *, part: str) -> tuple[int, int]:
    shape = port.shape or ()
    if len(shape) != (_APART if part else _TOGETHER):
        axes = "[batch, heads, length, size]" if part else "[2, batch, heads, length, size]"
        raise NotADecoder(f"{port.name} has the shape {list(shape)}, not {axes}.")
    heads, length, width = shape[-3:]
    if not isinstance(heads, int) or not isinstance(width, int):
        raise NotADecoder(f"The shape of {port.name} does not say how many heads of which size it holds.")
    if isinstance(length, int):
        raise NotADecoder(f"{port.name} has a fixed length of {length:,}: only caches that grow are measured yet.")
    if port.dtype not in _FLOATS:
        raise NotADecoder(f"{port.name} holds {port.dtype}: only caches of floating-point numbers are measured yet.")
    return heads, width


def _find_roles(ports: Iterable[Port]) -> dict[str, str]:
    """Name by what they are for, `tokens` among them."""
    roles: dict[str, str] = {}
    for port in ports:
        role = _find_role(port)
        if role is None:
            text = "neither token ids, mask, positions, lengths nor past"
            raise NotADecoder(f"The input {port.name} is {text}: nobody can say what it holds at each token.")
        roles[role] = port.name
    if "tokens" not in roles:
        raise NotADecoder("No input takes token ids: call it input_ids, with the shape [batch, sequence].")
    return roles


def _find_role(port: Port) -> str | None:
    if port.dtype not in ("int64", "int32"):
        return None
    rank = len(port.shape or ())
    if _TOKENS.match(port.name) and rank == 2:
        return "tokens"
    named = (role for role, (name, max_rank) in _ROLES.items() if name.match(port.name) and rank <= max_rank)
    return next(named, None)


def _find_scores(ports: Iterable[Port]) -> Port:
    """Find the output that scores each token of the vocabulary."""
    fit = [port for port in ports if port.dtype in _FLOATS and len(port.shape or ()) == 3]
    named = [port for port in fit if port.name == "logits"] or fit
    if len(named) != 1:
        raise NotADecoder(
            "No single output scores the tokens: call it logits, of the shape [batch, sequence, vocabulary]."
        )
    return named[0]


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
