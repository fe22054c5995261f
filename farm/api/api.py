"""The HTTP API of people and programs, `/api/v1/`: schemas parse, endpoints call services and selectors."""

from importlib import import_module
from importlib.util import find_spec

from ninja import NinjaAPI, Swagger

from farm.api import errors
from farm.api.auth import BrowserAuth, TokenAuth

# `farm.api.<module>` has a `router`; node messages are served apart, see farm.api.node
ROUTERS = (
    "tokens",
    "models",
    "compatibility",
    "uploads",
    "resumable",
    "evaluation",
    "matrix",
    "plan",
    "runs",
    "nodes",
    "lendings",
    "diverge",
    "watches",
    "alerts",
    "bisections",
    "channels",
    "badges",
    "sweeps",
    "reports",
    "shares",
)

api = NinjaAPI(
    title="onnxfarm",
    version="1",
    urls_namespace="api",
    description="Benchmarks of ONNX models: latency, accuracy and operator placement side by side.",
    auth=[TokenAuth(), BrowserAuth()],
    docs=Swagger(settings={"persistAuthorization": True, "validatorUrl": None}),
)
errors.install(api)
for name in ROUTERS:
    if find_spec(f"farm.api.{name}"):
        api.add_router("", import_module(f"farm.api.{name}").router)
