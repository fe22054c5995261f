"""A third stranger's policy over Atari's frames in Flax by jax2onnx, in an environment of requirements-jax.txt."""

from pathlib import Path
from typing import Any

from tests.bench.exported.builders import Builders

BUILDERS = builder = Builders()


@builder
def jax_atari(path: Path) -> None:
    import jax
    import jax.numpy as jnp
    from flax import nnx
    from jax2onnx import to_onnx

    class Policy(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.a = nnx.Conv(4, 16, (8, 8), strides=(4, 4), padding="VALID", rngs=rngs)
            self.b = nnx.Conv(16, 32, (4, 4), strides=(2, 2), padding="VALID", rngs=rngs)
            self.c, self.actor = nnx.Linear(9 * 9 * 32, 128, rngs=rngs), nnx.Linear(128, 6, rngs=rngs)
            self.critic = nnx.Linear(128, 1, rngs=rngs)

        def __call__(self, frames: Any) -> Any:
            x = frames.astype(jnp.float32) / 255.0
            x = jax.nn.relu(self.b(jax.nn.relu(self.a(x))))
            x = jax.nn.relu(self.c(x.reshape(x.shape[0], 9 * 9 * 32)))
            return self.actor(x), self.critic(x)

    inputs = [jax.ShapeDtypeStruct(("B", 84, 84, 4), jnp.uint8)]
    to_onnx(Policy(nnx.Rngs(0)), inputs, return_mode="file", output_path=str(path))
