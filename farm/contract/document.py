"""The bench document, `onnxfarm.bench/1`: what `bench --json`, quickstart's `--json` and `results --json` write.

History
1  first version. Until 23 November 2026, before a release, `cells[].metrics` were figures by name, and those alone that
   are no key of the cell; both are read.

Absent metrics are null. Times are milliseconds unless the name says otherwise, sizes are bytes, shares are 0–1.
"""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from farm.contract.base import Line
from farm.contract.document_cells import Cell, Part
from farm.contract.document_comparisons import Comparison
from farm.contract.reports import OTHERS_SHARE

SCHEMA: Literal["onnxfarm.bench/1"] = "onnxfarm.bench/1"


class BlockFacts(Part):
    """What went on beside a block, read on its node just before its first launch. `busy_share`: by other programs."""

    # the block of its cells, and the node's name
    block: str
    node: str | None = None
    # of the processor's clock
    governor: str | None = None
    turbo: bool | None = None
    # load over the last minute; share of the processor that other programs took (0–1)
    load_1m: float | None = None
    busy_share: float | None = None
    other_runners: int | None = None  # runners of other agents on the machine
    temperature_c: float | None = None  # of the processor
    advice: list[str] = Field(default_factory=list)  # what its owner could do, in sentences

    @property
    def is_busy(self) -> bool:
        return (self.busy_share or 0.0) > OTHERS_SHARE


class Document(Part):
    """The top level. `refused`: points of the matrix the plan did not run are cells with status `refused` too."""

    schema_: Literal["onnxfarm.bench/1"] = Field(default="onnxfarm.bench/1", alias="schema")  # `onnxfarm.bench/1`
    machine: dict[str, object]  # facts of the machine, or of the nodes by name
    seed: int  # of the seeded inputs and of the order of rounds
    budget: str = "quick"  # `glance`, `quick`, `standard` or `precise`
    created_at: str | None = None  # ISO 8601 with zone
    command: str | None = None  # what was called
    run: str | None = None  # the run's id on a farm
    url: str | None = None  # the run's page
    sentence: Line = ""  # what the run comes to, in a sentence or two
    # one for each arm of each block and for each refused point; a baseline that several blocks repeat has several
    # with the same `digest`; of an unfinished run those that are measured are left out
    cells: list[Cell] = Field(default_factory=list)
    # one for every pair of arms of a block that differ in exactly one axis; none with the budget `glance`
    comparisons: list[Comparison] = Field(default_factory=list)
    # what went on beside each block, read on its node just before the first launch
    blocks: list[BlockFacts] = Field(default_factory=list)

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, populate_by_name=True)

    def to_json(self, *, indent: int | None = 2) -> str:
        return self.model_dump_json(by_alias=True, indent=indent)


def make_json_schema(model: type[Part] = Document, *, title: str = SCHEMA) -> dict[str, Any]:
    """Make the JSON schema (2020-12) of a kind of document. Bench documents of earlier releases fit theirs too.

    The key `schema` is required in it. Raises KeyError for a kind of which nothing else is required.
    """
    schema = model.model_json_schema()
    # without the key `schema` a reader could not tell what the document is
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": title,
        "required": ["schema", *schema["required"]],
    }
