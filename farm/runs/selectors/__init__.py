from farm.runs.selectors.compiled_models import compiled_model, compiled_name, gone_compiled
from farm.runs.selectors.documents import (
    block_document,
    cell_document,
    cell_of,
    comparisons_of,
    document,
    document_json,
    measured_cells,
)
from farm.runs.selectors.eligibility import first_taker, why_not
from farm.runs.selectors.files import leased_file, team_that_asks_for
from farm.runs.selectors.runs import (
    Progress,
    address_of,
    blocks_on,
    can_write_run,
    can_write_runs,
    events,
    progress,
    revision,
    run,
    runs_listed,
    runs_visible_to,
)
from farm.runs.selectors.surroundings import Before, last_blocks_of
from farm.runs.selectors.timings import timing_lines
from farm.runs.selectors.traces import trace, traces_of

__all__ = [
    "Before",
    "Progress",
    "address_of",
    "block_document",
    "blocks_on",
    "can_write_run",
    "can_write_runs",
    "cell_document",
    "cell_of",
    "comparisons_of",
    "compiled_model",
    "compiled_name",
    "document",
    "document_json",
    "events",
    "first_taker",
    "gone_compiled",
    "last_blocks_of",
    "leased_file",
    "measured_cells",
    "progress",
    "revision",
    "run",
    "runs_listed",
    "runs_visible_to",
    "team_that_asks_for",
    "timing_lines",
    "trace",
    "traces_of",
    "why_not",
]
