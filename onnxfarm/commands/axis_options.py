"""Options that the table of axes makes: each axis that has words for one has it."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from farm.rules.cells.axes import BY_NAME, OWN_AXES, Declared

# the parameter of a command in whose place the options stand
PLACE = "axes"


def with_axes(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command an option for each axis in the place of its parameter `axes`, which gets their texts by name."""
    own = [axis for axis in OWN_AXES if axis.help]

    @functools.wraps(command)
    def called(**given: object) -> None:
        texts = {axis.name: given.pop(axis.field) for axis in own}
        command(**given, **{PLACE: texts})

    called.__signature__ = _signature(command, own)  # type: ignore[attr-defined]
    return called


def _signature(command: Callable[..., None], own: Sequence[Declared]) -> inspect.Signature:
    written = inspect.signature(command)
    kind = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(axis.field, kind, default=None, annotation=_option(axis)) for axis in own]
    parts = [options if one.name == PLACE else [one.replace(kind=kind)] for one in written.parameters.values()]
    return written.replace(parameters=[one for some in parts for one in some])


def _option(axis: Declared) -> object:
    usual = str(BY_NAME[axis.name].default).lower()
    return Annotated[str | None, typer.Option(f"--{axis.name}", help=axis.help, show_default=usual)]
