"""Named sets of ONNX Runtime session options: one value of the `session` axis."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from farm.contract.cells import SessionSettings
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

    def as_plain(self) -> dict[str, object]:
        """As a matrix file writes it: what differs from the default."""
        plain: dict[str, object] = {"name": self.name}
        for key in _READERS:
            value, default = getattr(self, _attribute(key)), getattr(DEFAULT, _attribute(key))
            if value != default:
                plain[key] = list(value) if isinstance(value, tuple) else value
        return plain

    def as_settings(self) -> dict[str, object]:
        """The options as fields of SessionSettings."""
        return {name: getattr(self, name) for name in OPTIONS} | {"config": dict(self.config)}


DEFAULT = SessionSet()
# the session options of a set; the others stand on axes of their own
OPTIONS = {one.name for one in fields(SessionSet)} - {"name"}


def set_of(session: SessionSettings, *, name: str) -> SessionSet:
    """The set that a session's options make."""
    return SessionSet(name=name, **session.model_dump(include=OPTIONS))


def read_session(value: object) -> SessionSet:
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
        if key not in _KEYS:
            raise MatrixProblem(f"The session set {plain['name']!r}: {choice_sentence('key', key, _KEYS)}")
    name = _name(plain.pop("name"))
    options = {_attribute(key): _READERS[key](key, entry) for key, entry in plain.items()}
    return set_of(SessionSettings.model_validate(options), name=name)


def _attribute(key: str) -> str:
    return key.replace("-", "_")


def _name(value: object) -> str:
    if not isinstance(value, str) or len(value) > 64:
        raise MatrixProblem(f"A session set is named {value!r}: write a word of at most 64 characters.")
    return value


def _mode(key: str, value: object) -> str:
    if value not in _MODES:
        raise MatrixProblem(choice_sentence(key, str(value), _MODES))
    return str(value)


def _threads(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_INTER_OP_THREADS:
        raise MatrixProblem(f"{key} is {value!r}: write a whole number from 1 to {MAX_INTER_OP_THREADS}.")
    return value


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise MatrixProblem(f"{key} is {value!r}: write true or false.")
    return value


def _names(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise MatrixProblem(f"{key} is {value!r}: write a list of names.")
    return tuple(value)


def _entries(key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or any(isinstance(e, bool) or not isinstance(e, int | str) for e in value.values()):
        raise MatrixProblem(f'{key} is {value!r}: write entries as `name: "text"`, as ONNX Runtime takes them.')
    for name in value:
        if any(word in str(name).lower() for word in _NEVER):
            raise MatrixProblem(f"The {key} entry {name!r} names a place on the node: leave it out, the agent sets it.")
    return {str(name): str(entry) for name, entry in value.items()}


_READERS: Mapping[str, Callable[[str, object], object]] = {
    "execution-mode": _mode,
    "inter-op-threads": _threads,
    **dict.fromkeys(_FLAGS, _flag),
    "disabled-optimizers": _names,
    "config": _entries,
}
_KEYS = ("name", *_READERS)

SESSION_SCHEMA: Mapping[str, object] = {
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
