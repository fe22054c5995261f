"""A stranger's convolutional network in JAX by jax2onnx, in an environment of requirements-jax.txt."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax2onnx import to_onnx


def jax_digits(path: Path) -> None:
    random = np.random.default_rng(20)
    kernel = (random.standard_normal((3, 3, 1, 8)) / 3).astype(np.float32)
    dense = (random.standard_normal((14 * 14 * 8, 10)) / 40).astype(np.float32)

    def digits(pictures: Any) -> Any:
        order = ("NHWC", "HWIO", "NHWC")
        x = jax.nn.relu(jax.lax.conv_general_dilated(pictures, kernel, (2, 2), "SAME", dimension_numbers=order))
        return jax.nn.softmax(x.reshape(x.shape[0], -1) @ dense)

    to_onnx(digits, [("B", 28, 28, 1)], return_mode="file", output_path=str(path))


BUILDERS = {"jax_digits": jax_digits}
