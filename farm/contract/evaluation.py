"""Task accuracy: the labelled data with which a node judges a cell's outputs, and its report on them."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from farm.contract.base import Message, Sha256
from farm.contract.cells import FileRef
from farm.contract.reasons import Reason

# the name of an entry of farm.rules.quality.accuracy_metrics
METRIC_NAME = r"^[a-z][a-z0-9_-]{0,31}$"
Metric = Annotated[str, StringConstraints(pattern=METRIC_NAME)]
# the form of the labels in relation to the output that they judge
LabelShape = Literal["class", "like-output", "group", "flags", "texts", "boxes", "tokens", "any"]
Step = Literal["softmax", "argmax", "threshold", "ctc"]
# the level of intervals and tests of an accuracy
ACCURACY_LEVEL = 0.95
# more samples would hardly make the intervals narrower, but cost time in every cell
MAX_SAMPLES = 50_000
# limit of the packed answers of that many samples, well below that of a report
_MAX_PACKED = 600_000


class EvaluationRecipe(Message):
    """How an output is judged against the labels: `apply` is done to it first. `output` None: the first output."""

    metric: Metric = "top1"
    output: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    apply: Step | None = None
    # outputs above it are class 1; used only where `apply` is `threshold`
    threshold: Annotated[float, Field(allow_inf_nan=False)] = 0.5


class EvaluationOrder(Message):
    """Labelled data, an `.npz` of inputs by name and `labels`, and how outputs are judged against them."""

    data: FileRef
    recipe: EvaluationRecipe = EvaluationRecipe()


class CustomJudge(Message):
    """A user's own function that judged on their own machine: its file, never sent, by name and digest.

    `value` is the figure where the function gave one for all samples together; there are no `samples` then.
    """

    file: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    sha256: Sha256
    lower_is_better: bool = False
    value: Annotated[float, Field(allow_inf_nan=False)] | None = None


class AccuracyReport(Message):
    """An arm on labelled data.

    `samples`: right or wrong, or the figure, of each, packed as farm.rules.quality.evaluation says.

    `measured_arm`: the arm that ran, where several have the same model, runtime, provider and session.
    """

    kind: Literal["accuracy"] = "accuracy"
    arm: Annotated[int, Field(ge=0)]
    reason: Reason | None = None
    recipe: EvaluationRecipe = EvaluationRecipe()
    output: Annotated[str, StringConstraints(max_length=200)] = ""
    n: Annotated[int, Field(ge=0, le=MAX_SAMPLES)] = 0
    samples: Annotated[str, StringConstraints(max_length=_MAX_PACKED)] = ""
    measured_arm: Annotated[int, Field(ge=0)] | None = None
    data_sha256: Sha256 | None = None
    wall_s: Annotated[float, Field(ge=0)] = 0.0
    # only for measurements without a farm: farms refuse a report with it
    judge: Annotated[CustomJudge | None, Field(exclude_if=lambda judge: judge is None)] = None
