"""Everything that others count on by name: `python -m tests.inventory` writes it to inventory.txt.

A test compares it, so that a change of an interface is a line in that file's diff.
"""

import ast
import importlib
import os
import pkgutil
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import django
from pydantic import BaseModel

ROOT = Path(__file__).resolve().parents[1]
PATH = Path(__file__).with_name("inventory.txt")
PRODUCT = ("farm", "worker", "dashboard", "onnxfarm")
METHODS = ("get", "put", "post", "patch", "delete", "head", "options")
# Django's own pages of every table, and what the two APIs describe themselves
DESCRIBED = ("/admin/", "/api/v1/", "/api/node/v1/")


def inventory() -> str:
    """The whole text, a section under a heading each."""
    sections = {
        "commands": commands(),
        "entry points": entry_points(),
        "environment": environment(),
        "addresses": addresses(),
        "operations of /api/v1": operations("farm.api.api", "api"),
        "operations of /api/node/v1": operations("farm.gateway.node_api", "node_api"),
        "messages of /api/v1": api_messages("farm.api.api", "api"),
        "messages and documents of farm.contract": contract_messages(),
        "keys of a matrix": matrix_keys(),
        "schemas of documents": sorted(set(re.findall(r'"(onnxfarm\.[a-z-]+/\d+)"', _source()))),
        "tasks": tasks(),
    }
    return "\n\n".join("\n".join([f"# {name}", *lines]) for name, lines in sections.items()) + "\n"


def commands() -> Iterator[str]:
    """Every command of `onnxfarm` and of `manage.py` with its arguments and options."""
    from django.core.management import BaseCommand, get_commands, load_command_class

    from onnxfarm import main
    from onnxfarm.command_list import COMMANDS

    for name in sorted(COMMANDS):
        yield from _command(f"onnxfarm {name}", main._load_command(name))
    of_django = set(map(_spelled, BaseCommand().create_parser("manage.py", "any")._actions))
    for name, app in sorted(get_commands().items()):
        if str(app).startswith(PRODUCT):
            actions = load_command_class(str(app), name).create_parser("manage.py", name)._actions
            yield " ".join([f"manage.py {name}", *sorted(set(map(_spelled, actions)) - of_django)])


def _command(name: str, command: Any) -> Iterator[str]:
    # typer brings a click of its own, whose classes are not click's
    if hasattr(command, "commands"):
        for inner in sorted(command.commands):
            yield from _command(f"{name} {inner}", command.commands[inner])
        return
    yield " ".join([name, *map(_parameter, command.params)])


def _parameter(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return "|".join([*parameter.opts, *parameter.secondary_opts])
    return f"{parameter.name.upper()}{'' if parameter.required else '?'}{'…' if parameter.nargs == -1 else ''}"


def _spelled(action: Any) -> str:
    return "|".join(action.option_strings) or str(action.dest).upper()


def entry_points() -> Iterator[str]:
    """Scripts of the wheel, modules that are run with their options, and the scripts of deploy/."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    yield from (f"{name} = {target}" for name, target in sorted(scripts.items()))
    for path in _files():
        text = path.read_text()
        if '__name__ == "__main__"' in text:
            words = " ".join(_argparse_options(ast.parse(text)))
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
            yield f"python -m {module} {words}".rstrip()
    for path in sorted((ROOT / "deploy").iterdir()):
        if path.is_file() and path.read_bytes().startswith(b"#!"):
            yield f"deploy/{path.name}"


def _argparse_options(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            yield from (word.value for word in node.args if isinstance(word, ast.Constant))


def environment() -> list[str]:
    """Variables: the settings of a farm, and every other that the product's code names."""
    from farm.config.environment import Environment

    settings = {f"ONNXFARM_{name.upper()}" for name in Environment.model_fields}
    return sorted(settings | set(re.findall(r"\bONNXFARM_[A-Z0-9_]*[A-Z0-9]\b", _source())))


def addresses() -> list[str]:
    """Every address that no API describes, with its name."""
    from django.urls import get_resolver

    return sorted(set(_addresses(get_resolver(), "/")))


def _addresses(resolver: Any, above: str) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        address = above + str(pattern.pattern).lstrip("^").rstrip("$")
        if address in DESCRIBED:
            yield f"{address}…"
        elif hasattr(pattern, "url_patterns"):
            yield from _addresses(pattern, address)
        else:
            yield f"{address}  {pattern.name or ''}".rstrip()


def operations(module: str, name: str) -> Iterator[str]:
    """Method, address, parameters, body and answers of each operation."""
    for address, methods in sorted(_description(module, name)["paths"].items()):
        for method, operation in methods.items():
            if method in METHODS:
                yield " ".join([method.upper(), address, *_parts(operation)])


def _parts(operation: Mapping[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", []):
        if parameter["in"] != "path":
            yield f"{parameter['in']}:{parameter['name']}{'' if parameter.get('required') else '?'}"
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"body:{_shape(content, kind)}"
    for status, answer in operation["responses"].items():
        shapes = [_shape(content, kind) for kind, content in answer.get("content", {}).items()]
        yield f"{status}:{'|'.join(shapes)}".rstrip(":")


def _shape(content: Mapping[str, Any], kind: str) -> str:
    """The name of what is sent, else its kind."""
    schema = content.get("schema", {})
    is_list = schema.get("type") == "array"
    reference = (schema.get("items", {}) if is_list else schema).get("$ref", "")
    return f"{reference.rpartition('/')[2]}{'[]' if is_list else ''}" if reference else kind


def api_messages(module: str, name: str) -> Iterator[str]:
    """Keys of what the API takes and gives; `?`: may be left out."""
    ours = {message.__name__ for message in _contract()}
    for message, schema in sorted(_description(module, name)["components"]["schemas"].items()):
        if message not in ours:
            yield f"{message}: {_keys(schema)}"


def contract_messages() -> list[str]:
    """Keys of every message and document that farm, nodes and clients agree on."""
    return sorted(f"{message.__name__}: {_keys(message.model_json_schema())}" for message in _contract())


def _contract() -> Iterator[type[BaseModel]]:
    import farm.contract

    for found in pkgutil.walk_packages(farm.contract.__path__, "farm.contract."):
        # answers of /api/v1 are listed with its messages
        if found.name.startswith("farm.contract.api"):
            continue
        for thing in vars(importlib.import_module(found.name)).values():
            if isinstance(thing, type) and issubclass(thing, BaseModel) and thing.__module__ == found.name:
                yield thing


def _keys(schema: Mapping[str, Any]) -> str:
    """The keys of an object, or the words that a text may be."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    needed = schema.get("required", ())
    return ", ".join(f"{key}{'' if key in needed else '?'}" for key in schema.get("properties", {}))


def matrix_keys() -> list[str]:
    from farm.rules.matrices.matrix import json_schema

    # cells of these have the keys of the whole
    nested = ("matrix.", "include.", "exclude.")
    return sorted(path for path in set(_paths(json_schema(), "")) if not path.startswith(nested))


def _paths(schema: Any, above: str) -> Iterator[str]:
    """Where keys may stand, through lists and alternatives."""
    if isinstance(schema, list):
        for each in schema:
            yield from _paths(each, above)
    elif isinstance(schema, dict):
        for key, inner in schema.get("properties", {}).items():
            path = f"{above}.{key}".lstrip(".")
            yield path
            yield from _paths(inner, path)
        for word in ("items", "anyOf", "oneOf", "allOf", "additionalProperties", "patternProperties"):
            yield from _paths(schema.get(word), above)


def tasks() -> Iterator[str]:
    """What workers run, when beat starts it, and on which queue of its own."""
    from django.conf import settings

    from farm.config.celery import app

    app.loader.import_default_modules()
    yield from (name for name in sorted(app.tasks) if not name.startswith("celery."))
    for name, entry in sorted(settings.CELERY_BEAT_SCHEDULE.items()):
        yield f"beat: {name}: {entry['task']} on {entry['options']['queue']}"


def _description(module: str, name: str) -> Any:
    api = getattr(importlib.import_module(module), name)
    return api.get_openapi_schema(path_prefix="/")


def _files() -> list[Path]:
    return sorted(path for room in PRODUCT for path in (ROOT / room).rglob("*.py"))


def _source() -> str:
    return "\n".join(
        path.read_text() for path in [*_files(), ROOT / "deploy" / "process", ROOT / "deploy" / "quickstart"]
    )


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    PATH.write_text(inventory())


if __name__ == "__main__":
    main()
