from farm.registry.services.describing import describe_model
from farm.registry.services.inspection import inspect_version, order_inspection
from farm.registry.services.making import ensure_preparation, ensure_variant
from farm.registry.services.removal import remove_version
from farm.registry.services.sweeping import sweep
from farm.registry.services.uploads import receive_upload, room_left, store_artifact, store_blob
from farm.registry.services.workshop import make_variant, prepare_inputs

__all__ = [
    "describe_model",
    "ensure_preparation",
    "ensure_variant",
    "inspect_version",
    "make_variant",
    "order_inspection",
    "prepare_inputs",
    "receive_upload",
    "remove_version",
    "room_left",
    "store_artifact",
    "store_blob",
    "sweep",
]
