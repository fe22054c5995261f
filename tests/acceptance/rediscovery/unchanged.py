"""Pairs that are publicly unchanged: the same report measured them as such, or the change is for something else."""

import numpy as np

from tests.acceptance.rediscovery.claims import Claim, Kind
from tests.acceptance.rediscovery.making import Maker, floats, one, stored, whole
from tests.acceptance.rediscovery.regressions import IMAGES


def _same(name: str, number: int, says: str, *, between: tuple[str, str], maker: Maker) -> Claim:
    before, after = between
    return Claim(name=name, number=number, says=says, kind=Kind.SAME, before=before, after=after, maker=maker)


TO_121 = ("1.20.0", "1.21.0")

UNCHANGED = (
    _same(
        "mod-int32", 27152, "integers are not affected", between=TO_121,
        maker=one("Mod", {"x": whole(*IMAGES, dtype="int32"), "y": whole(*IMAGES, low=1, dtype="int32")}),
    ),
    _same(
        "mod-int64", 27152, "integers are not affected", between=TO_121,
        maker=one("Mod", {"x": whole(*IMAGES), "y": whole(*IMAGES, low=1)}),
    ),
    _same(
        "matmul-float32", 27153, "float32 is not affected", between=TO_121,
        maker=one("MatMul", {"a": floats(3, 128, 256), "b": floats(256, 64)}),
    ),
    _same(
        "matmul-int32", 27153, "int32 is not affected", between=TO_121,
        maker=one("MatMul", {"a": whole(3, 128, 256, dtype="int32"), "b": whole(256, 64, dtype="int32")}),
    ),
    _same(
        "scatter-last-axis", 27140, "+0.16 %", between=TO_121,
        maker=one(
            "Scatter", {"x": floats(2, 5), "i": whole(2, 5, low=0, high=5), "u": floats(2, 5)},
            opset=10, axis=-1, copies=4,
        ),
    ),
    _same(
        "thresholdedrelu-2d",
        27138,
        "−1.9 %, called stable",
        between=TO_121,
        maker=one("ThresholdedRelu", {"x": floats(8, 128)}, copies=4),
    ),
    _same(
        "sign-float32", 27115, "no such report for float32", between=TO_121,
        maker=one("Sign", {"x": floats(16, 64, 256)}),
    ),
    _same(
        "dequantizelinear", 24818, "vectorised in client builds only", between=("1.22.1", "1.23.0"),
        maker=one(
            "DequantizeLinear", {"x": whole(400000, low=0, high=256, dtype="uint8")},
            constants={"scale": np.array(0.1, np.float32), "zero": np.array(128, np.uint8)},
        ),
    ),
    _same(
        "depthwise-3x3", 26688, "for Arm only", between=("1.23.2", "1.24.1"),
        maker=one(
            "Conv", {"x": floats(1, 32, 56, 56)}, constants={"w": floats(32, 1, 3, 3), "b": floats(32)},
            group=32, kernel_shape=[3, 3], pads=[1] * 4,
        ),
    ),
    _same("patch-1.20.1", 0, "a patch release", between=("1.20.0", "1.20.1"), maker=stored("cnn_fixed_b4")),
    _same("patch-1.25.1", 0, "a patch release", between=("1.25.0", "1.25.1"), maker=stored("cnn_fixed_b4")),
    _same("patch-1.22.1", 0, "a patch release", between=("1.22.0", "1.22.1"), maker=stored("encoder_dyn")),
    _same("patch-1.31.1", 0, "a patch release", between=("1.31.0", "1.31.1"), maker=stored("encoder_dyn")),
)  # fmt: skip
