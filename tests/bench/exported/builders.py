"""The table of what a script builds."""

from collections.abc import Callable
from pathlib import Path

Build = Callable[[Path], None]


class Builders(dict[str, Build]):
    """Builders by the name of their model, which this decorates; `torch_seed`: of the weights of each."""

    def __init__(self, torch_seed: int | None = None) -> None:
        super().__init__()
        self._torch_seed = torch_seed

    def __call__(self, build: Build) -> Build:
        def build_seeded(path: Path) -> None:
            if self._torch_seed is not None:
                import torch

                torch.manual_seed(self._torch_seed)
            build(path)

        self[build.__name__] = build_seeded
        return build_seeded
