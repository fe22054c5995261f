"""Reads the text of a matrix file, YAML or JSON, as plain values, with limits of size and without YAML's aliases.

Of YAML, only `true`, `false`, `null` and whole numbers are read as such; everything else stays text, so that `1.20` is
a version and not 1.2, and `no` is a word. JSON's numbers are numbers, with fractions too.
"""

import json
import math
import re
from typing import NoReturn, TypeVar

import yaml

from farm.contract.texts import describe_unstorable
from farm.rules.cells.problems import MatrixProblem

MAX_CHARACTERS = 256 * 1024
MAX_DEPTH = 16
# keys and values together: PyYAML takes a tenth of a millisecond for each, in the thread that answers the request
MAX_VALUES = 10_000
# longer whole numbers stay text, which no axis takes; the YAML resolver below has the same limit
_MAX_INT_DIGITS = 18
T = TypeVar("T")
_USE_AXES = "use axes instead of listing every combination under `include`."


def read_text(text: str) -> object:
    """Read the text of a matrix file as a plain value: JSON where it begins with `{` and parses as such, else YAML.

    In YAML `1.20` and `no` stay text; in JSON 1.20 is a float. Empty text is None. Raises MatrixProblem for malformed
    text, duplicate keys, aliases, and more than MAX_CHARACTERS; for YAML also beyond MAX_VALUES and MAX_DEPTH.
    """
    if len(text) > MAX_CHARACTERS:
        raise MatrixProblem(
            f"The matrix file has {len(text):,} characters and at most {MAX_CHARACTERS:,} are read: {_USE_AXES}"
        )
    try:
        return check_characters(_read_json(text) if text.lstrip().startswith("{") else _read_yaml(text))
    except RecursionError:
        raise MatrixProblem(f"The matrix is nested deeper than {MAX_DEPTH} levels: axes are lists of values.") from None


def write_text(plain: object) -> str:
    text = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True)
    return str(text)


class _Dumper(yaml.SafeDumper):
    """A safe dumper that writes repeated values out in full, without anchors and aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def check_characters(value: T) -> T:
    """Return the value unchanged. Raises MatrixProblem for text in it that cannot be stored and sent, such as NUL."""
    sign = describe_unstorable(value)
    if sign is not None:
        raise MatrixProblem(f"The matrix holds {sign}: leave it out.")
    return value


def _read_json(text: str) -> object:
    try:
        read: object = json.loads(
            text,
            object_pairs_hook=_refuse_duplicates,
            parse_int=_read_int,
            parse_float=_read_float,
            parse_constant=_refuse_constant,
        )
        return read
    except json.JSONDecodeError as problem:
        # braces also open a YAML flow mapping
        try:
            return _read_yaml(text)
        except MatrixProblem:
            raise MatrixProblem(
                f"The matrix is not JSON: {problem.msg} at line {problem.lineno}, column {problem.colno}."
            ) from None


def _refuse_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping: dict[str, object] = {}
    for key, value in pairs:
        if key in mapping:
            raise MatrixProblem(f"The key {key!r} is given twice in one place: keep one of them.")
        mapping[key] = value
    return mapping


def _read_int(text: str) -> int | str:
    return int(text) if len(text.removeprefix("-")) <= _MAX_INT_DIGITS else text


def _read_float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _refuse_constant(name: str) -> NoReturn:
    raise MatrixProblem(f"{name} is not a value of a matrix: write a number or leave the key out.")


class _Loader(yaml.SafeLoader):
    """A safe loader without aliases, tags, merge keys, duplicate keys and YAML 1.1's guesses."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    depth = 0
    values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.values += 1
        if self.values > MAX_VALUES:
            raise MatrixProblem(f"The matrix holds more than {MAX_VALUES:,} keys and values: {_USE_AXES}")
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise MatrixProblem(
                f"Line {event.start_mark.line + 1} uses the alias *{event.anchor}: write the value out."
            )
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise MatrixProblem(f"The matrix is nested deeper than {MAX_DEPTH} levels: axes are lists of values.")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, object]:
    return _refuse_duplicates(
        [
            (str(loader.construct_object(key, deep=True)), loader.construct_object(value, deep=True))
            for key, value in node.value
        ]
    )


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false|True|False)$"), list("tfTF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^-?(?:0|[1-9][0-9]{0,17})$"), list("-0123456789"))
_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _read_yaml(text: str) -> object:
    try:
        # a subclass of SafeLoader: nothing but plain values is ever constructed
        read: object = yaml.load(text, Loader=_Loader)
        return read
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = problem.problem or problem.context or "it cannot be read"
        raise MatrixProblem(f"The matrix is not YAML: {what}{where}.") from None
    except yaml.YAMLError as problem:
        raise MatrixProblem(f"The matrix is not YAML: {str(problem).splitlines()[0]}.") from None
