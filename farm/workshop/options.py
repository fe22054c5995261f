"""Parses the options of a recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from farm.rules.cells import recipes
from farm.rules.runtimes.nearest import choice_sentence
from farm.workshop.problems import Problem, printable


@dataclass(frozen=True, kw_only=True)
class Options:
    """A recipe's options, with their defaults.

    Descriptions continue a sentence and so begin with a comma, or are empty. They name five excluded nodes at most.
    """

    per_channel: bool = False
    reduce_range: bool = False
    keep_io: bool = True
    activation: str = ""
    weight: str = "int8"
    calibration: str = "minmax"
    exclude_nodes: tuple[str, ...] = ()
    op_types: tuple[str, ...] = ()
    block_ops: tuple[str, ...] = ()
    symmetric: bool = False
    block: str = "32"
    accuracy_level: str = "0"

    def describe(self) -> str:
        """Name the options that differ from the defaults, as the end of a sentence; "" if none does.

        Number types, the calibration method and options that only fp16 or int4 has are left out.
        """
        parts = [
            ("per channel", self.per_channel),
            ("reduced range", self.reduce_range),
            ("symmetric activations", self.symmetric),
            (f"only {', '.join(self.op_types)}", bool(self.op_types)),
        ]
        return "".join(f", {words}" for words, is_set in parts if is_set) + self.describe_exclusions()

    def describe_exclusions(self) -> str:
        names = ", ".join(printable(name) for name in self.exclude_nodes[:5])
        return f", without {names}" if names else ""


_KINDS = {field.name: type(field.default) for field in fields(Options)}


def parse_options(chosen: Mapping[str, str], *, precision: str, nodes: Sequence[str] = ()) -> Options:
    """Parse a recipe's options; `nodes` are the names that the option `exclude-nodes` may hold.

    Raises Problem bad_option for unknown keys, values and names of nodes.
    """
    try:
        texts = recipes.read_options(precision, chosen)
    except recipes.RecipeProblem as problem:
        raise Problem("bad_option", str(problem)) from problem
    values: dict[str, object] = {}
    for key, text in texts.items():
        name = key.replace("-", "_")
        if _KINDS[name] is tuple:
            values[name] = recipes.split_names(text)
        elif _KINDS[name] is bool:
            values[name] = text == "true"
        else:
            values[name] = text
    parsed = Options(**values)  # type: ignore[arg-type]
    for name in parsed.exclude_nodes:
        if name not in nodes:
            named_nodes = [node for node in nodes if node][:50]
            raise Problem("bad_option", choice_sentence("node in exclude-nodes", printable(name), named_nodes))
    return parsed
