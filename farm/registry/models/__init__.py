from farm.registry.models.artifact import Artifact, ArtifactFile
from farm.registry.models.blob import Blob
from farm.registry.models.making import Preparation, Variant
from farm.registry.models.model import Model, Version

__all__ = ["Artifact", "ArtifactFile", "Blob", "Model", "Preparation", "Variant", "Version"]
