"""A stranger's tables and texts: scikit-learn by skl2onnx, LightGBM and XGBoost by onnxmltools with its defaults."""

from pathlib import Path

import lightgbm
import numpy as np
import onnxmltools
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as OtherFloats
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


@builder
def sk_customers(path: Path) -> None:
    random = np.random.default_rng(15)
    cities, devices = ["berlin", "paris", "rome", "madrid"], ["phone", "tablet", "desktop"]
    table = np.empty((300, 4), object)
    table[:, 0], table[:, 1] = random.uniform(18, 80, 300), random.uniform(1e4, 1e5, 300)
    table[:, 2], table[:, 3] = random.choice(cities, 300), random.choice(devices, 300)
    words = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer([("numbers", StandardScaler(), [0, 1]), ("words", words, [2, 3])])
    model = make_pipeline(columns, LogisticRegression()).fit(table, random.integers(0, 2, 300))
    kinds = {"age": FloatTensorType, "income": FloatTensorType, "city": StringTensorType, "device": StringTensorType}
    types = [(name, kind([None, 1])) for name, kind in kinds.items()]
    path.write_bytes(to_onnx(model, initial_types=types).SerializeToString())


@builder
def sk_tickets(path: Path) -> None:
    random = np.random.default_rng(16)
    words = ["invoice", "refund", "login", "password", "crash", "slow", "update", "cancel", "payment", "error"]
    texts = [" ".join(random.choice(words, 6)) for _ in range(120)]
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression()).fit(
        texts, random.integers(0, 3, 120)
    )
    path.write_bytes(to_onnx(model, initial_types=[("text", StringTensorType([None, 1]))]).SerializeToString())


@builder
def lgbm_zipmap(path: Path) -> None:
    random = np.random.default_rng(17)
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1)
    model.fit(random.standard_normal((400, 28)), random.integers(0, 3, 400))
    types = [("features", OtherFloats([None, 28]))]
    path.write_bytes(onnxmltools.convert_lightgbm(model, initial_types=types).SerializeToString())


@builder
def xgb_prices(path: Path) -> None:
    random = np.random.default_rng(18)
    rows = random.standard_normal((400, 12)).astype(np.float32)
    model = xgboost.XGBRegressor(n_estimators=40, max_depth=5).fit(rows, rows[:, 0] * 3 + rows[:, 1])
    types = [("float_input", OtherFloats([None, 12]))]
    path.write_bytes(onnxmltools.convert_xgboost(model, initial_types=types).SerializeToString())
