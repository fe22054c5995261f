"""The HTTP API of people and programs, `/api/v1/`: schemas parse, endpoints call services and selectors."""

from ninja import Swagger

from farm.api import (
    alerts,
    badges,
    bisections,
    channels,
    compatibility,
    compiled_models,
    diverge,
    evaluation,
    finds,
    hardware,
    indexes,
    lendings,
    matrix,
    models,
    nodes,
    plan,
    releases,
    reports,
    resumable,
    retention,
    runs,
    search,
    shares,
    sweeps,
    teams,
    tokens,
    trials,
    uploads,
    watches,
)
from farm.api.auth import BrowserAuth, TokenAuth
from farm.api.description import DescribedAPI, TextParser
from farm.base import errors

# farm.gateway.node_api serves the messages of nodes
ROUTERS = (
    tokens.router,
    teams.router,
    retention.router,
    indexes.router,
    models.router,
    search.router,
    compatibility.router,
    hardware.router,
    uploads.router,
    resumable.router,
    evaluation.router,
    matrix.router,
    plan.router,
    runs.router,
    compiled_models.router,
    # before the router of nodes, whose orders match any word in the address
    trials.router,
    nodes.router,
    lendings.router,
    diverge.router,
    watches.router,
    alerts.router,
    bisections.router,
    releases.router,
    channels.router,
    badges.router,
    sweeps.router,
    finds.router,
    reports.router,
    shares.router,
)

api = DescribedAPI(
    parser=TextParser(),
    title="onnxfarm",
    version="1",
    urls_namespace="api",
    description="Benchmarks of ONNX models: latency, accuracy and operator placement side by side.",
    auth=[TokenAuth(), BrowserAuth()],
    docs=Swagger(settings={"persistAuthorization": True, "validatorUrl": None}),
)
errors.install_error_handlers(api)
for router in ROUTERS:
    api.add_router("", router)
