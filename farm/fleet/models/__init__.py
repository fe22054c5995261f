from farm.fleet.models.event import NodeEvent
from farm.fleet.models.lendings import Lending
from farm.fleet.models.node import Node
from farm.fleet.models.noise import NullEstimate
from farm.fleet.models.secrets import EnrolmentCode, NodeSecret
from farm.fleet.models.trial import Trial
