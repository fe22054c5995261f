"""What a generation is given: the prompts that came with the model, or drawn ones, said by each cell. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from farm.contract.cells import CellSpec
from farm.rules.cells import scenarios
from farm.rules.cells.commands import PROMPTS
from farm.rules.cells.generations import USUAL_PROMPT, Generation
from farm.rules.matrices.points import Point
from farm.rules.planning.plans import ModelFacts, PromptFacts
from farm.rules.wording.numbers import counted


def settled(point: Point, model: ModelFacts) -> Point:
    """The point with a scenario that says its prompt: where no length was asked for, the given ones, else the usual.

    As many sequences at once as there are given prompts, where nobody says how many.
    """
    text = point.values.get("scenario")
    if not isinstance(text, str) or not text.startswith("generate"):
        return point
    found = scenarios.parsed(text)
    told = _settled(found.generation, model.prompts, is_batched="batch" in point.values)
    return Point({**point.values, "scenario": replace(found, generation=told).text}, point.positions)


def _settled(asked: Generation, given: PromptFacts | None, *, is_batched: bool) -> Generation:
    is_given = given is not None and (asked.given == given.sha256 or not (asked.given or asked.prompt))
    if not is_given or given is None:
        return asked if asked.prompt or asked.given else replace(asked, prompt=USUAL_PROMPT)
    rows = given.rows if given.rows > 1 and asked.batch is None and not is_batched else asked.batch
    return replace(asked, prompt=asked.prompt or given.tokens, given=given.sha256, batch=rows)


def problems(spec: CellSpec, model: ModelFacts) -> Iterator[str]:
    """What stands against the given prompts of a cell that generates."""
    asked, given, batch = scenarios.of(spec).generation, model.prompts, spec.workload.batch or 1
    if not asked.given:
        return
    if given is None or given.sha256 != asked.given:
        yield (
            f"The scenario names the prompts {asked.given[:12]}…, which {model.name} did not come with: give the "
            f"{PROMPTS} of that digest, or leave `given` out."
        )
    elif asked.prompt != given.tokens:
        yield (
            f"prompt of generate is {asked.prompt:,} and each row of {PROMPTS} has {counted(given.tokens, 'token')}: "
            "leave `prompt` out."
        )
    elif batch != given.rows:
        yield (
            f"{PROMPTS} has {counted(given.rows, 'row')} and the batch is {batch}: give as many rows, or leave the "
            "batch out."
        )
