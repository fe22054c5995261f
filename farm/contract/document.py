"""The bench document, `onnxfarm.bench/1`: what `bench --json`, quickstart's `--json` and `results --json` write.

History
1  first version. Until 23 November 2026, before a release, `cells[].metrics` were figures by name, and those alone that
   are no key of the cell; both are read.

Absent metrics are null. Times are milliseconds unless the name says otherwise, sizes are bytes, shares are 0–1.
"""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from farm.contract.document_cells import Cell, Part
from farm.contract.document_comparisons import Comparison

SCHEMA: Literal["onnxfarm.bench/1"] = "onnxfarm.bench/1"


class BlockFacts(Part):
    """What went on beside a block, read on its node just before its first launch. `busy_share`: by other programs."""

    block: str
    node: str | None = None
    governor: str | None = None
    turbo: bool | None = None
    load_1m: float | None = None
    busy_share: float | None = None
    other_runners: int | None = None
    temperature_c: float | None = None
    advice: list[str] = Field(default_factory=list)


class Document(Part):
    """The top level. `refused`: points of the matrix the plan did not run are cells with status `refused` too."""

    schema_: Literal["onnxfarm.bench/1"] = Field(default="onnxfarm.bench/1", alias="schema")
    machine: dict[str, object]
    seed: int
    budget: str = "quick"
    created_at: str | None = None
    command: str | None = None
    run: str | None = None
    url: str | None = None
    sentence: str = ""
    cells: list[Cell] = Field(default_factory=list)
    comparisons: list[Comparison] = Field(default_factory=list)
    blocks: list[BlockFacts] = Field(default_factory=list)

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, populate_by_name=True)

    def to_json(self, *, indent: int | None = 2) -> str:
        return self.model_dump_json(by_alias=True, indent=indent)


def json_schema() -> dict[str, Any]:
    """The JSON schema (2020-12) of every document of this schema, those of before too."""
    found = Document.model_json_schema()
    # a reader without it could not tell what it has
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "title": SCHEMA,
        "required": ["schema", *found["required"]],
    }
