from farm.runs.selectors.backlog import why_not
from farm.runs.selectors.documents import (
    Before,
    block_document,
    cell_document,
    cell_of,
    comparisons_of,
    document,
    document_json,
    last_blocks_of,
    measured_cells,
)
from farm.runs.selectors.files import (
    compiled_model,
    compiled_name,
    gone_compiled,
    leased_file,
    team_that_asks_for,
    timing_lines,
    trace,
    traces_of,
)
from farm.runs.selectors.queue_order import first_taker
from farm.runs.selectors.runs import (
    Progress,
    address_of,
    can_write_run,
    can_write_runs,
    events,
    progress,
    revision,
    run,
    runs_listed,
    runs_visible_to,
)
from farm.runs.selectors.sides import compared_with_before, previous_of
