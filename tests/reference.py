"""The reference of docs/reference/, from the code: `python -m tests.reference` writes it, a test holds it.

What a field, a state or a code means stands beside it in the code, as a comment on its line, or above it: then for the
fields without one that follow, too.
"""

import inspect
import io
import os
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import django
import yaml
from pydantic import BaseModel

from onnxfarm.examples import find_example
from tests import inventory

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
EVERY_KEY = ROOT / "docs" / "examples" / "every-key.yaml"
NOTE = "Written by `python -m tests.reference` from the code."
SHORT_TEXT = 110


def pages() -> dict[str, str]:
    """Each page by its file's name."""
    makers: Mapping[str, tuple[str, Callable[[], Iterator[str]]]] = {
        "commands.md": ("Commands", commands),
        "matrix-keys.md": ("Keys of a matrix", matrix_keys),
        "api.md": ("The API", api),
        "document.md": ("Keys of the bench and find documents", document),
        "settings.md": ("Settings of a farm", settings),
        "metrics.md": ("Metrics", metrics),
        "refusals.md": ("Refusals", refusals),
        "states.md": ("Events and states", states),
    }
    return {name: "\n\n".join([f"# {title}", *make(), NOTE]) + "\n" for name, (title, make) in makers.items()}


def comments(kind: type) -> dict[str, str]:
    """What stands beside each name that a class gives a value or a type."""
    found: dict[str, str] = {}
    above: list[str] = []
    shared = ""
    for line in inspect.getsource(kind).splitlines():
        name = re.match(r"    ([A-Za-z]\w*)(?::| =)", line)
        if line.startswith("    # "):
            above.append(line.strip(" #"))
        elif name:
            shared = " ".join(above) if above else shared
            beside = _comment(line)
            found[name[1]] = beside or shared
            shared, above = "" if beside else shared, []
        elif not line.startswith((" " * 5, "    )", "    }")):
            shared, above = "", []
    return found


def _comment(line: str) -> str:
    tokens = tokenize.generate_tokens(io.StringIO(line.strip() + "\n").readline)
    try:
        return next((token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT), "")
    except tokenize.TokenError:
        return ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [[str(cell).replace("|", "\\|").replace("\n", " ").strip() for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [list(heads), ["---"] * len(heads), *lines])


def _code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def commands() -> Iterator[str]:
    """Every command with its arguments and options, as its `--help` has them."""
    from onnxfarm import main
    from onnxfarm.command_list import COMMANDS
    from onnxfarm.gate_process import INTERNAL
    from onnxfarm.problems import GateFailed, Infrastructure, Problem, Stopped, TimedOut, Usage

    yield "Every command of `onnxfarm`; `--help` of each says the same. `[]`: may be left out."
    yield (
        "Commands that measure print a table and take `--json FILE` beside it (`-` is stdout). "
        "Commands that answer print JSON by a bare `--json`."
    )
    kinds: list[type[Problem]] = [GateFailed, Usage, Infrastructure, TimedOut, Stopped]
    codes = [(_code(kind.exit_code), (kind.__doc__ or "").strip()) for kind in kinds]
    yield "## Exit codes"
    codes.append((_code(INTERNAL), "A mistake of ours, with its traceback."))
    yield _table(("code", "means"), [("`0`", "Every planned cell is done, or what was asked for was done."), *codes])
    for name in sorted(COMMANDS):
        yield from _command(name, main._load_command(name))


def _command(name: str, command: Any) -> Iterator[str]:
    if hasattr(command, "commands"):
        for inner in sorted(command.commands):
            yield from _command(f"{name} {inner}", command.commands[inner])
        return
    yield f"## {name}"
    usage = " ".join(_argument(each) for each in command.params if each.param_type_name == "argument")
    _, _, told = inspect.cleandoc(command.help).partition("\n\n")
    yield re.sub(r"(?<!\n)\n(?!\n)", " ", told)
    yield f"{_code(f'onnxfarm {name} {usage}'.strip())}, such as {_code(find_example(f'onnxfarm {name}'))}"
    rows = [(_code(_spelled(each)), _sentence(each.help), _default(each)) for each in command.params if each.help]
    if rows:
        yield _table(("takes", "means", "left out"), rows)


def _argument(argument: Any) -> str:
    word = (argument.metavar or argument.name.upper()).strip("[]") + ("…" if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return _argument(parameter)
    words = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return f"{words} {parameter.metavar}" if parameter.metavar else words


def _sentence(text: str) -> str:
    return " ".join(text.split())


def _default(parameter: Any) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return shown
    value = parameter.default
    # a folder of this machine, or a function that names one
    if value in (None, False, ()) or callable(value) or isinstance(value, Path):
        return ""
    return _code(getattr(value, "value", value))


def matrix_keys() -> Iterator[str]:
    """Keys with what they take, from pydantic and the readers; examples and meanings from the file with every key."""
    from farm.rules.cells.axes import MATRIX_AXES
    from farm.rules.matrices.matrix import json_schema

    yield "[A file with every key](../examples/every-key.yaml); [the matrix](../matrix.md) says how keys work together."
    schema: dict[str, Any] = json_schema()
    written = EVERY_KEY.read_text(encoding="utf-8")
    example = yaml.safe_load(written)
    meanings = dict(re.findall(r"^ *#? ?([a-z-]+):.*?  # (.+)$", written, re.MULTILINE))
    axes = schema["properties"]["matrix"]["properties"]
    beside = {name: part for name, part in schema["properties"].items() if name not in axes and name != "matrix"}
    parts: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = (
        ("Beside the axes", beside, example),
        ("Axes", axes, example["matrix"]),
    )
    for title, keys, found in parts:
        yield f"## {title}"
        yield _table(
            ("key", "means", "takes", "example"),
            [
                (_code(name), meanings.get(name) or MATRIX_AXES[name].help, _kind(part), _example(name, found))
                for name, part in keys.items()
            ],
        )


def _example(name: str, found: Mapping[str, Any]) -> str:
    value = found.get(name, 10)
    value = value[:2] if isinstance(value, list) else value
    written = yaml.safe_dump({name: value}, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return _code(written.strip().removeprefix("{").removesuffix("}"))


def _kind(schema: Mapping[str, Any], link: str = "") -> str:
    """A JSON schema in short."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}]({link}#{name.lower()})"
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            kinds = list(dict.fromkeys(_kind(part, link) for part in schema[word]))
            several = [kind for kind in kinds if kind.removeprefix("list of ") in kinds and kind.startswith("list of ")]
            return " or ".join(kind for kind in kinds if kind not in several) + (", or a list" if several else "")
    if "enum" in schema or "const" in schema:
        return ", ".join(_code(value) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'], link)}" if "items" in schema else "list"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        if "properties" in schema:
            return "mapping with " + ", ".join(_code(name) for name in schema["properties"])
        return f"mapping of {_kind(inner, link)}" if isinstance(inner, dict) else "mapping"
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    span = f" from {lowest} to {highest}" if lowest is not None and highest is not None else ""
    kind = schema.get("type", "anything")
    return (" or ".join(kind) if isinstance(kind, list) else str(kind)).replace("null", "nothing") + span


def api() -> Iterator[str]:
    """Operations by tag, then the shapes that they take and give."""
    found = inventory._description("farm.api.api", "api")
    yield "Below `/api/v1`; the same, to try, at `/api/v1/docs` of a farm. A token goes into `Authorization: Bearer …`."
    by_tag: dict[str, list[Sequence[str]]] = {}
    for path, methods in sorted(found["paths"].items()):
        for method, operation in methods.items():
            if method in inventory.METHODS:
                about = _sentence(operation.get("description") or operation["summary"])
                row = (_code(f"{method.upper()} {path}"), about, _parameters(operation), _answers(operation))
                by_tag.setdefault((operation.get("tags") or ["other"])[0], []).append(row)
    for tag, rows in sorted(by_tag.items()):
        yield f"## {tag}"
        yield _table(("operation", "does", "takes", "gives"), rows)
    yield "## Shapes"
    for name, schema in sorted(found["components"]["schemas"].items()):
        if schema.get("properties"):
            yield f"### {name}"
            yield _fields(schema)
        else:
            yield f"### {name}\n\n{_kind(schema)}"


def _parameters(operation: Mapping[str, Any]) -> str:
    asked = [
        f"{_code(part['name'])}{'' if part.get('required') else '?'} {_sentence(part.get('description', ''))}".strip()
        for part in operation.get("parameters", ())
    ]
    bodies = operation.get("requestBody", {}).get("content", {})
    return "; ".join([*asked, *(_body(kind, content) for kind, content in bodies.items())])


def _body(kind: str, content: Mapping[str, Any]) -> str:
    schema = content.get("schema", {})
    return _kind(schema) if "$ref" in schema or "items" in schema else _code(kind)


def _answers(operation: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{status} {', '.join(_body(kind, content) for kind, content in answer.get('content', {}).items())}".strip()
        for status, answer in operation["responses"].items()
    )


def _fields(schema: Mapping[str, Any], meanings: Mapping[str, str] | None = None) -> str:
    needed = schema.get("required", ())
    rows = [
        (
            f"{_code(name)}{'' if name in needed else '?'}",
            _kind(part),
            (meanings or {}).get(name) or _sentence(part.get("description", "")),
        )
        for name, part in schema["properties"].items()
    ]
    return _table(("key", "is", "means"), rows)


def document() -> Iterator[str]:
    """The documents' schemas with what stands beside each field."""
    from farm.contract import document as whole
    from farm.contract import document_cells, document_comparisons, document_find
    from farm.contract.cells import LaterAxes

    yield (
        "`onnxfarm.bench/1`, as `onnxfarm schema bench` prints it; [the document](../bench.md) says who writes it. "
        "`onnxfarm.find/1` begins with [Found](#found). `?`: documents may lack it."
    )
    modules = (document_cells, document_comparisons, document_find, whole)
    kinds = {name: kind for module in modules for name, kind in _models(module)}
    axes = {name: _sentence(field.description or "") for name, field in LaterAxes.model_fields.items()}
    first, second = whole.make_json_schema(), document_find.make_json_schema()
    parts = [("Document", first), *sorted(first["$defs"].items()), ("Found", second), *sorted(second["$defs"].items())]
    for name, part in parts:
        if "properties" in part:
            yield f"## {name}"
            meanings = comments(kinds[name]) if name in kinds else {}
            schema = part["properties"].get("schema", {}).get("default")
            yield _fields(part, axes | meanings | {"schema": _code(schema)})
        else:
            yield f"## {name}\n\n{_kind(part)}"


def _models(module: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    for name, kind in vars(module).items():
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.__module__ == module.__name__:
            yield name, kind


def settings() -> Iterator[str]:
    """Settings of a farm's processes, from its environment."""
    from farm.alerts.channels.apprise import PARAMETERS
    from farm.config.environment import Environment

    yield (
        "Environment variables that every process of a farm reads. What a node and the command line read: "
        "[operations](../operations.md#settings)."
    )
    meanings = comments(Environment)
    rows = [
        (_code(f"ONNXFARM_{name.upper()}"), meanings[name], _code(_plain(field.default)))
        for name, field in Environment.model_fields.items()
    ]
    yield _table(("name", "means", "default"), rows)
    yield "## Services of a channel\n\nWhat an Apprise address of a service may say, and nothing else."
    yield _table(
        ("service", "parameters"), [(_code(name), ", ".join(sorted(said))) for name, said in PARAMETERS.items()]
    )


def _plain(value: object) -> object:
    return "" if value is None or "Secret" in type(value).__name__ else value


def metrics() -> Iterator[str]:
    """Every metric of ours, from its entry."""
    from farm.rules.cells.metrics import OWN
    from farm.rules.quality import accuracy_metrics

    yield "What a cell has. *Judged*: two cells of a block have a verdict in it. *Alerts as*: by that kind of change."
    rows = [
        (
            _code(metric.name),
            metric.title,
            metric.unit,
            metric.better,
            "/".join(metric.judging.words) if metric.judging else "",
            metric.judging.alerts_as if metric.judging else "",
            metric.note,
        )
        for metric in OWN
    ]
    yield _table(("name", "title", "unit", "better", "judged", "alerts as", "note"), rows)
    judged = [(_code(each.name), each.note, _code(each.labels)) for each in accuracy_metrics.OWN]
    yield f"## On labelled data\n\n{_table(('metric', 'a sample is', 'labels'), judged)}"


def refusals() -> Iterator[str]:
    """Codes of cells, then those of the API by their status."""
    from farm.base import refusals as of_api
    from farm.contract.reasons import Reason
    from farm.rules.wording.reasons import REASONS

    yield (
        "Why a point of a matrix is not measured, or a cell did not finish: `reason.code` of a cell. The sentence "
        "beside it has the values; where a change of the matrix helps, `way_out` has it."
    )
    for code, told in REASONS.items():
        yield f"## {code.value}"
        status = Reason(code=code, text="-").status.value
        yield f"{told.meaning} The cell's status is `{status}`.\n\n- Example: {told.example}\n- Way out: {told.way_out}"
    yield "## Of the API"
    yield "An answer with such a status has `detail`, `code` and, where there is one, `hint`."
    kinds = [kind for kind in of_api.Refusal.__subclasses__() if kind.__module__ == of_api.__name__]
    rows = [(kind.status, _code(kind.default_code), _sentence(kind.__doc__ or "")) for kind in kinds]
    yield _table(("status", "code", "means"), sorted(rows))


def states() -> Iterator[str]:
    """States with what they mean and where they come from; then the events of logs."""
    from farm.alerts import states as alerts
    from farm.fleet import states as fleet
    from farm.registry import states as registry
    from farm.runs import states as runs

    yield "An arrow that does not stand here does not exist: whoever asks for it gets a refusal."
    arrows = {
        "BlockState": runs.BLOCK_ARROWS,
        "RunState": runs.RUN_ARROWS,
        "NodeHealth": fleet.HEALTH_ARROWS,
        "LendingState": fleet.LENDING_ARROWS,
        "AlertState": alerts.ALERT_ARROWS,
    }
    for module in (runs, fleet, registry, alerts):
        for name, kind in vars(module).items():
            if isinstance(kind, type) and kind.__module__ == module.__name__ and hasattr(kind, "choices"):
                yield f"## {re.sub(r'(?<!^)(?=[A-Z])', ' ', name).capitalize()}"
                yield _sentence(kind.__doc__ or "")
                yield _states_of(kind, arrows.get(name, {}))


def _states_of(kind: Any, arrows: Mapping[Any, Sequence[Any]]) -> str:
    said = comments(kind)
    if not any(said.values()):
        return ", ".join(_code(each.value) for each in kind if each.value)
    rows = [(_code(each.value), said[each.name], ", ".join(map(_code, arrows.get(each, ())))) for each in kind]
    return _table(("value", "means", "from"), rows) if arrows else _table(("value", "means"), [row[:2] for row in rows])


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
