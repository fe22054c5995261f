"""The OpenAPI document: every field, name in an address and answer is described."""

from collections.abc import Iterator
from typing import Any

from farm.api.api import api


def without_words() -> Iterator[str]:
    document: dict[str, Any] = api.get_openapi_schema()
    for name, schema in document["components"]["schemas"].items():
        for field, said in schema.get("properties", {}).items():
            if not said.get("description"):
                yield f"{name}.{field}"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", ()):
                if not (parameter.get("description") or parameter["schema"].get("description")):
                    yield f"{method} {path}: {parameter['name']}"
            for status, answer in operation["responses"].items():
                if str(status).startswith("2") and not answer.get("content") and str(status) != "204":
                    yield f"{method} {path}: answer {status}"


def test_nothing_of_the_api_goes_without_words() -> None:
    assert list(without_words()) == []
