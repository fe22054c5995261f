"""Changes of ONNX Runtime that others published, found again by the product's own commands.

`python -m tests.acceptance.rediscovery` runs them, docs/results.md says what came of it.
"""
