"""A second stranger's U-Net in Keras by tf2onnx."""

from pathlib import Path

import numpy as np

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


@builder
def keras_unet(path: Path) -> None:
    import tensorflow as tf
    import tf2onnx
    from tensorflow import keras

    np.object = object  # tf2onnx still says it
    layers = keras.layers
    image = keras.Input((None, None, 3), name="image")
    levels, x = [], image
    for wide in (8, 16, 32):
        x = layers.Conv2D(wide, 3, padding="same", activation="relu")(x)
        levels.append(x)
        x = layers.MaxPooling2D()(x)
    for wide, level in zip((32, 16, 8), reversed(levels), strict=True):
        x = layers.Conv2DTranspose(wide, 2, strides=2, padding="same")(x)
        x = layers.Conv2D(wide, 3, padding="same", activation="relu")(layers.Concatenate()([x, level]))
    model = keras.Model(image, layers.Conv2D(1, 1, activation="sigmoid")(x))
    specs = [tf.TensorSpec([None, None, None, 3], tf.float32, name="image")]
    call = tf.function(lambda image: model(image), input_signature=specs)
    proto, _ = tf2onnx.convert.from_function(call, input_signature=specs, opset=13)
    path.write_bytes(proto.SerializeToString())
