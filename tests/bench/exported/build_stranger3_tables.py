"""A third stranger's table of whole numbers by scikit-learn and skl2onnx."""

from pathlib import Path

import numpy as np

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


@builder
def sk_bikes(path: Path) -> None:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import Int64TensorType
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    random = np.random.default_rng(3)
    rows = np.stack([random.integers(0, 24, 800), random.integers(0, 7, 800), random.integers(1, 5, 800)], 1)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False), Ridge())
    model.fit(rows, random.normal(size=800))
    path.write_bytes(to_onnx(model, initial_types=[("X", Int64TensorType([None, 3]))]).SerializeToString())
