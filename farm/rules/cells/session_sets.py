"""Named sets of ONNX Runtime session options: one value of the `session` axis."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from farm.rules.cells.problems import MatrixProblem
from farm.rules.runtimes.nearest import choice_sentence

MAX_INTER_OP_THREADS = 1024
_MODES = ("sequential", "parallel")
_FLAGS = ("spinning", "memory-pattern", "arena")

# Entries that name a file, a library or an address belong to the agent, never to a matrix.
_NEVER = ("path", "file", "directory", "folder", "library", "external", "address")


@dataclass(frozen=True, slots=True)
class SessionSet:
    """Session options under a name; the number of intra-op threads and the optimisation level are axes of their own."""

    name: str = "default"
    execution_mode: Literal["sequential", "parallel"] = "sequential"
    inter_op_threads: int = 1
    spinning: bool = True
    memory_pattern: bool = True
    arena: bool = True
    disabled_optimizers: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        """As a matrix file writes it: what differs from the default."""
        plain: dict[str, Any] = {"name": self.name}
        for key in _READERS:
            value, default = getattr(self, _attribute(key)), getattr(DEFAULT, _attribute(key))
            if key != "name" and value != default:
                plain[key] = list(value) if isinstance(value, tuple) else value
        return plain


DEFAULT = SessionSet()
# session options that stand on axes of their own
OWN_AXES = {"threads", "optimization"}


def read_session(value: Any) -> SessionSet:
    """The set that a matrix file writes as a mapping with a `name`; the text `default` is the plain set."""
    if value == "default":
        return DEFAULT
    if not isinstance(value, dict):
        raise MatrixProblem(
            f"session has {value!r}: write `default`, or a set with a `name` and options such as `spinning: false`."
        )
    plain = {str(key).replace("_", "-"): entry for key, entry in value.items()}
    if not plain.get("name"):
        raise MatrixProblem(f"A session set has no name: give it one beside {', '.join(plain) or 'its options'}.")
    for key in plain:
        if key not in _READERS:
            raise MatrixProblem(f"The session set {plain['name']!r}: {choice_sentence('key', key, _READERS)}")
    read: dict[str, Any] = {_attribute(key): _READERS[key](key, entry) for key, entry in plain.items()}
    return SessionSet(**read)


def _attribute(key: str) -> str:
    return key.replace("-", "_")


def _name(key: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > 64:
        raise MatrixProblem(f"A session set is named {value!r}: write a word of at most 64 characters.")
    return value


def _mode(key: str, value: Any) -> str:
    if value not in _MODES:
        raise MatrixProblem(choice_sentence(key, str(value), _MODES))
    return str(value)


def _threads(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_INTER_OP_THREADS:
        raise MatrixProblem(f"{key} is {value!r}: write a whole number from 1 to {MAX_INTER_OP_THREADS}.")
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise MatrixProblem(f"{key} is {value!r}: write true or false.")
    return value


def _names(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise MatrixProblem(f"{key} is {value!r}: write a list of names.")
    return tuple(value)


def _entries(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or any(isinstance(e, bool) or not isinstance(e, int | str) for e in value.values()):
        raise MatrixProblem(f'{key} is {value!r}: write entries as `name: "text"`, as ONNX Runtime takes them.')
    for name in value:
        if any(word in str(name).lower() for word in _NEVER):
            raise MatrixProblem(f"The {key} entry {name!r} names a place on the node: leave it out, the agent sets it.")
    return {str(name): str(entry) for name, entry in value.items()}


_READERS = {
    "name": _name,
    "execution-mode": _mode,
    "inter-op-threads": _threads,
    **dict.fromkeys(_FLAGS, _flag),
    "disabled-optimizers": _names,
    "config": _entries,
}

SESSION_SCHEMA: Mapping[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 64},
                "execution-mode": {"enum": list(_MODES)},
                "inter-op-threads": {"type": "integer", "minimum": 1, "maximum": MAX_INTER_OP_THREADS},
                **{flag: {"type": "boolean"} for flag in _FLAGS},
                "disabled-optimizers": {"type": "array", "items": {"type": "string"}},
                "config": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
            },
        },
    ]
}
