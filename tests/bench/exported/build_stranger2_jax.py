"""A second stranger's encoder in Flax by jax2onnx, in an environment of requirements-jax.txt."""

from pathlib import Path
from typing import Any

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


@builder
def jax_tags(path: Path) -> None:
    import jax
    import jax.numpy as jnp
    from flax import nnx
    from jax2onnx import to_onnx

    class Tags(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.embed, self.places = nnx.Embed(500, 32, rngs=rngs), nnx.Embed(32, 32, rngs=rngs)
            self.attend = nnx.MultiHeadAttention(4, 32, 32, rngs=rngs, decode=False)
            self.norm, self.head = nnx.LayerNorm(32, rngs=rngs), nnx.Linear(32, 9, rngs=rngs)

        def __call__(self, ids: Any) -> Any:
            x = self.embed(ids) + self.places(jnp.arange(32))
            return self.head(jax.nn.gelu(self.norm(x + self.attend(x))))

    inputs = [jax.ShapeDtypeStruct(("B", 32), jnp.int32)]
    to_onnx(Tags(nnx.Rngs(0)), inputs, return_mode="file", output_path=str(path))
