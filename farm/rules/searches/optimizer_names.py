"""Finds names of graph optimizers in a runtime's shared library, and ranks them by the operators that changed.

No name of an operator or optimizer is hard-coded here.
"""

import re
from collections import Counter
from collections.abc import Iterable
from math import log
from mmap import mmap

# Classes of ONNX Runtime that rewrite a graph have names with these endings. Only trying shows whether a name is an
# optimizer; disabling any other name changes nothing.
_REWRITES = (
    "Fusion|Fusions|FusionL1|FusionL2|Elimination|Transformer|Optimizer|Propagation|Folding|Rewrite|Remover|Insertion"
)
_NAME = re.compile(rb"[A-Z][A-Za-z0-9_]{4,62}[A-Za-z0-9]")
_ENDS = re.compile(rf"({_REWRITES})$|^(Eliminate|Fuse)[A-Z]")
# a mangled C++ type of the runtime's namespace: the length of the class name, and the name
_MANGLED = re.compile(r"^N11onnxruntime(\d{1,2})([A-Za-z0-9_]+)E$")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")


def find_optimizer_names(library: bytes | mmap) -> list[str]:
    """Find the texts in a runtime's shared library that may be names of graph optimizers, sorted, each once."""
    texts = (match.group().decode("ascii") for match in _NAME.finditer(library))
    names = {_demangle(text) for text in texts}
    return sorted(name for name in names if _ENDS.search(name))


def _demangle(text: str) -> str:
    """Return the class name in a mangled C++ type of the runtime's namespace; the text itself where it is none."""
    found = _MANGLED.match(text)
    return found.group(2)[: int(found.group(1))] if found else text


def rank_names(names: Iterable[str], *, words: Iterable[str]) -> list[str]:
    """Sort optimizer names by how much they resemble `words`, the operators that changed, the most alike first.

    The words inside CamelCase names are compared. A common word counts more if fewer names contain it. Duplicates are
    removed.
    """
    parts_of = {name: _split_camel_case(name) for name in names}
    wanted = {part for word in words for part in _split_camel_case(word)}
    frequency = Counter(part for parts in parts_of.values() for part in parts)
    scores = {
        name: sum(log(len(parts_of) / frequency[part]) for part in parts & wanted) / (1 + len(parts - wanted))
        for name, parts in parts_of.items()
    }
    return sorted(scores, key=lambda name: (-scores[name], name))


def _split_camel_case(name: str) -> set[str]:
    return {part.lower() for part in _WORD.findall(name)}
