from farm.registry.models.artifact import Artifact, ArtifactFile
from farm.registry.models.blob import Blob
from farm.registry.models.evaluation import EvaluationData
from farm.registry.models.model import Model, Version
from farm.registry.models.package_index import IndexedWheel, PackageIndex
from farm.registry.models.partial import PartialUpload
from farm.registry.models.plan_order import PlanOrder
from farm.registry.models.products import Outline, Preparation, Variant, VariantReport
from farm.registry.models.web_runtime import WebRuntime
