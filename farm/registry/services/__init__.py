from farm.registry.services.uploads import receive_upload, room_left, store_artifact, store_blob

__all__ = ["receive_upload", "room_left", "store_artifact", "store_blob"]
