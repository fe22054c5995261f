"""Small models of tables: scikit-learn by skl2onnx, LightGBM and XGBoost by onnxmltools."""

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import onnxmltools
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as OtherFloats
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, IsolationForest, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()
random = np.random.default_rng(0)
X = random.standard_normal((200, 12)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] > 0).astype(np.int64) + (X[:, 2] > 1)
FLOATS = [("X", FloatTensorType([None, 12]))]
WORDS = ["red", "green", "blue", "violet", "orange"]


def fitted(name: str, model: Any, *, target: Any = Y, **options: Any) -> None:
    def build(path: Path) -> None:
        path.write_bytes(to_onnx(model.fit(X, target), initial_types=FLOATS, **options).SerializeToString())

    BUILDERS[name] = build


fitted("sk_scaled_logistic", make_pipeline(StandardScaler(), LogisticRegression()))
fitted("sk_forest", RandomForestClassifier(n_estimators=20, random_state=0))
fitted("sk_forest_plain", RandomForestClassifier(n_estimators=20, random_state=0), options={"zipmap": False})
fitted("sk_boosting", GradientBoostingRegressor(n_estimators=20, random_state=0), target=X[:, 0])
fitted("sk_kmeans", KMeans(4, n_init=2, random_state=0))
fitted("sk_svc", SVC(probability=False))
fitted("sk_network", MLPClassifier((16,), max_iter=30, random_state=0))
fitted("sk_neighbours", KNeighborsClassifier(3))
fitted("sk_isolation", IsolationForest(n_estimators=10, random_state=0), target_opset={"": 17, "ai.onnx.ml": 3})


@builder
def sk_columns(path: Path) -> None:
    """Columns of three kinds, each an input of its own, as skl2onnx does with a data frame."""
    rows = np.array([[word, float(at), at % 7] for at, word in enumerate(WORDS * 20)], dtype=object)
    made = ColumnTransformer(
        [("words", OneHotEncoder(handle_unknown="ignore"), [0]), ("numbers", StandardScaler(), [1, 2])]
    )
    model = make_pipeline(made, LogisticRegression()).fit(rows, np.arange(100) % 2)
    types = [
        ("colour", StringTensorType([None, 1])),
        ("weight", FloatTensorType([None, 1])),
        ("doors", Int64TensorType([None, 1])),
    ]
    path.write_bytes(to_onnx(model, initial_types=types).SerializeToString())


@builder
def sk_text(path: Path) -> None:
    texts = ["the quick brown fox", "a lazy dog sleeps", "foxes and dogs run quick"] * 10
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [0, 1, 1] * 10)
    path.write_bytes(to_onnx(model, initial_types=[("text", StringTensorType([None]))]).SerializeToString())


@builder
def sk_categories(path: Path) -> None:
    rows = np.array([[word, word[::-1]] for word in WORDS * 5], dtype=object)
    model = OneHotEncoder(handle_unknown="ignore").fit(rows)
    path.write_bytes(to_onnx(model, initial_types=[("names", StringTensorType([None, 2]))]).SerializeToString())


@builder
def gbm_classes(path: Path) -> None:
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(X, Y)
    save(onnxmltools.convert_lightgbm(model, initial_types=[("input", OtherFloats([None, 12]))]), path)


@builder
def gbm_numbers(path: Path) -> None:
    model = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1).fit(X, X[:, 0])
    save(onnxmltools.convert_lightgbm(model, initial_types=[("input", OtherFloats([None, None]))]), path)


@builder
def xgb_classes(path: Path) -> None:
    model = xgboost.XGBClassifier(n_estimators=20).fit(X, Y)
    save(onnxmltools.convert_xgboost(model, initial_types=[("input", OtherFloats([None, 12]))]), path)


@builder
def xgb_numbers(path: Path) -> None:
    model = xgboost.XGBRegressor(n_estimators=20).fit(X, X[:, 0])
    save(onnxmltools.convert_xgboost(model, initial_types=[("input", OtherFloats([None, None]))]), path)


def save(model: Any, path: Path) -> None:
    path.write_bytes(model.SerializeToString())
