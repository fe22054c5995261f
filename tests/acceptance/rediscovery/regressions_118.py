"""Published slowdowns between 1.15 and 1.20."""

import numpy as np
from onnx import helper

from tests.acceptance.rediscovery.claims import Claim, Kind
from tests.acceptance.rediscovery.making import REPORTED, Attributes, Maker, coins, floats, one, several, whole
from tests.acceptance.rediscovery.regressions import IMAGES, SMALL_IMAGES


def _since_119(name: str, number: int, says: str, maker: Maker) -> Claim:
    return Claim(
        name=name, number=number, says=says, kind=Kind.SLOWER,
        before="1.18.0", after="1.19.0", until="1.20.1", maker=maker,
    )  # fmt: skip


def _since_120(name: str, number: int, says: str, maker: Maker) -> Claim:
    return Claim(
        name=name, number=number, says=says, kind=Kind.SLOWER,
        before="1.19.0", after="1.20.1", until="1.21.0", maker=maker,
    )  # fmt: skip


SVM: Attributes = {
    "classlabels_ints": [0, 1], "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0], "vectors_per_class": [8, 8],
    "coefficients": [0.5] * 8 + [-0.5] * 8, "support_vectors": [round(0.1 * n, 1) for n in range(64)],
    "rho": [0.1], "prob_a": [-1.0], "prob_b": [0.0], "post_transform": "NONE",
}  # fmt: skip
SLICES = (
    helper.make_node("SplitToSequence", ["x"], ["slices"], name=REPORTED),
    helper.make_node("ConcatFromSequence", ["slices"], ["y"], name="joined", axis=0),
)

REGRESSIONS_118 = (
    Claim(
        name="celu", number=20562, says="+38 %", kind=Kind.SLOWER, before="1.15.1", after="1.16.0", until="1.17.0",
        maker=one("Celu", {"x": floats(1, 80000)}, opset=12, alpha=1.0),
    ),
    _since_119(
        "where-int32", 27184, "+32 to 53 %",
        one("Where", {"c": coins(*IMAGES), "a": whole(*IMAGES, dtype="int32"), "b": whole(*IMAGES, dtype="int32")},
            opset=16),
    ),
    _since_119(
        "where-float32", 27184, "+32 to 53 %",
        one("Where", {"c": coins(*IMAGES), "a": floats(*IMAGES), "b": floats(*IMAGES)}, opset=16),
    ),
    _since_119(
        "mod-float32-small", 27185, "+9 %",
        one("Mod", {"x": floats(8, 128), "y": floats(8, 128, low=-3.0, high=-0.5)}, fmod=1, copies=4, side=16),
    ),
    _since_119(
        "lessorequal-int64", 27186, "+8 %",
        one("LessOrEqual", {"a": whole(*SMALL_IMAGES), "b": whole(*SMALL_IMAGES)}, opset=16, copies=4, side=16),
    ),
    _since_119("hardmax", 27173, "+9 %, +14 % of the whole", one("Hardmax", {"x": floats(*IMAGES)}, axis=1, side=128)),
    _since_119("splittosequence", 26954, "+17 %", several(SLICES, {"x": whole(64, 56)}, outputs=["y"], side=32)),
    _since_119(
        "centercroppad", 26977, "×2.5",
        one(
            "CenterCropPad", {"x": whole(32, 64, 64, dtype="int32")}, constants={"to": np.array([16, 48, 80])},
            opset=18, axes=[0, 1, 2],
        ),
    ),
    _since_119(
        "svmclassifier", 26978, "+9 %",
        one("SVMClassifier", {"x": floats(4, 4)}, domain="ai.onnx.ml", outputs=2, copies=4, side=16, **SVM),
    ),
    _since_120("min-float32", 23628, "+50 %", one("Min", {"a": floats(64, 1024), "b": floats(64, 1024)})),
    _since_120(
        "max-float16", 23337, "×4.8",
        one("Max", {"a": floats(64, 1024, dtype="float16"), "b": floats(64, 1024, dtype="float16")}),
    ),
    _since_120(
        "resize", 23391, "+43 %; its model is a picture there",
        one(
            "Resize", {"x": floats(1, 3, 64, 64)}, inputs=["x", "", "scales"],
            constants={"scales": np.array([1.0, 1.0, 4.0, 4.0], np.float32)}, opset=18, mode="linear",
        ),
    ),
)  # fmt: skip
