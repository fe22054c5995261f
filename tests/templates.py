"""`python -m tests.templates`: every page's template compiles, and what it names by a word is there.

That is: templates that it extends or includes, addresses by name, files of /static/.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parents[1] / "dashboard" / "templates"


def problems() -> Iterator[str]:
    """A line for each template that does not compile or names something that there is not."""
    from django.template import TemplateSyntaxError
    from django.template.loader import get_template

    for path in sorted(ROOT.rglob("*.html")):
        name = str(path.relative_to(ROOT))
        try:
            # Django's own template, behind the one that hides the engine
            template: Any = get_template(name)
        except TemplateSyntaxError as problem:
            yield f"{name}: {problem}"
            continue
        yield from (f"{name}: {missing}" for missing in _missing(template.template.nodelist))


def _missing(nodes: Any) -> Iterator[str]:
    from django.contrib.staticfiles import finders
    from django.template import TemplateDoesNotExist
    from django.template.base import Node
    from django.template.defaulttags import URLNode
    from django.template.loader import get_template
    from django.template.loader_tags import ExtendsNode, IncludeNode
    from django.templatetags.static import StaticNode
    from django.urls import get_resolver

    addresses = set(_address_names(get_resolver()))
    for node in nodes.get_nodes_by_type(Node):
        if isinstance(node, URLNode) and _word(node.view_name) not in {None, *addresses}:
            yield f"no address is named {_word(node.view_name)!r}"
        if isinstance(node, StaticNode) and (file := _word(node.path)) and not finders.find(file):
            yield f"there is no static file {file}"
        if isinstance(node, ExtendsNode | IncludeNode):
            other = _word(node.parent_name if isinstance(node, ExtendsNode) else node.template)
            try:
                _ = other and get_template(other)
            except TemplateDoesNotExist:
                yield f"there is no template {other}"


def _address_names(resolver: Any, namespace: str = "") -> Iterator[str]:
    yield from (f"{namespace}{name}" for name in resolver.reverse_dict if isinstance(name, str))
    for name, (_, inner) in resolver.namespace_dict.items():
        yield from _address_names(inner, f"{namespace}{name}:")


def _word(expression: Any) -> str | None:
    """What an expression is where it is a word in quotes; None where a page decides."""
    word = getattr(expression, "var", expression)
    return word if isinstance(word, str) else None


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    found = list(problems())
    print("\n".join(found) or "every template compiles, and what it names is there")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
