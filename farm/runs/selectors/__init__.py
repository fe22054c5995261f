from farm.runs.selectors.backlog import explain_refused_claim
from farm.runs.selectors.compared_versions import compared_with_before, previous_version
from farm.runs.selectors.documents import (
    Before,
    block_document,
    cell_document,
    comparisons_of,
    document,
    document_json,
    measured_cell_names,
    measured_cells,
    parse_cell,
    recent_node_states,
)
from farm.runs.selectors.files import (
    compiled_model,
    explain_removed_compiled,
    find_leased_file,
    find_team_asking_for,
    name_compiled_model,
    timing_lines,
    trace,
    traces_of,
)
from farm.runs.selectors.queue_order import find_claimant
from farm.runs.selectors.runs import (
    Progress,
    address_of,
    can_write_run,
    can_write_runs,
    events,
    make_etag,
    progress,
    run,
    runs_for_lists,
    runs_visible_to,
)
