"""What a model is fed where nobody says: sizes of its dynamic dimensions, and how each input is made. Child only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farm.workshop import sizes
from farm.workshop.child import filling, model_file, signature
from farm.workshop.problems import answering


@answering
def choose(payload: Mapping[str, Any]) -> dict[str, object]:
    """The fields of an `inspection.Feed` for {folder, main}."""
    model = model_file.read(Path(payload["folder"]), payload["main"])
    facts = signature.of(model)
    return {"sizes": sizes.resolve(facts, batch=None, shapes={}), "inputs": filling.fills_of(model, facts)}
