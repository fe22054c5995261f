"""Published speedups of the CPU provider, and changes for the worse that nobody published."""

from onnx import NodeProto, helper

from tests.acceptance.rediscovery.claims import Claim, Kind
from tests.acceptance.rediscovery.making import REPORTED, Fill, Maker, floats, one, several, whole

ROWS = (64, 1024)
SILU = (
    helper.make_node("Sigmoid", ["x"], ["gate"], name=f"{REPORTED}_sigmoid"),
    helper.make_node("Mul", ["x", "gate"], ["y"], name=f"{REPORTED}_mul"),
)
CHANNELS, LAYERS = 16, 4


def _faster(name: str, number: int, says: str, *, between: tuple[str, str, str], maker: Maker) -> Claim:
    """`between`: the release without it, the first one that is said to have it, and the last one that is searched."""
    before, after, until = between
    return Claim(
        name=name, number=number, says=says, kind=Kind.FASTER, before=before, after=after, until=until, maker=maker,
        operators=("QuickGelu", "ReorderInput", "ReorderOutput") if name in ("silu", "reorder") else (),
    )  # fmt: skip


def _convolutions() -> Maker:
    """Convolutions with activations, stamped with opset 22."""
    nodes: list[NodeProto] = []
    weights: dict[str, Fill] = {}
    for layer in range(LAYERS):
        weights[f"w{layer}"] = floats(CHANNELS, CHANNELS, 3, 3, low=-0.1, high=0.1)
        weights[f"b{layer}"] = floats(CHANNELS, low=-0.1, high=0.1)
        read = [f"r{layer - 1}" if layer else "x", f"w{layer}", f"b{layer}"]
        nodes.append(helper.make_node("Conv", read, [f"c{layer}"], name=f"{REPORTED}_conv{layer}", pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"], name=f"{REPORTED}_relu{layer}"))
    return several(
        nodes, {"x": floats(1, CHANNELS, 32, 32)}, constants=weights, outputs=[f"r{LAYERS - 1}"], opset=22
    )  # fmt: skip


def _quantised(*, bits: int, rows: int, size: int = 1024, block: int = 32) -> Maker:
    """A product with weights of so many bits, in blocks."""
    blocks = size // block
    return one(
        "MatMulNBits",
        {"a": floats(rows, size)},
        constants={
            "b": whole(size, blocks, block * bits // 8, low=0, high=256, dtype="uint8"),
            "scales": floats(size * blocks, low=0.01, high=0.02),
        },
        domain="com.microsoft", opset=17, K=size, N=size, bits=bits, block_size=block, accuracy_level=4,
    )  # fmt: skip


IMPROVEMENTS = (
    _faster(
        "silu", 27690, "fused for AVX-512", between=("1.24.4", "1.25.0", "1.26.0"),
        maker=several(SILU, {"x": floats(*ROWS)}, outputs=["y"]),
    ),
    _faster(
        "gelu", 27690, "fused for AVX-512", between=("1.24.4", "1.25.0", "1.26.0"),
        maker=one("Gelu", {"x": floats(*ROWS)}, opset=20),
    ),
    _faster(
        "conv-multiplier-2", 27874, "×2.3 for AVX-512", between=("1.24.4", "1.25.0", "1.26.0"),
        maker=one(
            "Conv", {"x": floats(1, 64, 64, 64)}, constants={"w": floats(128, 1, 7, 7), "b": floats(128)},
            group=64, kernel_shape=[7, 7], pads=[3] * 4, side=128,
        ),
    ),
    _faster(
        "conv-opset-22", 27262, "fusions back for Conv 22", between=("1.24.1", "1.25.1", "1.26.0"),
        maker=_convolutions(),
    ),
    _faster(
        "layernorm-avx2", 31973, "×9 to 14 a row; release notes of 1.30.0", between=("1.29.0", "1.30.0", "1.31.1"),
        maker=one(
            "LayerNormalization", {"x": floats(64, 768)}, constants={"scale": floats(768), "bias": floats(768)},
            opset=17, axis=-1,
        ),
    ),
    _faster(
        "rmsnorm-avx2", 31973, "×4.3 to 6.3 a row; release notes of 1.30.0", between=("1.29.0", "1.30.0", "1.31.1"),
        maker=one("RMSNormalization", {"x": floats(64, 768)}, constants={"scale": floats(768)}, opset=23, axis=-1),
    ),
    _faster(
        "erf-avx512", 31958, "16 wide for 8", between=("1.28.0", "1.31.1", ""),
        maker=one("Erf", {"x": floats(*ROWS)}),
    ),
    _faster(
        "reorder", 31958, "one pass of 16×16 for AVX-512", between=("1.28.0", "1.31.1", ""),
        maker=one(
            "Conv", {"x": floats(1, 64, 112, 112)}, constants={"w": floats(16, 64, 1, 1), "b": floats(16)},
            kernel_shape=[1, 1],
        ),
    ),
    _faster(
        "matmul-4-bits", 20687, "+5 to 48 % of a model's tokens", between=("1.19.2", "1.20.0", "1.21.1"),
        maker=_quantised(bits=4, rows=32),
    ),
    _faster(
        "rotary-avx2",
        23694,
        "×11 to 70 for AVX2",
        between=("1.20.0", "1.22.0", "1.23.0"),
        maker=one(
            "RotaryEmbedding",
            {"x": floats(1, 8, 64, 128), "positions": whole(1, low=0, high=1)},
            constants={"cos": floats(64, 64, low=-1.0, high=1.0), "sin": floats(64, 64, low=-1.0, high=1.0)},
            domain="com.microsoft",
            opset=17,
        ),
    ),
    Claim(
        name="skiplayernorm", number=0, says="", kind=Kind.OWN, before="1.29.0", after="1.30.0", until="1.31.1",
        maker=one(
            "SkipLayerNormalization", {"x": floats(1, 64, 768), "skip": floats(1, 64, 768)},
            constants={"gamma": floats(768), "beta": floats(768)}, domain="com.microsoft", opset=17, epsilon=1e-5,
        ),
    ),
)  # fmt: skip
