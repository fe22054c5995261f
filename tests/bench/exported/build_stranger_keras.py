"""A stranger's recommender in Keras by tf2onnx: a user, a history of items, a context."""

from pathlib import Path

import numpy as np
import tensorflow as tf
import tf2onnx
from tensorflow import keras

np.object = object  # tf2onnx still says it
layers = keras.layers


def keras_recommender(path: Path) -> None:
    user = keras.Input((1,), dtype="int32", name="user_id")
    history = keras.Input((None,), dtype="int32", name="history")
    context = keras.Input((13,), name="context")
    parts = [
        layers.Flatten()(layers.Embedding(1000, 16)(user)),
        layers.GlobalAveragePooling1D()(layers.Embedding(2000, 16)(history)),
        context,
    ]
    hidden = layers.Dense(32, "relu")(layers.Concatenate()(parts))
    model = keras.Model([user, history, context], layers.Dense(1, "sigmoid")(hidden))
    specs = [
        tf.TensorSpec([None, 1], tf.int32, name="user_id"),
        tf.TensorSpec([None, None], tf.int32, name="history"),
        tf.TensorSpec([None, 13], tf.float32, name="context"),
    ]
    call = tf.function(lambda user_id, history, context: model([user_id, history, context]), input_signature=specs)
    proto, _ = tf2onnx.convert.from_function(call, input_signature=specs, opset=15)
    path.write_bytes(proto.SerializeToString())


BUILDERS = {"keras_recommender": keras_recommender}
