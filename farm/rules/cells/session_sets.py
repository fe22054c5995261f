"""Named sets of ONNX Runtime session options: one value of the `session` axis."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr, WithJsonSchema
from pydantic.dataclasses import dataclass

from farm.contract.cells import SessionSettings
from farm.rules.cells.fields import Kind
from farm.rules.cells.problems import MatrixProblem
from farm.rules.runtimes.nearest import choice_sentence

# Entries with these words name a file, a library or an address. Only the agent may set them, never a matrix.
_FORBIDDEN_WORDS = ("path", "file", "directory", "folder", "library", "external", "address")


def _read_config(written: object) -> object:
    is_text = isinstance(written, dict) and not any(
        isinstance(entry, bool) or not isinstance(entry, int | str) for entry in written.values()
    )
    if not isinstance(written, dict) or not is_text:
        raise MatrixProblem(f'config is {written!r}: write entries as `name: "text"`, as ONNX Runtime takes them.')
    for name in written:
        if any(word in str(name).lower() for word in _FORBIDDEN_WORDS):
            raise MatrixProblem(
                f"The config entry {name!r} names a place on the node: leave it out, the agent sets it."
            )
    return {str(name): str(entry) for name, entry in written.items()}


def _key(name: str) -> str:
    return name.replace("_", "-")


Config = Annotated[
    Mapping[str, str],
    BeforeValidator(_read_config),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "integer"]}}),
]


@dataclass(frozen=True, slots=True, config=ConfigDict(alias_generator=_key, validate_by_name=True, extra="forbid"))
class SessionSet:
    """Session options under a name. Intra-op threads and the optimisation level are separate axes.

    `session_fields` are the options alone, as fields of SessionSettings.
    """

    # a matrix file has to name its sets; a set that stands for a cell's options needs no name
    name: Annotated[StrictStr, Field(max_length=64, json_schema_extra={"minLength": 1})] = "default"
    execution_mode: Literal["sequential", "parallel"] = "sequential"
    inter_op_threads: Annotated[StrictInt, Field(ge=1, le=1024)] = 1
    spinning: StrictBool = True
    memory_pattern: StrictBool = True
    arena: StrictBool = True
    disabled_optimizers: tuple[StrictStr, ...] = ()
    config: Config = field(default_factory=dict)

    def as_plain(self) -> dict[str, object]:
        """Write the set as a matrix file does: its name, and the options that differ from the default."""
        plain: dict[str, object] = {"name": self.name}
        for name in _NAMES:
            value = getattr(self, name)
            if value != getattr(DEFAULT, name):
                plain[_key(name)] = list(value) if isinstance(value, tuple) else value
        return plain

    def session_fields(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in OPTIONS} | {"config": dict(self.config)}


DEFAULT = SessionSet()
# the session options of a set; the others are separate axes
_NAMES = [option.name for option in fields(SessionSet) if option.name != "name"]
OPTIONS = set(_NAMES)
_KEYS = ("name", *map(_key, _NAMES))
_KIND = Kind(SessionSet)
SESSION_SCHEMA: Mapping[str, object] = {"anyOf": [{"type": "string"}, {**_KIND.schema, "required": ["name"]}]}


def session_set_of(session: SessionSettings, *, name: str) -> SessionSet:
    options: dict[str, Any] = session.model_dump(include=OPTIONS)
    return SessionSet(name=name, **options)


def read_session(value: object) -> SessionSet:
    """Read a set from a mapping with a `name`, or from the text `default`. Raises MatrixProblem."""
    if value == "default":
        return DEFAULT
    if not isinstance(value, dict):
        raise MatrixProblem(
            f"session has {value!r}: write `default`, or a set with a `name` and options such as `spinning: false`."
        )
    plain = {_key(str(key)): entry for key, entry in value.items()}
    name = plain.get("name")
    if not name:
        raise MatrixProblem(f"A session set has no name: give it one beside {', '.join(plain) or 'its options'}.")
    for key in plain:
        if key not in _KEYS:
            raise MatrixProblem(f"The session set {name!r}: {choice_sentence('key', key, _KEYS)}")
    if not isinstance(name, str) or len(name) > 64:
        raise MatrixProblem(f"A session set is named {name!r}: write a word of at most 64 characters.")
    read: SessionSet = _KIND.read("session", plain)
    return read
