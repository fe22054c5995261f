"""Checks the graph of a framework's program, which may hold PyTorch's own operators only, and reads its signature.

PyTorch evaluates sizes with sympy from their text, writes Python code from the names of values, and looks up functions
by name. All three are checked here first. Runs in the child only.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from farm.workshop.child.program_archive import Json, make_problem
from farm.workshop.problems import printable

# torch._export.serde.schema.ScalarType
_DTYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64"}
_DTYPES |= {9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16"}
_NUMBERS = "add|sub|mul|floordiv|truediv|mod|pow|neg|pos|eq|ne|lt|le|gt|ge|and_|or_|not_|getitem"
_ALLOWED_TARGETS = re.compile(
    r"torch\.ops\.(aten|prims)\.[A-Za-z0-9_]+\.[A-Za-z0-9_]+"
    rf"|_operator\.({_NUMBERS})|math\.(ceil|floor|trunc|sqrt)|torch\.sym_(max|min|int|float|not|ite|sum|sqrt)"
    r"|torch\.ops\.higher_order\.(cond|wrap_with_set_grad_enabled)"
)
_OPERATOR = re.compile(r"torch\.ops\.(\w+)\.(\w+)")
_SYMBOL = re.compile(r"[suz][0-9]{1,9}|True|False|oo|int_oo")
_FUNCTIONS = re.compile(
    r"Symbol|Integer|Add|Mul|Pow|Max|Min|Mod|PythonMod|FloorDiv|CleanDiv|CeilDiv|CeilToInt|FloorToInt|TruncToInt"
    r"|ModularIndexing|IntTrueDiv|FloatTrueDiv|ToFloat|Eq|Ne|Lt|Le|Gt|Ge|And|Or|Not|Identity|Where"
)
_NODES = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.operator, ast.unaryop, ast.cmpop)
_CONTAINERS = ("builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")
_NAMED_VALUES = ("as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool")
_EXPORT = "export a model that takes and gives plain tensors"


@dataclass(frozen=True)
class Tensor:
    """An input or output of a program."""

    name: str
    dtype: str
    # None for free dimensions
    sizes: tuple[int | None, ...]
    # its key in a dict; else empty
    key: str = ""


@dataclass(frozen=True)
class Graph:
    """The number of operators of a program, and its inputs and outputs in order."""

    # the version of PyTorch that wrote it
    saved_by: str
    operators: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    # how many of the inputs are positional; the others are passed by keyword
    positional: int


def parse_graph(name: str, content: Json) -> Graph:
    """Check and read the graph of the program `name`. Raises Problem bad_program if it cannot be run here."""
    try:
        operators = _check_contents(name, content)
        return _read_graph(name, content, operators=operators)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
        raise make_problem(
            name, f"has a graph that is not torch.export's ({type(error).__name__}): save it again"
        ) from error


def remove_executable_parts(content: Json) -> None:
    """Remove from the graph, in place, what PyTorch would run or look up: guards, metadata, calls of inner modules."""
    module = cast(Json, content["graph_module"])
    calls = cast(list[Json], module["module_call_graph"])
    module |= {"module_call_graph": calls[:1], "treespec_namedtuple_fields": {}, "metadata": {}}
    for node in _iterate_objects(module):
        if "target" in node and "metadata" in node:
            node["metadata"] = {}
    content["guards_code"] = []


def _read_graph(name: str, content: Json, *, operators: int) -> Graph:
    module = cast(Json, content["graph_module"])
    values = cast(Json, cast(Json, module["graph"])["tensor_values"])
    signature = cast(dict[str, list[Json]], module["signature"])
    called = cast(Json, cast(list[Json], module["module_call_graph"])[0]["signature"])

    # the tensors that the program takes and gives
    input_names = [
        _read_argument(name, spec["user_input"]) for spec in signature["input_specs"] if "user_input" in spec
    ]
    output_names = [
        _read_argument(name, spec["user_output"]) for spec in signature["output_specs"] if "user_output" in spec
    ]
    if any("user_input_mutation" in spec for spec in signature["output_specs"]):
        raise make_problem(name, f"changes its inputs in place: {_EXPORT}")

    # how a caller passes and receives them
    keys, positional = _read_call_form(name, _parse_spec(called["in_spec"]))
    if len(keys) != len(input_names):
        raise make_problem(name, f"takes values inside others: {_EXPORT}")
    out_keys = _read_keys(name, _parse_spec(called["out_spec"]))
    if len(out_keys) != len(output_names):
        raise make_problem(name, f"gives values that are not tensors: {_EXPORT}")

    # a value that is passed by keyword has the keyword as its name
    inputs = [_read_tensor(argument, values, key=key) for argument, key in zip(input_names, keys, strict=True)]
    outputs = [_read_tensor(argument, values, key=key) for argument, key in zip(output_names, out_keys, strict=True)]
    saved_by = printable(str(content.get("torch_version") or ""), limit=40)
    return Graph(saved_by, operators, tuple(inputs), tuple(outputs), positional)


def _read_argument(name: str, spec: object) -> str:
    argument = cast(Json, cast(Json, spec)["arg"])
    if "as_tensor" not in argument:
        raise make_problem(
            name,
            f"takes or gives a value that is not a tensor ({printable(next(iter(argument), 'nothing'))}): {_EXPORT}",
        )
    return str(cast(Json, argument["as_tensor"])["name"])


def _read_tensor(name: str, values: Json, *, key: str) -> Tensor:
    facts = cast(Json, values[name])
    sizes = tuple(cast(int | None, size.get("as_int")) for size in cast(list[Json], facts["sizes"]))
    code = cast(int, facts["dtype"])
    return Tensor(key or name, _DTYPES.get(code, f"type {code}"), sizes, key)


def _parse_spec(text: object) -> Json:
    version, spec = json.loads(str(text))
    if version != 1:
        raise ValueError("another version")
    return cast(Json, spec)


def _read_call_form(name: str, spec: Json) -> tuple[list[str], int]:
    """Read a keyword for each input, empty for positional ones, and the number of positional ones."""
    places, keywords = cast(list[Json], spec["children_spec"])
    if any(
        child["type"] is not None for part in (places, keywords) for child in cast(list[Json], part["children_spec"])
    ):
        raise make_problem(name, f"takes values inside lists or dicts: {_EXPORT}")
    positional = len(cast(list[Json], places["children_spec"]))
    return ["" for _ in range(positional)] + _read_keys(name, keywords), positional


def _read_keys(name: str, spec: Json) -> list[str]:
    """Read a key for each leaf of a nested value, in order; empty for leaves outside a dict."""
    if spec["type"] is None:
        return [""]
    if spec["type"] not in _CONTAINERS:
        raise make_problem(name, f"takes or gives a {printable(str(spec['type']))}, a class of its own: {_EXPORT}")
    children = cast(list[Json], spec["children_spec"])
    inner = [_read_keys(name, child) for child in children]
    if "ict" in str(spec["type"]) and all(len(leaves) == 1 for leaves in inner):
        return [str(key) for key in json.loads(cast(str, spec["context"]))]
    return [leaf for leaves in inner for leaf in leaves]


def _check_contents(name: str, content: Json) -> int:
    """Check everything in the graph and those below it, and return the number of operators. Raises Problem."""
    operators = 0
    for part in _iterate_objects(content["graph_module"]):
        if "target" in part:
            operators += 1
            _check_target(name, str(part["target"]))
        if part.get("custom_obj_values") or "as_custom_obj" in part:
            raise make_problem(name, f"holds objects of classes of its own, which are pickled: {_EXPORT}")
        _check_words(name, part)
    for symbol in cast(Json, content.get("range_constraints") or {}):
        if not _SYMBOL.fullmatch(symbol):
            raise make_problem(
                name, f"calls a dimension {printable(symbol)!r}, which is not one of torch.export's: save it again"
            )
    return operators


def _check_words(name: str, part: Json) -> None:
    """Check sizes, devices and names in one object of the graph. Raises Problem."""
    if "expr_str" in part and not _is_arithmetic(str(part["expr_str"])):
        raise make_problem(
            name, f"has a size that is not arithmetic ({printable(str(part['expr_str']), limit=40)}): save it again"
        )
    if isinstance(device := part.get("device"), dict) and device.get("type") != "cpu":
        raise make_problem(name, f"was exported for {printable(str(device.get('type')))}: export the model on the CPU")
    for kind in _NAMED_VALUES:
        value = part.get(kind)
        value = value.get("name", value.get("as_name")) if isinstance(value, dict) else None
        if isinstance(value, str) and not (value.isidentifier() and value.isascii()):
            raise make_problem(name, f"calls a value {printable(value)!r}, which is not a name: save it again")


def _check_target(name: str, target: str) -> None:
    if _ALLOWED_TARGETS.fullmatch(target):
        return
    operator = _OPERATOR.match(target)
    called = f"{operator[1]}::{operator[2]}" if operator is not None else target
    raise make_problem(
        name,
        f"uses the operator {printable(called)}, which is not PyTorch's own; a program with operators of others is not "
        "run: export the model with standard operators",
    )


def _is_arithmetic(text: str) -> bool:
    """Say whether an expression is arithmetic on torch.export's symbols, so that evaluating it does nothing else."""
    if len(text) > 2000:
        return False
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return all(_is_allowed(node, is_called=id(node) in called) for node in nodes)


def _is_allowed(node: ast.AST, *, is_called: bool) -> bool:
    if isinstance(node, ast.Name):
        return bool((_FUNCTIONS if is_called else _SYMBOL).fullmatch(node.id))
    if isinstance(node, ast.Constant):
        is_number = isinstance(node.value, int | float | bool) and abs(node.value) < 1 << 63
        return is_number or (isinstance(node.value, str) and bool(_SYMBOL.fullmatch(node.value)))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name)
    return isinstance(node, (*_NODES, ast.Load, ast.keyword))


def _iterate_objects(value: object) -> Iterator[Json]:
    """Yield every object in a JSON value, without recursion: a file may nest as deep as the parser lets it."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield cast(Json, part)
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
