from farm.registry.services.descriptions import edit_model, edit_version_note, keep_version
from farm.registry.services.origins import OWN_LINE, Origin
from farm.registry.services.package_indexes import OfferedVersions, add_index, fetch_index_versions, remove_index
from farm.registry.services.products import (
    ensure_preparation,
    ensure_variant,
    find_or_order_outline,
    order_variant_report,
)
from farm.registry.services.recovery import recover_rows
from farm.registry.services.removal import (
    Removed,
    check_has_files,
    clear_orphans,
    expire_branch_version,
    expire_model,
    remove_model,
    remove_unused_blobs,
    remove_version,
    restore_model,
    restore_version,
)
from farm.registry.services.resumption import append_piece, begin_upload, cancel_upload, clear_expired, complete_upload
from farm.registry.services.uploads import (
    add_evaluation,
    free_quota_bytes,
    receive_upload,
    store_artifact,
    store_blob_within_quota,
    store_made_blob,
)
from farm.registry.services.web_runtimes import (
    fetch_web_runtime,
    find_or_order_web_runtime,
    find_web_runtime_file,
    list_npm_releases,
)
from farm.registry.services.workshop import (
    check_evaluation,
    inspect_version,
    make_outline,
    make_variant,
    prepare_inputs,
    report_variant,
)
