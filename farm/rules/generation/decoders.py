"""Recognises a decoder with past by the names and shapes of a model's inputs and outputs.

Inputs and outputs are paired as exporters name them: `past_key_values.N.key` → `present.N.key`, `past_key_N` →
`present_key_N`, and `past_N` → `present_N`, which holds keys and values in one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from farm.rules.wording.numbers import counted

_CACHE = re.compile(
    r"^(?P<side>past|present)(?:_key_values)?(?:_(?P<early>key|value))?[._](?P<layer>\d{1,4})(?:[._](?P<late>key|value))?$"
)
# what the command line suggests for a decoder
HINT = "--scenario generate measures it as a user feels it: the first token, and each one after"
_ANY_CACHE = re.compile(r"^(past|present)([._]|$)")
_ENCODER = re.compile(r"(^|[._])(encoder|cross)([._]|$)|^decoder_input_ids$")
_TOKENS = re.compile(r"^(input_ids|input_tokens|tokens?|token_ids|ids)$")
# by role: the names of its inputs, and the highest rank that they may have
_ROLES = {
    "mask": (re.compile(r"^(attention_)?mask$"), 2),
    "positions": (re.compile(r"^positions?(_ids)?$"), 2),
    "last_places": (re.compile(r"^seqlens?_k$"), 1),
    "total": (re.compile(r"^total_seq(uence)?_len(gth)?$"), 1),
}
_FLOATS = ("float16", "float32", "float64")
# The dimensions of a cache are batch, heads, length, and size of a head, after a 2 if keys and values are one tensor.
_SEPARATE_RANK, _JOINT_RANK = 4, 5

Shape = Sequence[int | str] | None


class CacheKey(NamedTuple):
    """Which cache a tensor holds: its layer, and `key`, `value`, or an empty part where it holds both."""

    layer: int
    part: str


class Port(Protocol):
    """An input or output, as an inspection has it."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def shape(self) -> Shape: ...


class NotADecoder(Exception):
    """A model has something like a past, but cannot generate here. The message says why in one sentence."""


@dataclass(frozen=True)
class Decoder:
    """What each input and output of a decoder is for, by name; an empty name stands for none."""

    tokens: str
    scores: str
    # (past input, present output) of each cache
    caches: tuple[tuple[str, str], ...]
    layers: int
    # how many heads keys and values have, and how many elements a head has
    heads: int
    head_size: int
    # None where the shape of the scores does not say
    vocabulary: int | None
    mask: str = ""
    positions: str = ""
    # inputs of GroupQueryAttention: the index of the last token of each sequence, and the total length
    last_places: str = ""
    total: str = ""

    def describe(self) -> str:
        """Describe the decoder: `a decoder with past: 2 layers, 4 heads of 64, vocabulary 1,000`."""
        vocabulary = "" if self.vocabulary is None else f", vocabulary {self.vocabulary:,}"
        heads = f"{counted(self.heads, 'head')} of {self.head_size:,}"
        return f"a decoder with past: {counted(self.layers, 'layer')}, {heads}{vocabulary}"


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
    heads, head_size = _find_heads(pasts, presents)

    input_names = _name_inputs_by_role(port for port in inputs if port not in pasts.values())
    scores = _find_scores(port for port in outputs if port not in presents.values())
    last_dimension = (scores.shape or [""])[-1]
    return Decoder(
        scores=scores.name,
        caches=tuple((pasts[key].name, presents[key].name) for key in sorted(pasts)),
        layers=len({key.layer for key in pasts}),
        heads=heads,
        head_size=head_size,
        vocabulary=last_dimension if isinstance(last_dimension, int) else None,
        **input_names,
    )


def generation_problem(inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Say in one sentence why the model cannot generate, such as without a past; empty where it can."""
    try:
        decoder = find_decoder(inputs, outputs)
    except NotADecoder as problem:
        return str(problem)
    if decoder is None:
        return "The model has no past among its inputs: export a decoder with past_key_values.0.key and so on."
    if decoder.vocabulary is None:
        return f"The shape of {decoder.scores} does not say how many tokens it scores: export it with that number."
    return ""


def describe_generation(inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Describe the decoder, or why a model with a past is none, beginning with a small letter; empty without a past."""
    try:
        decoder = find_decoder(inputs, outputs)
    except NotADecoder as problem:
        return f"not as a decoder with past: {problem}"
    return decoder.describe() if decoder is not None else ""


def is_position_input(name: str) -> bool:
    return _ROLES["positions"][0].match(name) is not None


def has_group_query_attention(operators: Iterable[str]) -> bool:
    return any(name.rpartition(".")[2] == "GroupQueryAttention" for name in operators)


def is_mask_input(name: str) -> bool:
    return _ROLES["mask"][0].match(name) is not None


def single_token_sizes(inputs: Sequence[Port], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of a step of one token, by dimension: the past takes the other new tokens.

    GroupQueryAttention needs this with a batch: it takes only one token behind a past. `sizes` are those of the model's
    free dimensions. Empty for a model without past, and where either length is no named dimension or not in `sizes`.
    """
    tokens = next((port for port in inputs if _find_role(port) == "tokens"), None)
    past = next(iter(_find_caches(inputs).values()), None)
    if past is None or tokens is None:
        return {}
    new, old = (tokens.shape or ("",))[-1], (past.shape or ("",))[-2:][0]
    if not isinstance(new, str) or not isinstance(old, str) or new == old or not {new, old} <= sizes.keys():
        return {}
    return {new: 1, old: sizes[old] + sizes[new] - 1}


def _find_caches(ports: Iterable[Port]) -> dict[CacheKey, Port]:
    caches: dict[CacheKey, Port] = {}
    for port in ports:
        if (name := _CACHE.match(port.name)) is not None:
            caches[CacheKey(int(name["layer"]), name["early"] or name["late"] or "")] = port
    return caches


def _check_pairs(pasts: Mapping[CacheKey, Port], presents: Mapping[CacheKey, Port]) -> None:
    if not pasts:
        raise NotADecoder("The names of the past inputs say no layer: call them past_key_values.0.key and so on.")
    for ports, others, missing in ((pasts, presents, "no present output"), (presents, pasts, "no past input")):
        unpaired = next((port.name for key, port in ports.items() if key not in others), None)
        if unpaired is not None:
            raise NotADecoder(f"{unpaired} has {missing} of its layer and part: export the model with both.")


def _find_heads(pasts: Mapping[CacheKey, Port], presents: Mapping[CacheKey, Port]) -> tuple[int, int]:
    """Find the number of heads of keys and values, and the size of each, which all pasts share."""
    first_key, first = next(iter(pasts.items()))
    heads_and_size = _read_heads(first, part=first_key.part)
    for key, port in pasts.items():
        present = presents[key]
        if _read_heads(port, part=key.part) != heads_and_size or port.dtype != first.dtype:
            raise NotADecoder(f"The caches {first.name} and {port.name} differ in type, heads or their size.")
        if present.dtype != port.dtype or len(present.shape or ()) != len(port.shape or ()):
            raise NotADecoder(f"{port.name} and {present.name} differ in type or rank: a present is the next past.")
    return heads_and_size


def _read_heads(port: Port, *, part: str) -> tuple[int, int]:
    """Read the number of heads and the size of each off the shape of a past."""
    shape = port.shape or ()
    if len(shape) != (_SEPARATE_RANK if part else _JOINT_RANK):
        axes = "[batch, heads, length, size]" if part else "[2, batch, heads, length, size]"
        raise NotADecoder(f"{port.name} has the shape {list(shape)}, not {axes}.")
    heads, length, head_size = shape[-3:]
    if not isinstance(heads, int) or not isinstance(head_size, int):
        raise NotADecoder(f"The shape of {port.name} does not say how many heads of which size it holds.")
    if isinstance(length, int):
        raise NotADecoder(f"{port.name} has a fixed length of {length:,}: only caches that grow are measured yet.")
    if port.dtype not in _FLOATS:
        raise NotADecoder(f"{port.name} holds {port.dtype}: only caches of floating-point numbers are measured yet.")
    return heads, head_size


def _name_inputs_by_role(ports: Iterable[Port]) -> dict[str, str]:
    """Return the name of the input of each role, `tokens` always among them."""
    names: dict[str, str] = {}
    for port in ports:
        role = _find_role(port)
        if role is None:
            text = "neither token ids, mask, positions, lengths nor past"
            raise NotADecoder(f"The input {port.name} is {text}: nobody can say what it holds at each token.")
        names[role] = port.name
    if "tokens" not in names:
        raise NotADecoder("No input takes token ids: call it input_ids, with the shape [batch, sequence].")
    return names


def _find_role(port: Port) -> str | None:
    if port.dtype not in ("int64", "int32"):
        return None
    rank = len(port.shape or ())
    if _TOKENS.match(port.name) and rank == 2:
        return "tokens"
    roles = (role for role, (name, max_rank) in _ROLES.items() if name.match(port.name) and rank <= max_rank)
    return next(roles, None)


def _find_scores(ports: Iterable[Port]) -> Port:
    """Find the output that scores each token of the vocabulary."""
    candidates = [port for port in ports if port.dtype in _FLOATS and len(port.shape or ()) == 3]
    scores = [port for port in candidates if port.name == "logits"] or candidates
    if len(scores) != 1:
        raise NotADecoder(
            "No single output scores the tokens: call it logits, of the shape [batch, sequence, vocabulary]."
        )
    return scores[0]
