"""Models, versions and search results, as the API tells of them."""

from datetime import datetime

from pydantic import Field

from farm.contract.api.answer import Answer


class FileOut(Answer):
    name: str = Field(description="its name in the bundle")
    role: str = Field(description="model, external data, inputs, expected, prompts, calibration or evaluation")
    sha256: str = Field(description="digest of its bytes; of the .onnx file, the model file digest")
    bytes: int = Field(description="its size")


class ModelOut(Answer):
    id: int = Field(description="the model's number")
    name: str = Field(description="its name, unique in its team")
    team: str = Field(description="the team that it belongs to")
    description: str = Field(description="what its people wrote about it")
    labels: list[str] = Field(description="words by which watches and lists find it")
    created_at: datetime = Field(description="when it was first uploaded")
    removed_at: datetime | None = Field(description="when it was deleted; null: it was not")
    version_count: int = Field(description="how many versions it has")


class EvaluationOut(Answer):
    """Labelled data. `state`: pending, making (being checked), ready or failed; `problem` says what does not fit."""

    state: str = Field(description="pending, making (being checked), ready or failed")
    problem: str | None = Field(description="what does not fit; null: nothing")
    recipe: str = Field(description="how outputs are judged: top1, top5, mse, softmax+mse, threshold=0.5, …@output")
    sha256: str = Field(description="digest of the file as it was given")
    bytes: int = Field(description="size of the file as it was given")
    samples: int | None = Field(description="how many labelled samples there are; null: not inspected yet")
    classes: int | None = Field(description="how many classes the labels have; null: they have none")
    output: str | None = Field(description="the output that is judged; null: the first")


class CalibrationOut(Answer):
    """What static quantisation reads ranges from. `problem`: why the data that were given cannot serve."""

    samples: int | None = Field(description="how many there are; null: none that serve")
    sha256: str | None = Field(description="digest of the data; null: there are none")
    problem: str | None = Field(
        description="why the data that were given cannot serve; null: they do, or none were given"
    )


class VersionOut(Answer):
    """`state`: pending, inspecting, ready or rejected; `problem` says why it was rejected."""

    id: int = Field(description="the version's number on the farm")
    model_id: int = Field(description="the model's number")
    model: str = Field(description="the model's name")
    number: int = Field(description="1 for the first version of its model")
    team: str = Field(description="the team that it belongs to")
    state: str = Field(description="pending, inspecting, ready or rejected")
    problem: str | None = Field(description="why it was rejected; null: it was not")
    note: str = Field(description="what was said at its upload")
    sha256: str = Field(description="bundle digest: of the names and contents of the .onnx file and its external data")
    bytes: int = Field(description="size of the whole bundle")
    files: list[FileOut] = Field(description="each file of the bundle")
    inspection: dict[str, object] | None = Field(
        description="what was found in it: inputs, outputs, opsets, operators, findings; null: not inspected yet"
    )
    evaluation: EvaluationOut | None = Field(description="labelled data to judge it on; null: none")
    calibration: CalibrationOut | None = Field(
        description="data that static quantisation reads ranges from; null: none"
    )
    branch: str = Field(
        default_factory=str, description="the branch whose gate uploaded it; empty: it is one of the model's own line"
    )
    commit: str = Field(default_factory=str, description="the commit that has it; empty: nobody said")
    is_kept: bool = Field(default_factory=bool, description="whether one of a branch stays when its time is over")
    uploaded_by: str | None = Field(description="who uploaded it; null: a gate, or a deleted user")
    created_at: datetime = Field(description="when it was uploaded")
    removed_at: datetime | None = Field(description="when it was deleted; null: it was not")


class ModelPageOut(ModelOut):
    versions: list[VersionOut] = Field(description="newest first")

    removed_versions: list[VersionOut] = Field(description="those that were deleted and stay for their runs")


class RemovedOut(Answer):
    """What a removal came to. Versions that runs have measured are hidden: the runs stay, and it can be taken back."""

    freed_bytes: int = Field(description="bytes of the team's quota that became free")
    deleted: int = Field(description="versions deleted permanently, as no run measured them")
    hidden: int = Field(description="versions that stay for the runs that measured them, and can be restored")


class HitOut(Answer):
    """Something with a page."""

    kind: str = Field(description="run, alert, model, version, node or watch")
    name: str = Field(description="what it is called")
    about: str = Field(description="what distinguishes it from others of its name")
    url: str = Field(description="its page")
