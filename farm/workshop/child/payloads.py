"""Defines the payloads of the orders that the workshop's functions receive in the child."""

from typing import Literal, NotRequired, TypedDict

from farm.contract.evaluation import LabelShape


class Model(TypedDict):
    """Every order names the model file `main` in `folder`."""

    folder: str
    main: str


class Written(Model):
    """Every order that writes something also names the file or folder `out`."""

    out: str


class Package(Written):
    """A packed npm release, the `names` of the files to take from its folder `dist`, and limits."""

    names: list[str]
    limit_files: int
    limit_bytes: int


class Workload(Written):
    """Inputs to make; `inputs` are fills by name, in place of those chosen from the graph."""

    batch: int | None
    shapes: dict[str, int]
    inputs: dict[str, str]
    seed: int


class GivenInputs(Written):
    """Inputs that the user gave, as an `.npz`."""

    inputs: str


class GivenPrompts(Written):
    """Token ids that the user gave, as an `.npz`."""

    prompts: str


class TestData(Written):
    """ONNX's own `.pb` files of the model's inputs or outputs, in their order."""

    files: list[str]
    side: Literal["input", "output"]


class Recipe(Written):
    """A variant to make."""

    precision: str
    # None keeps the operator set
    opset: int | None
    options: dict[str, str]
    # an `.npz` of samples; None for random ones
    calibration: NotRequired[str | None]
    # the name under which the framework's own program is written instead; empty to make a variant
    program: NotRequired[str]


class Samples(Written):
    """Samples to calibrate with: the `.npz` `data`, or if that is None, a list of `input_N.pb` for each set."""

    data: str | None
    sets: list[list[str]]


class Evaluation(Written):
    """Labelled data (an `.npz`) with the fields of an EvaluationRecipe and of the metric's entry."""

    data: str
    labels: LabelShape
    at_once: int
    metric: str
    output: str | None
    apply: str | None
    threshold: float


class JudgedSamples(Written):
    """Data for a user's own judge, as an `.npz`."""

    data: str


class Outline(Written):
    """A graph to outline in at most `limit_bytes`."""

    limit_bytes: int


class Trace(Written):
    """A raw trace to draw, with limits of its unpacked text, of its events, and of the spans that are drawn."""

    limit_bytes: int
    limit_events: int
    limit_spans: int


class Quantised(Written):
    """A quantised variant (its folder) to compare with its original, on samples (an `.npz`) or random ones."""

    variant: str
    data: str | None


class Exposed(GivenInputs):
    """Tensors to make outputs of the model, and whether to write their reference values too."""

    tensors: list[str]
    with_reference: bool


class Cut(Exposed):
    """Nodes, by their places in the graph, to write as a separate model."""

    places: list[int]
