"""Options of a recipe, from words to values. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from farm.rules.nearest import choice_sentence
from farm.workshop.problems import Problem, shown

_YES, _NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
_CHOICES = {
    "activation": ("uint8", "int8"),
    "weight": ("int8", "uint8"),
    "calibration": ("minmax", "entropy", "percentile"),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """A recipe's options; empty where nothing was said."""

    per_channel: bool = False
    reduce_range: bool = False
    keep_io: bool = False
    activation: str = ""
    weight: str = ""
    calibration: str = ""
    exclude_nodes: tuple[str, ...] = ()
    op_types: tuple[str, ...] = ()
    block_ops: tuple[str, ...] = ()
    symmetric: bool = False

    def sentence(self) -> str:
        """The options that differ from the defaults, as the end of a sentence."""
        said = [
            ("per channel", self.per_channel),
            ("reduced range", self.reduce_range),
            (f"only {', '.join(self.op_types)}", bool(self.op_types)),
            (f"without {', '.join(shown(name) for name in self.exclude_nodes[:5])}", bool(self.exclude_nodes)),
        ]
        return "".join(f", {words}" for words, is_said in said if is_said)


def read(chosen: Mapping[str, str], *, allowed: Collection[str], nodes: Sequence[str] = ()) -> Options:
    """The options of a recipe. Raises Problem: bad_option, for unknown keys, values and node names."""
    values: dict[str, object] = {}
    for key, text in chosen.items():
        if key not in allowed:
            raise Problem("bad_option", choice_sentence("option", key, allowed))
        values[key.replace("-", "_")] = _value(key, text.strip())
    read = Options(**values)  # type: ignore[arg-type]
    for name in read.exclude_nodes:
        if name not in nodes:
            raise Problem(
                "bad_option", choice_sentence("node in exclude-nodes", shown(name), [n for n in nodes if n][:50])
            )
    return read


def _value(key: str, text: str) -> object:
    if key in _CHOICES:
        if text not in _CHOICES[key]:
            raise Problem("bad_option", choice_sentence(f"value of {key}", shown(text), _CHOICES[key]))
        return text
    if key in ("exclude-nodes", "op-types", "block-ops"):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if text.lower() not in _YES | _NO:
        raise Problem("bad_option", f"The option {key} is {shown(text)!r}: say true or false.")
    return text.lower() in _YES
