from farm.runs.models.attempt import NO_INDEX, Attempt, CompiledModel, Part, Report, Trace, TraceReading
from farm.runs.models.block import MAX_FAILURES, Block
from farm.runs.models.cell import Arm, Cell, match_arms
from farm.runs.models.divergence import Divergence
from farm.runs.models.event import Event
from farm.runs.models.findings import CellDocument, Comparison
from farm.runs.models.retention import RetentionRule
from farm.runs.models.run import Beside, FinishedDocument, Run
