"""Published slowdowns between 1.20.0 and 1.24: mostly the update of Eigen and of the compiler in 1.21.0."""

import numpy as np

from tests.acceptance.rediscovery.claims import Claim, Kind
from tests.acceptance.rediscovery.making import Attributes, Maker, floats, one, whole

IMAGES = (2, 64, 56, 56)
SMALL_IMAGES = (2, 3, 32, 32)


def _since_121(name: str, number: int, says: str, maker: Maker) -> Claim:
    return Claim(
        name=name, number=number, says=says, kind=Kind.SLOWER,
        before="1.20.0", after="1.21.0", until="1.22.0", maker=maker,
    )  # fmt: skip


def _scattered(*, axis: int, dtype: str, mode: str) -> Maker:
    values = floats(*IMAGES) if dtype == "float32" else whole(*IMAGES, low=1, high=3)
    return one(
        "ScatterElements",
        {"data": values, "indices": whole(*IMAGES, low=0, high=IMAGES[axis]), "updates": values},
        opset=18, axis=axis, reduction=mode,
    )  # fmt: skip


SELU: Attributes = {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}
GRU_WEIGHTS = {"w": floats(1, 384, 64, low=-0.1, high=0.1), "r": floats(1, 384, 128, low=-0.1, high=0.1)}
TREE: Attributes = {
    "n_targets": 1, "aggregate_function": "SUM", "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0], "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "nodes_missing_value_tracks_true": [0, 0, 0],
    "target_ids": [0, 0], "target_nodeids": [1, 2], "target_treeids": [0, 0], "target_weights": [1.0, 2.0],
}  # fmt: skip

REGRESSIONS = (
    _since_121("lrn", 26293, "×3.8, by bisection commit 7c0c6fbe", one("LRN", {"x": floats(1, 64, 56, 56)}, size=5)),
    _since_121("selu", 26962, "×3.8", one("Selu", {"x": floats(2, 64, 28, 28)}, **SELU)),
    _since_121(
        "softplus", 27117, "+25 %",
        one("Softplus", {"x": floats(1024, low=0.12, high=9.99)}, copies=8, side=16),
    ),
    _since_121(
        "sigmoid-float64", 27074, "×2.0", one("Sigmoid", {"x": floats(2, 64, 28, 28, dtype="float64")}),
    ),
    _since_121("sin", 27119, "+9 %", one("Sin", {"x": floats(*SMALL_IMAGES)}, copies=4, side=16)),
    _since_121("sign-int64", 27115, "+23 to 26 %", one("Sign", {"x": whole(16, 64, 256)})),
    _since_121(
        "reducel1", 27093, "+25 %",
        one("ReduceL1", {"x": floats(*IMAGES)}, constants={"axes": np.array([0])}, opset=18, keepdims=1),
    ),
    _since_121(
        "reducemean-int64", 27076, "+39 %",
        one("ReduceMean", {"x": whole(2, 64, 28, 28)}, constants={"axes": np.array([1])}, opset=18, keepdims=1),
    ),
    _since_121(
        "argmin", 26940, "+30 %",
        one("ArgMin", {"x": floats(*IMAGES)}, axis=1, keepdims=0, select_last_index=1),
    ),
    _since_121(
        "argmax", 26940, "+28 %",
        one("ArgMax", {"x": floats(8, 128)}, axis=-1, keepdims=0, select_last_index=1, copies=8, side=16),
    ),
    _since_121(
        "gru-one-step", 27188, "+21 %",
        one("GRU", {"x": floats(1, 4, 64)}, constants=GRU_WEIGHTS, outputs=2, hidden_size=128, copies=2, side=32),
    ),
    _since_121(
        "scatter", 27140, "+17 %",
        one(
            "Scatter",
            {"x": floats(2, 64, 28, 28), "i": whole(2, 64, 28, 28, low=0, high=64), "u": floats(2, 64, 28, 28)},
            opset=10, axis=1,
        ),
    ),
    _since_121("scatterelements", 27139, "+22 %", _scattered(axis=0, dtype="float32", mode="none")),
    _since_121("scatterelements-mul", 27139, "+33 %", _scattered(axis=-2, dtype="int64", mode="mul")),
    _since_121(
        "gathernd", 27053, "+33 %",
        one(
            "GatherND",
            {"x": whole(*IMAGES, dtype="int32"), "i": whole(2, 16, 16, 3, low=0, high=56)},
            batch_dims=1, copies=4, side=16,
        ),
    ),
    _since_121(
        "matmul-int64", 27153, "×2.4", one("MatMul", {"a": whole(3, 128, 256), "b": whole(256, 64)}, side=128),
    ),
    _since_121(
        "mod-float32", 27152, "+21 %",
        one("Mod", {"x": floats(*IMAGES), "y": floats(*IMAGES, low=0.5)}, fmod=1, side=128),
    ),
    _since_121(
        "clip-int64", 27052, "slower, no figure",
        one("Clip", {"x": whole(*SMALL_IMAGES, low=-200)}, constants={"least": np.array(-100)}, copies=8, side=16),
    ),
    _since_121(
        "thresholdedrelu",
        27138,
        "+20 %",
        one("ThresholdedRelu", {"x": floats(2, 64, 28, 28)}),
    ),
    _since_121(
        "averagepool-3d",
        27190,
        "+17 to 28 %",
        one("AveragePool", {"x": floats(1, 16, 16, 32, 32)}, opset=11, kernel_shape=[2, 2, 2]),
    ),
    Claim(
        name="div-int32", number=26979, says="+41 %", kind=Kind.SLOWER, before="1.21.0", after="1.22.0",
        until="1.23.0",
        maker=one("Div", {"a": whole(*IMAGES, dtype="int32"), "b": whole(*IMAGES, low=1, dtype="int32")}, opset=14),
    ),
    Claim(
        name="treeensemble", number=27187, says="×2.0", kind=Kind.SLOWER, before="1.22.0", after="1.23.0",
        until="1.24.1",
        maker=one(
            "TreeEnsembleRegressor", {"x": floats(1000, 1)}, domain="ai.onnx.ml", opset=17, copies=4, side=16, **TREE
        ),
    ),
    Claim(
        name="gridsample", number=27155, says="+10 %", kind=Kind.SLOWER, before="1.22.0", after="1.23.0",
        until="1.24.1",
        maker=one(
            "GridSample", {"x": floats(2, 3, 32, 32), "grid": floats(2, 32, 32, 2, low=-1, high=1)},
            opset=20, mode="linear", padding_mode="zeros", align_corners=0, copies=2, side=32,
        ),
    ),
    Claim(
        name="hardmax-batch1", number=27073, says="+13 %", kind=Kind.SLOWER, before="1.22.0", after="1.23.0",
        until="1.24.1", maker=one("Hardmax", {"x": floats(1, 64, 28, 28)}, axis=1),
    ),
    Claim(
        name="logsoftmax", number=27095, says="+8 % of the whole, none of the kernel", kind=Kind.SLOWER,
        before="1.22.0", after="1.23.0", until="1.24.1", maker=one("LogSoftmax", {"x": floats(*IMAGES)}, axis=1),
    ),
    Claim(
        name="layernorm-two-pass", number=28743, says="a review: twice the reads", kind=Kind.SLOWER,
        before="1.26.0", after="1.28.0", until="1.29.0",
        maker=one(
            "LayerNormalization", {"x": floats(64, 768)},
            constants={"scale": floats(768), "bias": floats(768)}, opset=17, axis=-1,
        ),
    ),
)  # fmt: skip
