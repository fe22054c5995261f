# acme_engines.py
from farm.rules.runtimes.engine import Engine

ACME = Engine(
    name="acme",
    module="acme_engine",
    distribution="acme-engine",
    title="Acme",
    runner="acme_engine_runner",
    launch_s=0.5,  # beyond ONNX Runtime's
)
