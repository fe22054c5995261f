"""A third stranger's models in Keras by tf2onnx: an encoder with TF Hub's inputs, a picture classifier by TFLite."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


@builder
def keras_bert(path: Path) -> None:
    import tensorflow as tf
    import tf2onnx
    from tensorflow import keras

    np.object = object  # tf2onnx still says it
    keras.utils.set_random_seed(3)
    layers = keras.layers

    class Encoder(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.kinds = layers.Embedding(800, 64), layers.Embedding(2, 64)
            self.places = self.add_weight(shape=(128, 64), name="position_embeddings")
            self.attend = [layers.MultiHeadAttention(4, 16) for _ in range(2)]
            self.norms = [layers.LayerNormalization() for _ in range(4)]
            self.wide, self.out = [layers.Dense(128) for _ in range(2)], [layers.Dense(64) for _ in range(2)]
            self.head = layers.Dense(5)

        def call(self, input_word_ids: Any, input_mask: Any, input_type_ids: Any) -> Any:
            x = self.words(input_word_ids) + self.kinds(input_type_ids) + self.places[: tf.shape(input_word_ids)[1]]
            mask = tf.cast(input_mask, tf.bool)[:, None, :]
            for at in range(2):
                x = self.norms[2 * at](x + self.attend[at](x, x, attention_mask=mask))
                x = self.norms[2 * at + 1](x + self.out[at](keras.activations.gelu(self.wide[at](x), approximate=True)))
            return self.head(x[:, 0])

    model = Encoder()
    ones = tf.ones((2, 9), tf.int32)
    model(ones, ones, ones)
    names = ("input_word_ids", "input_mask", "input_type_ids")
    specs = [tf.TensorSpec([None, None], tf.int32, name=name) for name in names]
    call = tf.function(lambda a, b, c: model(a, b, c), input_signature=specs)
    proto, _ = tf2onnx.convert.from_function(call, input_signature=specs, opset=15)
    path.write_bytes(proto.SerializeToString())


@builder
def keras_tflite_uint8(path: Path) -> None:
    import tensorflow as tf
    import tf2onnx
    from tensorflow import keras
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    np.object = object
    np.bool8 = getattr(np, "bool8", np.bool_)
    keras.utils.set_random_seed(3)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((96, 96, 3), name="image"),
            layers.Conv2D(16, 3, 2, "same", activation="relu"),
            layers.DepthwiseConv2D(3, 2, "same", activation="relu"),
            layers.Conv2D(32, 1, activation="relu"),
            layers.DepthwiseConv2D(3, 2, "same", activation="relu"),
            layers.Conv2D(64, 1, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(7, activation="softmax"),
        ]
    )
    call = tf.function(
        lambda image: model(image), input_signature=[tf.TensorSpec([1, 96, 96, 3], tf.float32, name="image")]
    )
    frozen = convert_variables_to_constants_v2(call.get_concrete_function())
    lite = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
    lite.optimizations = [tf.lite.Optimize.DEFAULT]
    pictures = np.random.default_rng(3).random((8, 1, 96, 96, 3), dtype=np.float32)
    lite.representative_dataset = lambda: ([picture] for picture in pictures)
    lite.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    lite.inference_input_type = lite.inference_output_type = tf.uint8
    written = path.with_name("model.tflite")
    written.write_bytes(lite.convert())
    proto, _ = tf2onnx.convert.from_tflite(str(written), opset=13)
    written.unlink()
    path.write_bytes(proto.SerializeToString())
