"""Binds a decoder's inputs and outputs for each step of a generation, before anything is timed.

`farm.rules.generation.decoders` reads a model the same way, and says in words what does not fit; a test compares both.
"""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from worker.runner import faults
from worker.runner.parity import Array

_CACHE = re.compile(
    r"^(past|present)(?:_key_values)?(?:_(?P<early>key|value))?[._](?P<layer>\d{1,4})(?:[._](?P<late>key|value))?$"
)
_ROLES = {
    "tokens": re.compile(r"^(input_ids|input_tokens|tokens?|token_ids|ids)$"),
    "mask": re.compile(r"^(attention_)?mask$"),
    "positions": re.compile(r"^positions?(_ids)?$"),
    "last_places": re.compile(r"^seqlens?_k$"),
    "total": re.compile(r"^total_seq(uence)?_len(gth)?$"),
}
# the alignment of buffers in bytes
_ALIGNED = 64
_TYPES = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}


@dataclass(frozen=True)
class Port:
    """An input or output of a session."""

    name: str
    dtype: Any
    shape: list[object]


@dataclass(frozen=True)
class Decoder:
    """A decoder's inputs and outputs.

    `roles` has the inputs by their use (the keys of _ROLES), `caches` each past input with the name of its present
    output, `scores` the output of scores (logits), and `others` the names of outputs that nothing needs.
    """

    roles: dict[str, Port]
    caches: list[tuple[Port, str]]
    scores: Port
    others: list[str]

    @property
    def vocabulary(self) -> int:
        """The number of tokens that the model scores. Raises Refusal where the shape of the scores does not fix it."""
        last = self.scores.shape[-1]
        if not isinstance(last, int):
            raise faults.Refusal(
                "not_supported", f"the shape of {self.scores.name} does not say how many tokens it scores"
            )
        return last


def describe_decoder(session: Any) -> Decoder:
    """Find out by their names what a session's inputs and outputs are for.

    Raises Refusal where the model is not a decoder with a cache, has an input of unknown use, or where its output of
    scores is not clear.
    """
    inputs = [_read_port(node) for node in session.get_inputs()]
    outputs = [_read_port(node) for node in session.get_outputs()]
    presents = {key: port.name for port in outputs if (key := _parse_cache_name(port))}
    caches = [(port, presents[key]) for port in inputs if (key := _parse_cache_name(port)) in presents]
    roles = {role: port for port in inputs for role, name in _ROLES.items() if name.match(port.name)}
    scores = [port for port in outputs if not _parse_cache_name(port) and len(port.shape) == 3]
    named = [port for port in scores if port.name == "logits"] or scores
    if not caches or "tokens" not in roles or len(named) != 1 or len(caches) + len(roles) != len(inputs):
        raise faults.Refusal(
            "not_supported", "the model is not a decoder with past whose inputs are known by their names"
        )
    others = [port.name for port in outputs if port.name not in {named[0].name, *presents.values()}]
    return Decoder(roles, caches, named[0], others)


def is_token_input(name: str) -> bool:
    return _ROLES["tokens"].match(name) is not None


class Steps:
    """The steps of a generation: a call for the prompt, and one for every further token.

    Each call has its own binding, on buffers that all share. Each cache has two buffers: a step reads the one that the
    step before it wrote. So nothing is bound between two steps, and only the token is copied, into `token`. `scores`
    has two views: the scores after the prompt, and those after any further token. `prompt` is the buffer of the
    prompt's tokens, which may be written to, and `prompt_scores` the scores after each of them, [row, token,
    vocabulary]. `max_length` is the number of tokens that a cache holds at the end, and `cache_bytes` the size of all
    caches then, of one buffer each.
    """

    def __init__(self, session: Any, decoder: Decoder, *, prompt: Array, new: int) -> None:
        self._session, self._decoder, self._new = session, decoder, new
        self._batch, length = prompt.shape
        self._shape_cache = functools.partial(compute_cache_shape, batch=self._batch)
        self.max_length = length + new - 1
        kind = decoder.roles["tokens"].dtype
        self._prompt = np.array(prompt, dtype=kind, order="C")
        counted = decoder.roles.get("positions")
        self._places = np.tile(np.arange(length, dtype=counted.dtype if counted else kind), (self._batch, 1))
        self.token = np.zeros((self._batch, 1), dtype=kind)
        self._make_values = {
            role: _make_values(role, port, self.max_length, batch=self._batch)
            for role, port in decoder.roles.items()
            if role != "tokens"
        }
        sizes = [int(np.prod(self._shape_cache(port, length=self.max_length))) for port, _ in decoder.caches]
        self._buffers = [
            [_zeros((size,), port.dtype) for size, (port, _) in zip(sizes, decoder.caches, strict=True)]
            for _ in range(2)
        ]
        # the binding needs an address also for an empty past
        self.cache_bytes = sum(buffer.nbytes for buffer in self._buffers[0])
        kind, scored = decoder.scores.dtype, decoder.vocabulary
        self._scored = [_zeros((self._batch, now, scored), kind) for now in (length, 1)]
        self.scores = [self._scored[0][:, -1], self._scored[1][:, 0]]
        self._held = [self._bind_step(step, length) for step in range(new)]

    def calls(self) -> list[Callable[[], object]]:
        """Return for each step, the prompt first, the callable with the least overhead, as `Feed.timed_call` does."""
        inner = getattr(self._session, "_sess", None)
        bound = [getattr(binding, "_iobinding", None) for binding in self._held]
        if inner is not None and hasattr(inner, "run_with_iobinding") and all(binding is not None for binding in bound):
            return [functools.partial(inner.run_with_iobinding, binding, None) for binding in bound]
        return [functools.partial(self._session.run_with_iobinding, binding) for binding in self._held]

    @property
    def prompt(self) -> Array:
        return self._prompt

    @property
    def prompt_scores(self) -> Array:
        return self._scored[0]

    def _bind_step(self, step: int, length: int) -> Any:
        binding = self._session.io_binding()
        past, now = (0, length) if step == 0 else (length + step - 1, 1)
        tokens = self._prompt if step == 0 else self.token
        self._bind(binding.bind_input, self._decoder.roles["tokens"].name, tokens, tokens.shape)
        for role, values in self._make_values.items():
            port = self._decoder.roles[role]
            if role == "positions" and step == 0:
                self._bind(binding.bind_input, port.name, self._places, self._places.shape)
                continue
            shape, first = compute_shape_at_step(role, port, past=past, now=now, batch=self._batch)
            self._bind(binding.bind_input, port.name, values, shape, first=first)
        current, next_buffers = self._buffers[step % 2], self._buffers[(step + 1) % 2]
        for (port, present), before, after in zip(self._decoder.caches, current, next_buffers, strict=True):
            self._bind(binding.bind_input, port.name, before, self._shape_cache(port, length=past))
            self._bind(binding.bind_output, present, after, self._shape_cache(port, length=past + now))
        scores = self._scored[min(step, 1)]
        self._bind(binding.bind_output, self._decoder.scores.name, scores, scores.shape)
        for name in self._decoder.others:
            binding.bind_output(name, "cpu")
        return binding

    @staticmethod
    def _bind(bind: Callable[..., None], name: str, buffer: Array, shape: Any, *, first: int = 0) -> None:
        address = buffer.ctypes.data + first * buffer.itemsize
        bind(name, "cpu", 0, buffer.dtype.type, list(shape), address)


def compute_cache_shape(port: Port, *, batch: int, length: int) -> list[int]:
    """Compute the shape of a cache that holds `length` tokens: batch, heads, tokens, size of a head.

    Where keys and values are in one tensor, a dimension of 2 comes first. Raises AssertionError where the model
    does not fix heads and their size.
    """
    *front, heads, _, head_size = port.shape
    assert isinstance(heads, int)
    assert isinstance(head_size, int)
    return [*([2] if len(front) == 2 else []), batch, heads, length, head_size]


def _zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Make zeros that are aligned like ONNX Runtime's own tensors, because numpy's may lie across cache lines."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + _ALIGNED, dtype=np.uint8)
    first = -raw.ctypes.data % _ALIGNED
    zeros: Array = raw[first : first + size].view(dtype).reshape(shape)
    return zeros


def _make_values(role: str, port: Port, length: int, *, batch: int) -> Array:
    """Make an input's values over all steps; each step sees a part of them, the same number for every sequence."""
    if role == "mask":
        return np.ones(batch * length, dtype=port.dtype)
    # `last_places` is the row's length minus one, which is the position itself
    return np.repeat(np.arange(length + 1, dtype=port.dtype), 1 if role == "total" else batch)


def compute_shape_at_step(role: str, port: Port, *, past: int, now: int, batch: int = 1) -> tuple[list[int], int]:
    """Compute an input's shape at a step, and the index of its first value in the values of all steps.

    `role` is a key of _ROLES, but not `tokens`, nor `positions` at the prompt. `past` is the number of tokens before
    the step, and `now` the number of tokens in it.
    """
    if role == "mask":
        return [batch, past + now], 0
    if role == "positions":
        return [batch, now], past * batch
    if role == "last_places":
        return [batch, *[1] * (len(port.shape) - 1)][: len(port.shape)], (past + now - 1) * batch
    return [1] * len(port.shape), past + now


def _parse_cache_name(port: Port) -> tuple[int, str] | None:
    match = _CACHE.match(port.name)
    return None if match is None else (int(match["layer"]), match["early"] or match["late"] or "")


def _read_port(node: Any) -> Port:
    return Port(node.name, _TYPES.get(node.type), list(node.shape or []))
