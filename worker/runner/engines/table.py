"""Finds the engine of an order. Each engine is a module, which is imported when it is needed."""

from worker.runner import extensions
from worker.runner.engines.protocol import Kind
from worker.runner.order import Order

_OWN = {"onnxruntime": "engines.onnxruntime:KIND", "torch": "engines.torch:KIND", "genai": "engines.genai:KIND"}


def find_engine_kind(order: Order) -> Kind:
    """Import the engine that runs the order's model. Raises Refusal for an engine that this runner does not know."""
    name = order.engine
    kind: Kind = extensions.import_builtin(_OWN[name]) if name in _OWN else extensions.import_extension("engine", name)
    return kind
