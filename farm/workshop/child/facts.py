"""Defines the facts of a model, which are fields of an `inspection.Inspection`."""

from typing import Literal, TypedDict

from farm.workshop.child.signature import Signature


class FileFacts(TypedDict):
    """Facts of the files and of the model's header; sizes in bytes."""

    ok: Literal[True]
    main_sha256: str
    main_bytes: int
    data_bytes: int
    external_files: list[str]
    ir_version: int
    producer: str
    graph_name: str


class GraphFacts(TypedDict):
    """Facts of the graph and of all graphs and functions below it."""

    opsets: dict[str, int]
    unused_opsets: list[str]
    nodes: int
    nodes_below: int
    functions: int
    operators: dict[str, int]
    subgraphs: dict[str, int]
    custom_domains: list[str]
    parameters: int
    trees: int
    parameters_bytes: int
    dtypes: dict[str, int]
    is_quantised: bool


class Facts(Signature, FileFacts, GraphFacts):
    """All facts of a model."""
