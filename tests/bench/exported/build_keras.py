"""Small Keras models by tf2onnx, whose dimensions are called unk__N and whose pictures end with their channels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf2onnx
from tensorflow import keras

BUILDERS: dict[str, Callable[[Path], None]] = {}
np.object = object  # tf2onnx still says it
layers = keras.layers


def made(name: str, model: Callable[[], Any], *specs: tuple[list[int | None], Any, str], **options: Any) -> None:
    def build(path: Path) -> None:
        call = tf.function(
            model(), input_signature=[tf.TensorSpec(shape, kind, name=called) for shape, kind, called in specs]
        )
        proto, _ = tf2onnx.convert.from_function(call, input_signature=call.input_signature, opset=17, **options)
        path.write_bytes(proto.SerializeToString())

    BUILDERS[name] = build


def pictures() -> Any:
    return keras.Sequential(
        [
            layers.Input((None, None, 3)),
            layers.Conv2D(8, 3, 2),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5),
        ]
    )


PICTURES = ([None, None, None, 3], tf.float32, "input_1")
made("keras_pictures", pictures, PICTURES)
made("keras_pictures_first", pictures, PICTURES, inputs_as_nchw=["input_1:0"])
made(
    "keras_dense",
    lambda: keras.Sequential([layers.Input((20,)), layers.Dense(16, "relu"), layers.Dense(3)]),
    ([None, 20], tf.float32, "x"),
)
made(
    "keras_lstm",
    lambda: keras.Sequential([layers.Input((None, 9)), layers.LSTM(16), layers.Dense(2)]),
    ([None, None, 9], tf.float32, "series"),
)
made(
    "keras_words",
    lambda: keras.Sequential(
        [
            layers.Input((None,), dtype="int32"),
            layers.Embedding(700, 16),
            layers.GlobalAveragePooling1D(),
            layers.Dense(2),
        ]
    ),
    ([None, None], tf.int32, "tokens"),
)
made(
    "keras_mobilenet",
    lambda: keras.applications.MobileNetV2(alpha=0.35, input_shape=(96, 96, 3), weights=None, classes=10),
    ([None, 96, 96, 3], tf.float32, "image"),
)
