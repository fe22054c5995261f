"""A second stranger's tables: scikit-learn by skl2onnx."""

from pathlib import Path

import numpy as np

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


@builder
def sk_strings(path: Path) -> None:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import StringTensorType
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    random = np.random.default_rng(0)
    words = (["red", "green", "blue"], ["small", "large"], ["paper", "metal", "glass", "wood"])
    rows = np.stack([random.choice(column, 300) for column in words], 1).astype(object)
    model = make_pipeline(OrdinalEncoder(), RandomForestClassifier(20, max_depth=5, random_state=0))
    model.fit(rows, random.integers(0, 3, 300))
    onnx = to_onnx(model, initial_types=[("fields", StringTensorType([None, 3]))])
    path.write_bytes(onnx.SerializeToString())


@builder
def sk_anomaly(path: Path) -> None:
    from skl2onnx import to_onnx
    from sklearn.ensemble import IsolationForest
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.random.default_rng(0).normal(size=(300, 9)).astype(np.float32)
    model = make_pipeline(StandardScaler(), IsolationForest(n_estimators=30, random_state=0)).fit(rows)
    path.write_bytes(to_onnx(model, rows[:1], target_opset={"": 18, "ai.onnx.ml": 3}).SerializeToString())
