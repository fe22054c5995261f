"""A third stranger's trees by CatBoost, in an environment with catboost and onnx."""

from pathlib import Path

import catboost
import numpy as np

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


@builder
def cat_clicks(path: Path) -> None:
    random = np.random.default_rng(3)
    rows = random.normal(size=(500, 11)).astype(np.float32)
    model = catboost.CatBoostClassifier(iterations=60, depth=5, verbose=False, allow_writing_files=False)
    model.fit(rows, (rows[:, 0] + random.normal(size=500) > 0).astype(int))
    model.save_model(
        str(path), format="onnx", export_parameters={"onnx_domain": "ai.catboost", "onnx_model_version": 1}
    )
