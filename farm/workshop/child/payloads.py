"""What the workshop's functions are told: the payloads of its orders, as they arrive in the child."""

from typing import Literal, NotRequired, TypedDict

from farm.contract.evaluation import LabelShape


class Model(TypedDict):
    """The model file `main` in `folder`, which every order names."""

    folder: str
    main: str


class Written(Model):
    """`out`: the file or folder that is written."""

    out: str


class Package(Written):
    """A packed release of npm: the files of its folder `dist` that are wanted, and limits."""

    names: list[str]
    limit_files: int
    limit_bytes: int


class Workload(Written):
    """Inputs to make: how they are made by name, where it is not as the graph says."""

    batch: int | None
    shapes: dict[str, int]
    inputs: dict[str, str]
    seed: int


class GivenInputs(Written):
    """Inputs that somebody gave: an `.npz`."""

    inputs: str


class GivenPrompts(Written):
    """Token ids that somebody gave: an `.npz`."""

    prompts: str


class TestData(Written):
    """ONNX's own `.pb` files of the model's inputs or outputs, in their order."""

    files: list[str]
    side: Literal["input", "output"]


class Recipe(Written):
    """A variant: `opset` None keeps it, `calibration` is an `.npz` of samples; random ones without.

    `program`: the name under which the framework's own program is written in its place; empty: none is.
    """

    precision: str
    opset: int | None
    options: dict[str, str]
    calibration: NotRequired[str | None]
    program: NotRequired[str]


class Samples(Written):
    """Samples to calibrate with: an `.npz`, or without it lists of `input_N.pb`, one a set of test data."""

    data: str | None
    sets: list[list[str]]


class Evaluation(Written):
    """Labelled data (an `.npz`) and how outputs are judged, as the contract's EvaluationRecipe and the metric's entry
    say it."""

    data: str
    labels: LabelShape
    at_once: int
    metric: str
    output: str | None
    apply: str | None
    threshold: float


class JudgedSamples(Written):
    """What a user's own judge is given: an `.npz`."""

    data: str


class Outline(Written):
    """A graph to outline, in so many bytes at most."""

    limit_bytes: int


class Trace(Written):
    """A raw trace to draw: limits of its text once unpacked, of its events, and of what is drawn."""

    limit_bytes: int
    limit_events: int
    limit_spans: int


class Quantised(Written):
    """A variant (its folder) to hold against its original, on samples (an `.npz`) or random ones."""

    variant: str
    data: str | None


class Exposed(GivenInputs):
    """Tensors to make visible; with their values on the inputs, or not."""

    tensors: list[str]
    with_reference: bool


class Cut(Exposed):
    """Places of nodes that become a model of their own."""

    places: list[int]
